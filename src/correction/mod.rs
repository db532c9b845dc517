//! Corrections: from findings to the plan that a person reviews, and the caps that stop a plan. Pure.
//!
//! The one thing to get right: a correction's id covers every field and the run, so an edited row, a
//! row of another run and a row of another store are all the same thing: unknown.

mod caps;

pub use caps::{CapError, check_caps};

use crate::findings::{Action, Finding, Kind};
use crate::record::{EffectKey, EffectKind, Scope, Status, id_of};
use std::collections::{BTreeMap, BTreeSet};

/// One row of `plan.csv`, with what carrying it out needs besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Hash of everything below and of the run; a row that was edited no longer has its id.
    pub correction_id: String,
    /// The finding that it answers.
    pub finding_id: String,
    /// Scope.
    pub scope: Scope,
    /// What to do; always a correctable action.
    pub action: Action,
    /// `kind:object` of the effect to book, `reverse:<entry id>`, `state:<object>`, or
    /// `event:<event id>` where an event stands for nothing that the books hold.
    pub effect_key: String,
    /// The object.
    pub object_id: String,
    /// The group (the payment).
    pub root_id: String,
    /// Effect kind, where money moves.
    pub effect: Option<EffectKind>,
    /// Lower-case ISO code, empty where no money moves.
    pub currency: String,
    /// Signed minor units that the local balance moves by when it is carried out.
    pub amount_minor: i64,
    /// Status to set: for `set_state`, and beside a booked effect where the status lags with it.
    pub target_state: Option<Status>,
    /// Why, for the ledger.
    pub reason: String,
    /// `review`, or `auto` where the configuration allows the kind without a reviewed plan.
    pub allowed_by: String,
    /// Events to replay.
    pub event_ids: Vec<String>,
    /// Local rows concerned; for `reverse_entry` the row that is kept, then the row that is reversed.
    pub effect_ids: Vec<String>,
    /// The provider's time of the effect, Unix µs.
    pub occurred_at_us: i64,
}

/// [`Correction::allowed_by`] of a kind that the configuration lets `--apply` correct.
pub const ALLOWED_AUTO: &str = "auto";
/// [`Correction::allowed_by`] of every other kind.
pub const ALLOWED_REVIEW: &str = "review";

impl Correction {
    /// The kind of the finding that it answers, which its reason begins with.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        let word = self.reason.split(':').next().unwrap_or_default();
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The id that these fields have in the plan of `run_id`: the first 16 bytes of SHA-256 over
    /// every field with its length, in hex.
    #[must_use]
    pub fn expected_id(&self, run_id: &str) -> String {
        let amount = self.amount_minor.to_string();
        let occurred = self.occurred_at_us.to_string();
        let events = self.event_ids.join("|");
        let effects = self.effect_ids.join("|");
        let parts = [
            run_id,
            &*self.finding_id,
            &*self.scope.provider,
            &*self.scope.account,
            &*self.scope.mode,
            self.action.as_str(),
            &*self.effect_key,
            &*self.object_id,
            &*self.root_id,
            self.effect.map_or("", EffectKind::as_str),
            &*self.currency,
            &*amount,
            self.target_state.map_or("", Status::as_str),
            &*self.reason,
            &*self.allowed_by,
            &*events,
            &*effects,
            &*occurred,
        ];
        id_of(&parts)
    }
}

/// What planning needs besides the findings.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    /// The run that plans.
    pub run_id: &'a str,
    /// Kinds that the configuration lets `--apply` correct without a reviewed plan.
    pub auto: &'a BTreeSet<Kind>,
    /// Amounts of local rows by row id, as the ledger has them (minor units, magnitudes). Where a
    /// row that a duplicate names is not here, its share of an equally split difference is planned,
    /// and carrying it out checks that against the row.
    pub entry_amounts: &'a BTreeMap<String, i64>,
}

/// The findings' corrections, in finding order. A finding whose correction cannot be stated exactly
/// (a duplicate whose rows' amounts are unknown and do not split evenly) gets none: it stays open.
#[must_use]
pub fn plan(findings: &[Finding], context: PlanContext<'_>) -> Vec<Correction> {
    let mut corrections = Vec::new();
    for finding in findings {
        match finding.action {
            Action::ReplayEvent => corrections.extend(replay(finding, context)),
            Action::ApplyEffect => corrections.extend(book(finding, Action::ApplyEffect, context)),
            Action::ReverseEntry => corrections.extend(reversals(finding, context)),
            Action::SetState => corrections.extend(set_state(finding, context)),
            Action::Review | Action::None => {}
        }
    }
    for correction in &mut corrections {
        correction.correction_id = correction.expected_id(context.run_id);
    }
    corrections
}

/// Books an effect through its events; an event that only changes a status becomes `set_state`.
fn replay(finding: &Finding, context: PlanContext<'_>) -> Option<Correction> {
    if finding.effect.is_some() {
        return book(finding, Action::ReplayEvent, context);
    }
    if finding.expected_state.is_some() {
        return set_state(finding, context);
    }
    let event_id = finding.event_ids.first()?;
    Some(Correction {
        effect_key: format!("event:{event_id}"),
        ..base(finding, Action::ReplayEvent, context)
    })
}

fn book(finding: &Finding, action: Action, context: PlanContext<'_>) -> Option<Correction> {
    let kind = finding.effect?;
    let amount_minor = finding.difference_minor()?;
    // A missing effect moves the balance the way its kind does; anything else is not a missing effect.
    if amount_minor.signum() == -kind.sign() {
        return None;
    }
    Some(Correction {
        effect_key: EffectKey::of(&finding.scope, kind, &finding.object_id).key,
        currency: finding.currency.clone(),
        amount_minor,
        target_state: finding.target_state,
        ..base(finding, action, context)
    })
}

/// One compensating entry for each excess row: every row but the first, which is kept.
fn reversals(finding: &Finding, context: PlanContext<'_>) -> Vec<Correction> {
    let Some((kept, excess)) = finding.effect_ids.split_first() else { return Vec::new() };
    let (Some(kind), Some(difference)) = (finding.effect, finding.difference_minor()) else {
        return Vec::new();
    };
    let Some(amounts) = reversal_amounts(excess, kind, difference, context.entry_amounts) else {
        return Vec::new();
    };
    let of_row = |(entry_id, amount_minor): (&String, i64)| Correction {
        effect_key: EffectKey::reverse(&finding.scope, entry_id).key,
        currency: finding.currency.clone(),
        amount_minor,
        effect_ids: vec![kept.clone(), entry_id.clone()],
        ..base(finding, Action::ReverseEntry, context)
    };
    excess.iter().zip(amounts).map(of_row).collect()
}

/// Signed movement of each reversal: minus the row's signed amount.
fn reversal_amounts(
    excess: &[String],
    kind: EffectKind,
    difference: i64,
    known: &BTreeMap<String, i64>,
) -> Option<Vec<i64>> {
    let from_rows: Option<Vec<i64>> =
        excess.iter().map(|entry_id| known.get(entry_id)?.checked_mul(-kind.sign())).collect();
    if from_rows.is_some() {
        return from_rows;
    }
    let rows = i64::try_from(excess.len()).ok()?;
    let splits = rows > 0 && difference != 0 && difference % rows == 0;
    splits.then(|| vec![difference / rows; excess.len()])
}

fn set_state(finding: &Finding, context: PlanContext<'_>) -> Option<Correction> {
    Some(Correction {
        effect_key: format!("state:{}", finding.object_id),
        effect: None,
        target_state: Some(finding.expected_state?),
        ..base(finding, Action::SetState, context)
    })
}

/// The fields that every correction takes from its finding; no money yet.
fn base(finding: &Finding, action: Action, context: PlanContext<'_>) -> Correction {
    let allowed_by = if context.auto.contains(&finding.kind) { ALLOWED_AUTO } else { ALLOWED_REVIEW };
    let reason = match &*finding.cause {
        "" => finding.kind.to_string(),
        cause => format!("{}: {cause}", finding.kind),
    };
    Correction {
        correction_id: String::new(),
        finding_id: finding.id(),
        scope: finding.scope.clone(),
        action,
        effect_key: String::new(),
        object_id: finding.object_id.clone(),
        root_id: finding.root_id.clone(),
        effect: finding.effect,
        currency: String::new(),
        amount_minor: 0,
        target_state: None,
        reason,
        allowed_by: allowed_by.to_owned(),
        event_ids: finding.event_ids.clone(),
        effect_ids: finding.effect_ids.clone(),
        occurred_at_us: finding.occurred_at_us,
    }
}

#[cfg(test)]
mod tests;
