-- Keeps what was done to findings. Relies on the primary key sequence: under the write lock nobody else continues the same
-- end. Insert only; zero rows never happen.
insert into finding_action (
    sequence, finding_id, action, opening, owner, until_us, amounts, run_id, reason, actor, at_us
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
returning sequence
