//! A payment in a team's own books, held against a correction: may it still be carried out, and did it happen? Pure.
//!
//! The one thing to get right: a row may name the object or the payment as a whole, so both are looked at; what a
//! correction did is the difference of two looks, never what a statement or a handler says of itself.

use crate::correction::Correction;
use crate::record::{EffectKind, LocalEffect, LocalState};
use std::collections::BTreeMap;

/// What rows come to, by kind and currency: magnitudes in minor units, no zeros.
pub type Sums = BTreeMap<(EffectKind, String), i128>;

/// Why a correction is not as it was reviewed; one line without an end.
pub type Why = String;

/// What these rows come to.
#[must_use]
pub fn sums<'a>(rows: impl IntoIterator<Item = &'a LocalEffect>) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        *sums.entry((row.kind, row.currency.clone())).or_default() += i128::from(row.amount_minor);
    }
    sums.retain(|_, minor| *minor != 0);
    sums
}

/// Whether nothing of an effect is in the books: neither on its object, nor on the payment so that all that the
/// provider has of this kind (`provider_minor`) is there already.
///
/// # Errors
/// What is there.
pub fn check_absent(
    rows: &[LocalEffect],
    row: &Correction,
    kind: EffectKind,
    provider_minor: i128,
) -> Result<(), Why> {
    let own = rows.iter().filter(|local| local.kind == kind && local.object_id == row.object_id);
    if let Some(((_, currency), minor)) = sums(own).into_iter().next() {
        return Err(format!("{minor} minor units of {currency} are booked for it by now"));
    }
    let is_on_payment = |local: &&LocalEffect| local.kind == kind && local.object_id == row.root_id;
    let on_payment = sums(rows.iter().filter(is_on_payment));
    let all = sums(rows.iter().filter(|local| local.kind == kind));
    let all = all.get(&(kind, row.currency.clone())).copied().unwrap_or_default();
    if row.object_id != row.root_id && !on_payment.is_empty() && all >= provider_minor {
        return Err(format!("all {all} minor units of {} are booked on the payment by now", row.currency));
    }
    Ok(())
}

/// Whether an effect is in the books just as planned: on its object, or with all that the provider has of this kind on
/// the payment. `minor` is its magnitude.
#[must_use]
pub fn shows(
    rows: &[LocalEffect],
    row: &Correction,
    kind: EffectKind,
    minor: i64,
    provider_minor: i128,
) -> bool {
    let of_kind = || rows.iter().filter(|local| local.kind == kind);
    let planned: Sums = [((kind, row.currency.clone()), i128::from(minor))].into();
    let own = sums(of_kind().filter(|local| local.object_id == row.object_id));
    let whole: Sums = [((kind, row.currency.clone()), provider_minor)].into();
    own == planned || (own.is_empty() && sums(of_kind()) == whole)
}

/// The row that a reversal takes back, if it and the row that is kept both stand as planned.
///
/// # Errors
/// What is otherwise.
pub fn check_reversal<'a>(
    rows: &'a [LocalEffect],
    row: &Correction,
    kind: EffectKind,
) -> Result<&'a LocalEffect, Why> {
    let [kept, excess] = &*row.effect_ids else {
        return Err("it names no row to keep and one to take back".to_owned());
    };
    let standing = |id: &String| {
        let found = rows.iter().find(|local| local.effect_id == *id && local.kind == kind);
        let Some(found) = found else { return Err(format!("the row {id} is gone")) };
        match rows.iter().find(|local| local.corrects_effect_id == *id) {
            Some(undoing) => Err(format!("the row {id} is undone by {}", undoing.effect_id)),
            None => Ok(found),
        }
    };
    standing(kept)?;
    let found = standing(excess)?;
    let movement = found.amount_minor.checked_mul(-kind.sign());
    if kept == excess || movement != Some(row.amount_minor) || found.currency != row.currency {
        return Err(format!("the row {excess} has another amount"));
    }
    Ok(found)
}

/// Whether the books moved by exactly this between two looks, and nothing else of the payment did. `minor` is a
/// magnitude, negative where a row is taken back.
///
/// # Errors
/// What they moved by instead.
pub fn check_moved(
    before: &[LocalEffect],
    after: &[LocalEffect],
    (kind, currency): (EffectKind, &str),
    minor: i64,
) -> Result<(), Why> {
    let mut moved = sums(after);
    for (key, minor) in sums(before) {
        *moved.entry(key).or_default() -= minor;
    }
    moved.retain(|_, minor| *minor != 0);
    if moved == Sums::from([((kind, currency.to_owned()), i128::from(minor))]) {
        return Ok(());
    }
    let told: Vec<String> =
        moved.iter().map(|((kind, currency), minor)| format!("{kind} {minor} {currency}")).collect();
    let told = if told.is_empty() { "nothing".to_owned() } else { told.join(", ") };
    Err(format!("effects.sql shows that {told} moved instead of {kind} {minor} {currency} (minor units)"))
}

/// Whether every row that is new is on the correction's object, or on the payment as a whole.
///
/// # Errors
/// A row that is elsewhere.
pub fn check_placed(before: &[LocalEffect], after: &[LocalEffect], row: &Correction) -> Result<(), Why> {
    let is_new = |local: &&LocalEffect| before.iter().all(|old| old.effect_id != local.effect_id);
    let is_elsewhere =
        |local: &&LocalEffect| local.object_id != row.object_id && local.object_id != row.root_id;
    match after.iter().filter(is_new).find(is_elsewhere) {
        Some(local) => {
            Err(format!("the row {} is on {} instead of {}", local.effect_id, local.object_id, row.object_id))
        }
        None => Ok(()),
    }
}

/// The status row that a correction is about: of its object, else of the payment, else any of the payment's.
#[must_use]
pub fn status_of<'a>(states: &'a [LocalState], row: &Correction) -> Option<&'a LocalState> {
    let of = |id: &str| states.iter().find(|state| state.object_id == id);
    of(&row.object_id).or_else(|| of(&row.root_id)).or(states.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Action;
    use crate::record::Scope;

    fn local(id: &str, object: &str, minor: i64, corrects: &str) -> LocalEffect {
        LocalEffect {
            scope: Scope::new("stripe", "", "live"),
            root_id: "pi_1".to_owned(),
            object_id: object.to_owned(),
            effect_id: id.to_owned(),
            kind: EffectKind::Credit,
            amount_minor: minor,
            currency: "usd".to_owned(),
            applied_at_us: 1,
            event_id: String::new(),
            corrects_effect_id: corrects.to_owned(),
            in_window: true,
        }
    }

    fn row(minor: i64, effect_ids: &[&str]) -> Correction {
        Correction {
            correction_id: String::new(),
            finding_id: String::new(),
            scope: Scope::new("stripe", "", "live"),
            action: Action::ApplyEffect,
            effect_key: "credit:ch_1".to_owned(),
            object_id: "ch_1".to_owned(),
            root_id: "pi_1".to_owned(),
            effect: Some(EffectKind::Credit),
            currency: "usd".to_owned(),
            amount_minor: minor,
            target_state: None,
            reason: String::new(),
            allowed_by: String::new(),
            event_ids: Vec::new(),
            effect_ids: effect_ids.iter().map(|id| (*id).to_owned()).collect(),
            occurred_at_us: 1,
        }
    }

    const CREDIT: EffectKind = EffectKind::Credit;

    #[test]
    fn an_effect_is_absent_until_its_object_or_the_whole_payment_has_it() {
        let row = row(500, &[]);
        let check = |rows: &[LocalEffect], provider| check_absent(rows, &row, CREDIT, provider);
        assert_eq!(check(&[], 500), Ok(()));
        assert_eq!(check(&[local("1", "ch_1", 500, ""), local("2", "ch_1", -500, "1")], 500), Ok(()));
        assert!(check(&[local("1", "ch_1", 500, "")], 500).is_err());
        assert!(check(&[local("1", "ch_1", 499, "")], 500).is_err());
        assert!(check(&[local("1", "pi_1", 500, "")], 500).is_err(), "under the payment's own id");
        assert_eq!(check(&[local("1", "pi_1", 700, "")], 1_200), Ok(()), "another charge of the payment");
        assert_eq!(check(&[local("1", "ch_2", 700, "")], 1_200), Ok(()), "another charge by its id");
        assert!(check(&[local("1", "ch_2", 700, ""), local("2", "pi_1", 500, "")], 1_200).is_err());
    }

    #[test]
    fn an_effect_shows_on_its_object_or_on_the_payment() {
        let row = row(500, &[]);
        let seen = |rows: &[LocalEffect], provider| shows(rows, &row, CREDIT, 500, provider);
        assert!(seen(&[local("1", "ch_1", 500, "")], 500));
        assert!(seen(&[local("1", "pi_1", 500, "")], 500));
        assert!(!seen(&[local("1", "ch_1", 1_000, "")], 500), "twice");
        assert!(!seen(&[local("1", "ch_1", 500, ""), local("2", "ch_1", 500, "")], 500), "two rows");
        assert!(!seen(&[], 500));
        assert!(!seen(&[local("1", "pi_1", 500, "")], 1_200));
    }

    #[test]
    fn a_reversal_needs_both_rows_as_planned() {
        let row = row(-500, &["1", "2"]);
        let rows = vec![local("1", "pi_1", 500, ""), local("2", "ch_1", 500, "")];
        let check =
            |rows: &[LocalEffect]| check_reversal(rows, &row, CREDIT).map(|row| row.effect_id.clone());
        assert_eq!(check(&rows).as_deref(), Ok("2"));
        assert!(check(&rows[1..]).unwrap_err().contains("row 1 is gone"));
        assert!(check(&rows[..1]).unwrap_err().contains("row 2 is gone"));
        let mut undone = rows.clone();
        undone.push(local("3", "ch_1", -500, "2"));
        assert!(check(&undone).unwrap_err().contains("undone by 3"));
        let other = [rows[0].clone(), local("2", "ch_1", 400, "")];
        assert!(check(&other).unwrap_err().contains("another amount"));
    }

    #[test]
    fn a_new_row_is_on_its_object_or_on_the_payment() {
        let before = [local("1", "ch_2", 500, "")];
        let placed = |object: &str| {
            let after = [before[0].clone(), local("2", object, 500, "")];
            check_placed(&before, &after, &row(500, &[]))
        };
        assert_eq!(placed("ch_1"), Ok(()));
        assert_eq!(placed("pi_1"), Ok(()));
        assert!(placed("ch_2").unwrap_err().contains("is on ch_2 instead of ch_1"));
    }

    #[test]
    fn the_books_move_by_the_planned_amount_and_nothing_else() {
        let before = [local("1", "ch_1", 500, "")];
        let with = |more: LocalEffect| [before[0].clone(), more];
        let moved = |after: &[LocalEffect], minor| check_moved(&before, after, (CREDIT, "usd"), minor);
        assert_eq!(moved(&with(local("2", "ch_2", 300, "")), 300), Ok(()));
        assert_eq!(moved(&with(local("2", "ch_1", -500, "1")), -500), Ok(()));
        assert_eq!(moved(&[], -500), Ok(()), "a deleted row is taken back, too");
        assert!(moved(&before, 300).unwrap_err().contains("shows that nothing moved"));
        assert!(moved(&with(local("2", "ch_2", 3, "")), 300).unwrap_err().contains("credit 3 usd moved"));
        let fee = LocalEffect { kind: EffectKind::Fee, ..local("3", "ch_1", 1, "") };
        let both = [before[0].clone(), local("2", "ch_2", 300, ""), fee];
        assert!(moved(&both, 300).is_err(), "something else moved, too");
    }
}
