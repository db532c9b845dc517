-- Whether any payment intent leads to another one, as the parts of one invoice do. Key: alias's primary
-- key. Zero rows: every payment intent stands for itself.
select alias_id
from alias
where provider = $1 and account = $2 and mode = $3 and alias_id >= 'pi_' and alias_id < 'pi`'
limit 1
