-- What was done to findings, oldest first. Index: finding_action_finding. Zero rows: nothing.
select sequence, finding_id, action, opening, owner, until_us, amounts, run_id, reason, actor, at_us
from finding_action
where finding_id in (values ($1))
order by sequence
