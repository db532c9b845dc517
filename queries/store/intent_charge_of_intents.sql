-- Charges that were made for these intents, whenever that was. Index: intent_charge_intent. Zero rows: none was
-- ever read.
select charge_id, intent
from intent_charge
where provider = $1 and account = $2 and mode = $3 and intent in (values ($4))
