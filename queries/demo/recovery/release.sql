-- The demonstration of recovery: takes the hold away. Relies on nobody being held: its process is gone, and its
-- transaction with it. Answers no rows.
drop trigger recovery_hold
