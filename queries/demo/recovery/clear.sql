-- The demonstration of recovery: a store that is kept holds nothing of how it was staged. Answers no rows.
drop view recovery_endless;
drop table recovery_ballast
