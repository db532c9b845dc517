-- What became of a finding's corrections, and who carried them out. Index: correction_finding; correction_actor's primary
-- key. Zero rows: none was ever tried.
select done.plan_run_id, done.action, done.effect_key, done.outcome, done.applied_at_us,
       coalesce((
           select actor
           from correction_actor by_whom
           where by_whom.first_sequence <= done.sequence and by_whom.last_sequence >= done.sequence
           order by by_whom.first_sequence desc
           limit 1
       ), '') as actor
from correction done
where done.finding_id = $1
order by done.sequence
