//! Doubt: which findings rest on a payment being known whole. A window shows some of its charges, refunds and
//! disputes; a row that names the payment may belong to one that was not seen.
//!
//! The one thing to get right: what stands on exact ids (rows of a refund on that refund) needs no more than
//! that one record, and is found however little else is known. Only what would book money needs every name of its
//! payment: a row of another time may stand on an invoice that nothing in the window names.

use super::{Action, Finding, Group, Judgement, Kind, Severity};
use crate::record::EffectKind;
use std::collections::BTreeSet;

/// Kinds of effect for which the books have a row that names no object that was seen to carry such an effect.
#[must_use]
pub fn loose_kinds(root_id: &str, group: &Group) -> BTreeSet<EffectKind> {
    let anchors: BTreeSet<(EffectKind, &str)> =
        group.provider_effects.iter().map(|effect| (effect.kind, effect.object_id.as_str())).collect();
    let own = group.local_effects.iter().filter(|row| row.root_id == root_id);
    own.filter(|row| !anchors.contains(&(row.kind, &row.object_id))).map(|row| row.kind).collect()
}

impl Judgement {
    /// Whether more than was seen of the payment may change what was found of it.
    #[must_use]
    pub fn is_doubtful(&self, loose: &BTreeSet<EffectKind>) -> bool {
        self.findings.iter().any(|finding| rests_on_whole(finding, loose))
    }

    /// Whether money would be booked, or a row is said to be booked elsewhere: before that, every name must be known
    /// under which the books may have it.
    #[must_use]
    pub fn rests_on_names(&self) -> bool {
        self.findings.iter().any(rests_on_names)
    }

    /// Says of such findings that not every name of the payment could be had.
    pub fn say_unnamed(&mut self) {
        for finding in self.findings.iter_mut().filter(|finding| rests_on_names(finding)) {
            finding.note.push_str("; whether an invoice was paid with it was not asked, or not answered");
        }
    }

    /// Takes back what was found of a payment that could not be asked for whole: what would have been corrected
    /// is for a person.
    pub fn doubt(&mut self, loose: &BTreeSet<EffectKind>) {
        for finding in self.findings.iter_mut().filter(|finding| rests_on_whole(finding, loose)) {
            if finding.kind == Kind::TimingDifference {
                continue;
            }
            let said = std::mem::take(&mut finding.note);
            if finding.action.is_correctable() {
                finding.note = format!("it looks like {} ({said})", finding.kind);
                finding.kind = Kind::NeedsReview;
                "not_asked_whole".clone_into(&mut finding.cause);
                finding.severity = Severity::Major;
                finding.target_state = None;
                finding.action = Action::Review;
            } else {
                finding.note = said;
            }
            finding.note.push_str("; the payment was not asked for whole");
        }
    }
}

impl Finding {
    /// The effect that would be booked, where one would be.
    #[must_use]
    pub fn booked(&self) -> Option<EffectKind> {
        let books = matches!(self.action, Action::ReplayEvent | Action::ApplyEffect);
        self.effect.filter(|_| books)
    }

    /// Takes a booking back, because rows stand in the books for it, by id and the team's word for how they stand: one of
    /// them is to be put right, and a second one would book it twice.
    pub fn leave_standing(&mut self, rows: &[(&str, &str)]) {
        let named = |(id, status): &(&str, &str)| match *status {
            "" => format!("{id} (without a status)"),
            status => format!("{id} ({status})"),
        };
        let rows_text: Vec<String> = rows.iter().map(named).collect();
        let said = std::mem::take(&mut self.note);
        let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
        self.note = format!(
            "it looks like {}{said}, but in the books stands for it: {}, which effects.sql leaves out. Put that row right; \
             a second one would book it twice",
            self.kind,
            rows_text.join(", ")
        );
        self.kind = Kind::NeedsReview;
        "not_booked_status".clone_into(&mut self.cause);
        self.effect_ids = rows.iter().map(|(id, _)| (*id).to_owned()).collect();
        self.target_state = None;
        self.action = Action::Review;
    }
}

fn rests_on_names(finding: &Finding) -> bool {
    let is_elsewhere = finding.effect.is_some() && finding.kind == Kind::MisattributedEffect;
    finding.booked().is_some() || is_elsewhere
}

fn rests_on_whole(finding: &Finding, loose: &BTreeSet<EffectKind>) -> bool {
    let is_of_status = finding.expected_state.is_some()
        || finding.found_state.is_some()
        || finding.kind == Kind::AmountMismatch && finding.effect.is_none();
    is_of_status || finding.effect.is_some_and(|kind| loose.contains(&kind))
}
