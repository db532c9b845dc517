//! Wire objects: each known field is kept as the JSON text that stands in the body.
//!
//! Nothing is interpreted here, so no field of a wrong type can make a whole record unreadable, and
//! no number passes through a float: ids and amounts are read from their digits.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// One field's JSON text; absent where the record does not have the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Raw<'a>(Option<&'a str>);

/// A field read as one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read<T> {
    /// The field is not there.
    Missing,
    /// The field is `null`.
    Null,
    /// The value.
    Value(T),
    /// The field has another type.
    Wrong,
}

/// What stands where an object refers to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    /// The id, whether the object is expanded, deleted or neither.
    pub(super) id: Cow<'a, str>,
    /// The JSON of the object where it is expanded.
    pub(super) expanded: Option<&'a str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|raw| Self(Some(raw.get())))
    }
}

impl<'a> Raw<'a> {
    #[cfg(test)]
    const fn of(json: &'a str) -> Self {
        Self(Some(json))
    }

    /// The JSON text where the field is an object.
    pub(super) fn object(self) -> Read<&'a str> {
        self.read(|json| json.starts_with('{').then_some(json))
    }

    pub(super) fn text(self) -> Read<Cow<'a, str>> {
        self.read(text_of)
    }

    /// A whole number within 64 bits, read from its digits.
    pub(super) fn whole(self) -> Read<i64> {
        self.read(|json| is_whole(json).then(|| json.parse().ok()).flatten())
    }

    pub(super) fn flag(self) -> Read<bool> {
        self.read(|json| json.parse().ok())
    }

    /// An id: text, or a whole number of any length with all its digits, so that `123` and `"123"`
    /// are one id.
    pub(super) fn id(self) -> Read<Cow<'a, str>> {
        self.read(id_of)
    }

    /// A reference: id, expanded object or deleted object.
    pub(super) fn reference(self) -> Read<Reference<'a>> {
        self.read(|json| {
            if !json.starts_with('{') {
                return id_of(json).map(|id| Reference { id, expanded: None });
            }
            let object: Named = serde_json::from_str(json).ok()?;
            match object.id.id() {
                Read::Value(id) => Some(Reference { id, expanded: Some(json) }),
                _ => None,
            }
        })
    }

    /// The items of an array, or of a Stripe list object (`{"object":"list","data":[…]}`).
    pub(super) fn items(self) -> Read<Vec<Raw<'a>>> {
        self.read(|json| {
            if json.starts_with('[') {
                return serde_json::from_str(json).ok();
            }
            match parse_object::<List>(json)?.data {
                Raw(Some(data)) if data.starts_with('[') => serde_json::from_str(data).ok(),
                _ => None,
            }
        })
    }

    pub(super) fn is_present(self) -> bool {
        self.0.is_some_and(|json| json != "null")
    }

    fn read<T>(self, value: impl FnOnce(&'a str) -> Option<T>) -> Read<T> {
        match self.0 {
            None => Read::Missing,
            Some("null") => Read::Null,
            Some(json) => value(json).map_or(Read::Wrong, Read::Value),
        }
    }
}

/// Reads an object's known fields; `None` for anything but an object without repeated fields.
///
/// serde would also read an array as a struct, hence the look at the first byte.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    json.starts_with('{').then(|| serde_json::from_str(json).ok()).flatten()
}

fn is_whole(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') { owned::<String>(json).map(Cow::Owned) } else { Some(Cow::Borrowed(inside)) }
}

fn owned<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

fn id_of(json: &str) -> Option<Cow<'_, str>> {
    let id = if is_whole(json) { Cow::Borrowed(json) } else { text_of(json)? };
    is_id(&id).then_some(id)
}

/// Ids are opaque. Stripe's own have up to 255 characters (<https://docs.stripe.com/upgrades>, *Backward-compatible
/// changes*); that none has spaces or control characters is our own demand (PostgreSQL could not even store a NUL).
fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace())
}

/// Declares a wire object: every field is raw, a missing field is absent, unknown fields are skipped.
macro_rules! wire_objects {
    ($($(#[$doc:meta])* $name:ident { $($field:ident $(as $rename:literal)?),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Deserialize)]
        #[serde(default)]
        pub(super) struct $name<'a> {
            $(#[serde(borrow $(, rename = $rename)?)]
            pub(super) $field: Raw<'a>,)*
        })*
    };
}

wire_objects! {
    /// Any object, for its id alone.
    Named { id }
    List { data }
    Charge {
        id, object, deleted, livemode, created, amount, amount_captured, amount_refunded, balance_transaction,
        captured, currency, invoice, metadata, payment_intent, refunded, status,
    }
    BalanceTransaction { id, object, available_on, amount, created, currency, fee, kind as "type", reporting_category, source }
    Refund { id, object, deleted, amount, balance_transaction, charge, created, currency, payment_intent, status }
    Dispute {
        id, object, deleted, livemode, created, amount, balance_transactions, charge, currency, payment_intent,
        status,
    }
    Payout { id, object, deleted, livemode, created, amount, arrival_date, balance_transaction, currency, status }
    Invoice {
        id, object, deleted, livemode, created, amount_overpaid, amount_paid, amount_paid_off_stripe, charge,
        paid_out_of_band, payment_intent, payments, status,
    }
    InvoicePayment { id, object, invoice, is_default, payment, status }
    AssociatedPayment { charge, payment_intent, kind as "type" }
    Session {
        id, object, deleted, livemode, created, amount_total, invoice, mode, payment_intent, payment_status, status,
    }
    PaymentIntent {
        id, object, deleted, livemode, created, charges, invoice, last_payment_error, latest_charge, status,
    }
}

wire_objects! {
    /// A charge as an event carries it; old versions embed its refunds.
    EventCharge { id, object, captured, invoice, payment_intent, refunds, status }
}

/// An event's envelope. Its `data` is read in the same pass.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) object: Raw<'a>,
    #[serde(borrow)]
    pub(super) account: Raw<'a>,
    #[serde(borrow)]
    pub(super) created: Raw<'a>,
    #[serde(borrow)]
    pub(super) livemode: Raw<'a>,
    #[serde(borrow)]
    pub(super) pending_webhooks: Raw<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) data: EventData<'a>,
}

/// `data` of an event; both parts absent where `data` is no object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventData<'a> {
    pub(super) object: Raw<'a>,
    pub(super) previous_attributes: Raw<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for EventData<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EventDataVisitor).map(|data: EventData<'de>| data)
    }
}

struct EventDataVisitor;

impl<'de> Visitor<'de> for EventDataVisitor {
    type Value = EventData<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the data of an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut data = EventData::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "object" => data.object = once(data.object, map.next_value()?)?,
                "previous_attributes" => {
                    data.previous_attributes = once(data.previous_attributes, map.next_value()?)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(data)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(EventData::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(EventData::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(EventData::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(EventData::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(EventData::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(EventData::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(EventData::default())
    }
}

fn once<'a, E: serde::de::Error>(before: Raw<'a>, now: Raw<'a>) -> Result<Raw<'a>, E> {
    if before.0.is_some() { Err(E::custom("repeated field")) } else { Ok(now) }
}

/// One field of an object; `None` where it has none of that name.
pub(super) fn field<'a>(json: &'a str, name: &str) -> Option<Raw<'a>> {
    let fields: BTreeMap<Cow<'a, str>, Raw<'a>> = parse_object(json)?;
    fields.get(name).copied()
}

/// Looks a dotted path up and returns the text or whole number at its end. A key that itself has
/// dots is found as well (`metadata.shop.order` finds `{"metadata":{"shop.order":…}}`).
pub(super) fn at_path(json: &str, path: &str) -> Option<String> {
    let fields: BTreeMap<Cow<'_, str>, Raw<'_>> = parse_object(json)?;
    if let Some(end) = fields.get(path) {
        return match end.id() {
            Read::Value(text) => Some(text.into_owned()),
            _ => None,
        };
    }
    path.match_indices('.').find_map(|(dot, _)| match fields.get(&path[..dot])?.object() {
        Read::Value(inner) => at_path(inner, &path[dot + 1..]),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c37_ids_keep_every_digit() {
        let id = |json| Raw::of(json).id();
        assert_eq!(id("9007199254740992"), Read::Value("9007199254740992".into()));
        assert_eq!(id("9007199254740993"), Read::Value("9007199254740993".into()));
        assert_eq!(id("9223372036854775807"), Read::Value("9223372036854775807".into()));
        assert_eq!(id("92233720368547758070000"), Read::Value("92233720368547758070000".into()));
        assert_eq!(id("123"), id("\"123\""));
        for wrong in ["1.0", "1e3", "true", "[]", "{}", "\"\"", "\"a b\"", "\"a\\u0000\"", "\"\\ud800\""] {
            assert_eq!(id(wrong), Read::Wrong, "{wrong}");
        }
    }

    #[test]
    fn c35_one_reference_in_four_forms() {
        let reference = |json| match Raw::of(json).reference() {
            Read::Value(reference) => Some(reference.id.into_owned()),
            Read::Null => None,
            other => panic!("{other:?}"),
        };
        for form in [r#""cus_1""#, r#"{"id":"cus_1"}"#, r#"{"id":"cus_1","deleted":true}"#] {
            assert_eq!(reference(form).as_deref(), Some("cus_1"), "{form}");
        }
        assert_eq!(reference("null"), None);
    }

    #[test]
    fn amounts_are_read_from_digits() {
        assert_eq!(Raw::of("9223372036854775807").whole(), Read::Value(i64::MAX));
        for wrong in ["9223372036854775808", "1.0", "1e2", "\"100\"", "[1]"] {
            assert_eq!(Raw::of(wrong).whole(), Read::Wrong, "{wrong}");
        }
    }

    #[test]
    fn a_path_may_lead_through_keys_with_dots() {
        let json = r#"{"metadata":{"order_id":"o-1","shop.order":7,"deep":{"x":"y"}},"n":[1]}"#;
        assert_eq!(at_path(json, "metadata.order_id").as_deref(), Some("o-1"));
        assert_eq!(at_path(json, "metadata.shop.order").as_deref(), Some("7"));
        assert_eq!(at_path(json, "metadata.deep.x").as_deref(), Some("y"));
        assert_eq!(at_path(json, "metadata.none"), None);
        assert_eq!(at_path(json, "n.0"), None);
        assert_eq!(at_path("[]", "a"), None);
    }
}
