//! Laravel Cashier (Stripe): customers and subscriptions, and nothing about money.
//!
//! Sources: `database/migrations/2019_05_03_000001` to `000003` of <https://github.com/laravel/cashier-stripe> (commits
//! 301d5a0, 3bb2035 and 9661ead, read 2026-11-30), and <https://laravel.com/docs/12.x/billing#database-migrations>.

use super::Schema;

pub(super) fn note(schema: &Schema) -> Option<String> {
    schema.table_with("subscriptions", &["stripe_id", "stripe_status", "stripe_price"])?;
    schema.table_with("subscription_items", &["stripe_id", "stripe_price"])?;
    Some(
        "Laravel Cashier is here (subscriptions, subscription_items). It stores customers and subscriptions, and neither \
         charges nor refunds nor events, so there is nothing of its own to compare payments with"
            .to_owned(),
    )
}
