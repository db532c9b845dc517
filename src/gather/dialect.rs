//! What reading local rows must know about a provider: how it counts money, and which ids stand for
//! one effect. Pure.

use crate::provider::stripe;
use crate::record::{EffectKind, iso_exponent};

/// A provider's conventions.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Decimals of a lower-case currency code, as the provider counts minor units.
    pub exponent: fn(&str) -> u32,
    /// Whether an id is the anchor of an effect of this kind, rather than a name of the whole payment.
    pub is_anchor: fn(EffectKind, &str) -> bool,
    /// Whether an id names a payment and leads to no other.
    pub is_final: fn(&str) -> bool,
}

impl Dialect {
    /// ISO 4217 decimals, and ids that say nothing.
    pub const PLAIN: Self = Self { exponent: iso_exponent, is_anchor: |_, _| false, is_final: |_| false };

    /// Stripe's ids, with `exponent` for its exceptions to ISO 4217.
    #[must_use]
    pub const fn stripe(exponent: fn(&str) -> u32) -> Self {
        Self { exponent, is_anchor: is_stripe_anchor, is_final: stripe::is_final_root }
    }
}

/// Prefixes of Stripe ids: `py_` and `pyr_` are charges and refunds of bank payments, `du_` disputes of
/// the current API (docs.stripe.com/api, each object's `id`).
fn is_stripe_anchor(kind: EffectKind, id: &str) -> bool {
    let prefixes: &[&str] = match kind {
        EffectKind::Credit | EffectKind::Fee => &["ch_", "py_"],
        EffectKind::Refund => &["re_", "pyr_"],
        EffectKind::DisputeWithdrawn | EffectKind::DisputeReinstated => &["dp_", "du_", "pdp_"],
        EffectKind::Payout => &["po_"],
    };
    prefixes.iter().any(|prefix| id.starts_with(prefix))
}
