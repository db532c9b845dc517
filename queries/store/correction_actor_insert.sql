-- Keeps who carried a batch of corrections out. Relies on the primary key first_sequence, of which the chain gives each
-- once. Insert only; zero rows never happen.
insert into correction_actor (first_sequence, last_sequence, actor)
values ($1, $2, $3)
returning first_sequence
