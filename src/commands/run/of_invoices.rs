//! Groups that are judged together: an invoice that several payments paid, and these.

use crate::findings::{Context, Group, Judgement, join_purchase, judge, loose_kinds, restrain, share_out};
use crate::gather::Sides;
use crate::provider::stripe;
use crate::record::{InvoiceParts, Scope};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// What was said of each group, by root.
pub(super) type Said = BTreeMap<String, (Group, Judgement)>;

/// Adds what must be judged together with these roots: an invoice that several payments paid, and they all.
pub(super) async fn with_payments(
    sides: &Sides<'_>,
    roots: &mut BTreeSet<String>,
) -> Result<Vec<InvoiceParts>> {
    let invoices = sides.provider.invoices_of(roots).await?;
    roots.extend(invoices.iter().flat_map(InvoiceParts::roots).cloned());
    Ok(invoices)
}

/// Judges groups, an invoice after its payments. Answers them as they were judged but for what an invoice took
/// from its payments.
pub(super) fn judge_all(
    context: &Context,
    scope: &Scope,
    mut groups: BTreeMap<String, Group>,
    invoices: &[InvoiceParts],
) -> Said {
    for invoice in invoices {
        join_purchase(&mut groups, invoice);
    }
    let mut judgements = judgements(context, scope, groups.clone(), invoices);
    groups
        .into_iter()
        .map(|(root_id, group)| {
            let judgement = judgements.remove(&root_id).unwrap_or_default();
            (root_id, (group, judgement))
        })
        .collect()
}

/// Groups of which more than was seen may change what was found.
#[derive(Debug, Default)]
pub(super) struct Doubtful {
    pub(super) groups: BTreeMap<String, Group>,
    /// Those of them of which only the names are in doubt: they are asked for last.
    pub(super) by_name: BTreeSet<String>,
}

/// Takes out the groups of which more than was seen may change what was found, with all that share an invoice
/// with them.
pub(super) fn doubtful(said: &mut Said, invoices: &[InvoiceParts]) -> Doubtful {
    let found =
        said.iter().filter(|(root, (group, judgement))| judgement.is_doubtful(&loose_kinds(root, group)));
    let mut roots: BTreeSet<String> = found.map(|(root, _)| root.clone()).collect();
    let unnamed =
        said.iter().filter(|(root, (_, judgement))| is_by_intent(root) && judgement.rests_on_names());
    let by_name: BTreeSet<String> =
        unnamed.map(|(root, _)| root.clone()).filter(|root| !roots.contains(root)).collect();
    roots.extend(by_name.iter().cloned());
    for invoice in invoices {
        if invoice.roots().any(|root| roots.contains(root)) {
            roots.extend(invoice.roots().cloned());
        }
    }
    let groups = said.extract_if(.., |root, _| roots.contains(root));
    Doubtful { groups: groups.map(|(root, (group, _))| (root, group)).collect(), by_name }
}

/// Whether an invoice may have been paid with it, as one of several payments.
pub(super) fn is_by_intent(root_id: &str) -> bool {
    stripe::stream_of_id(root_id) == Some("payment_intents")
}

fn judgements(
    context: &Context,
    scope: &Scope,
    mut groups: BTreeMap<String, Group>,
    invoices: &[InvoiceParts],
) -> BTreeMap<String, Judgement> {
    for invoice in invoices {
        share_out(&mut groups, invoice);
    }
    let wholes: BTreeSet<&String> = invoices.iter().map(|invoice| &invoice.invoice_id).collect();
    let last: BTreeMap<String, Group> = groups.extract_if(.., |root, _| wholes.contains(root)).collect();
    let mut judgements: BTreeMap<String, Judgement> = BTreeMap::new();
    for (root_id, group) in groups {
        let judgement = judge(context, scope, &root_id, group);
        judgements.insert(root_id, judgement);
    }
    for (root_id, mut group) in last {
        let payments = || invoices.iter().filter(|invoice| invoice.invoice_id == root_id);
        let mut of_payments = payments().flat_map(|invoice| &invoice.payment_ids);
        group.is_explained =
            of_payments.any(|root| judgements.get(root).is_some_and(|judgement| judgement.explains_state));
        let judgement = judge(context, scope, &root_id, group);
        judgements.insert(root_id, judgement);
    }
    for invoice in invoices {
        restrain(&mut judgements, invoice);
    }
    judgements
}
