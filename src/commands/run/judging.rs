//! Steps two and three: compare in bounded memory, then load what is suspicious whole and judge it.

use super::Job;
use super::completing::Completing;
use super::gathering::{Gathered, fetch_given_back, fetch_ids};
use super::of_invoices::{Said, doubtful, is_by_intent, judge_all, with_payments};
use super::unbooked;
use super::unread::unread;
use crate::compare::{Comparer, Counts, RootKey, Suspicious};
use crate::findings::{
    Context, Counted, Finding, Group, InFlight, Intents, Judgement, Stray, Unread, conflicting_events,
    coverage_gaps, from_note, join_purchase, loose_kinds, unknown_event, wrong_scope,
};
use crate::gather::{CoverageStatus, Inbox, Moment, ProviderSide, Sides, ids_without_record};
use crate::provider::stripe::{self, Reading};
use crate::record::{Fact, InboxEvent, InvoiceParts, SECOND_US, Scope, Window};
use crate::report::tie_out::TieOutInput;
use crate::store;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Groups that are loaded and judged at once.
const GROUPS_MAX: usize = 20_000;

/// Longest time between an event's creation and its last delivery (Stripe: three days).
const RETRIES_US: i64 = 72 * 3600 * SECOND_US;

/// What the rules said.
pub(super) struct Judged {
    pub(super) findings: Vec<Finding>,
    pub(super) counted: Counted,
    pub(super) counts: Counts,
    pub(super) tie_out: TieOutInput,
    /// The moment of the local sides that were compared, Unix µs.
    pub(super) as_of_us: i64,
}

impl Judged {
    fn take(&mut self, judgement: Judgement) {
        self.counted.add(judgement.counted);
        for InFlight { scope, currency, kind, minor } in &judgement.in_flight {
            self.tie_out.add_in_flight(scope, currency, *kind, *minor);
        }
        self.findings.extend(judgement.findings);
    }
}

/// Compares the sides and judges every suspicious group.
pub(super) async fn compare_and_judge(job: &Job<'_>, gathered: &Gathered) -> Result<Judged> {
    let (suspicious, strays, as_of_us) = compare(job, gathered).await?;
    let mut judged = Judged {
        findings: strays.iter().map(wrong_scope).collect(),
        counted: Counted::default(),
        counts: suspicious.totals().counts,
        tie_out: TieOutInput::default(),
        as_of_us,
    };
    for ((scope, currency, kind), sums) in &suspicious.totals().sums {
        let signed =
            |minor: i128| i64::try_from(minor * i128::from(kind.sign())).context("a total leaves 64 bits");
        judged.tie_out.add_provider(scope, currency, *kind, signed(sums.provider_minor)?);
        judged.tie_out.add_local(scope, currency, *kind, signed(sums.local_minor)?);
    }
    let mut intents = Intents::default();
    let mut of_invoices = BTreeSet::new();
    let mut completing = Completing::new(job);
    // The keys come by scope.
    let mut roots = suspicious.roots()?.peekable();
    while let Some(first) = roots.next().transpose()? {
        let mut batch = BTreeSet::from([first.root_id]);
        let is_same = |key: &Result<RootKey>| key.as_ref().is_ok_and(|key| key.scope == first.scope);
        while batch.len() < GROUPS_MAX
            && let Some(key) = roots.next_if(is_same).transpose()?
        {
            batch.insert(key.root_id);
        }
        if let Some(reading) = gathered.readings.iter().find(|reading| reading.scope == first.scope) {
            let said =
                judge_batch(job, gathered, reading, &batch, (&mut of_invoices, &mut completing)).await?;
            for (root_id, (group, judgement)) in said {
                intents.add(&reading.scope, &root_id, &group);
                judged.take(judgement);
            }
        }
    }
    judged.findings.extend(confirmed(job, gathered, intents).await?.findings());
    Box::pin(unbooked::leave_standing(job, gathered, &mut judged.findings)).await?;
    judge_inbox_only(job, gathered, &suspicious, &mut judged).await?;
    judged.findings.extend(gathered.notes.iter().map(from_note));
    let gaps = gathered.coverage.iter().filter(|row| row.status == CoverageStatus::Gap);
    let gaps: Vec<_> = gaps
        .map(|row| (row.scope.clone(), row.stream.clone(), row.from_us, row.until_us, row.cause.clone()))
        .collect();
    judged.findings.extend(coverage_gaps(&gaps));
    Ok(judged)
}

/// Feeds every side's facts to the comparison, the local sides' of one moment, which is handed back with the rows of a
/// scope that is not configured.
async fn compare(job: &Job<'_>, gathered: &Gathered) -> Result<(Suspicious, Vec<Stray>, i64)> {
    let covered: BTreeMap<Scope, Vec<Window>> = gathered
        .readings
        .iter()
        .map(|reading| (reading.scope.clone(), gathered.event_ranges(&reading.scope)))
        .collect();
    let comparer = Comparer::new(&job.settings.compare, &std::env::temp_dir())?;
    let mut comparer = comparer.covering(covered);
    for reading in &gathered.readings {
        let side = ProviderSide { store: job.store, reading };
        let surveyed = gathered.surveyed(&reading.scope)?;
        side.scan(surveyed, &mut |fact| comparer.add(&fact)).await?;
    }
    let mut strays = BTreeSet::new();
    let mut admit = |fact: Fact| match admitted(job, gathered, &fact) {
        Admitted::Yes => comparer.add(&fact),
        Admitted::Stray(stray) => {
            strays.insert(stray);
            Ok(())
        }
        Admitted::No => Ok(()),
    };
    let mut moment = Moment::begin(gathered.local.as_ref(), gathered.inbox.as_ref()).await?;
    moment.effects(job.window, &mut admit).await?;
    moment.states(job.window, &mut admit).await?;
    moment.events(job.window, &mut admit).await?;
    let as_of_us = moment.as_of_us;
    moment.end().await?;
    Ok((comparer.finish()?, strays.into_iter().collect(), as_of_us))
}

enum Admitted {
    Yes,
    Stray(Stray),
    No,
}

/// Whether a local row takes part: its scope is read, and its kind is one that the local side books.
fn admitted(job: &Job<'_>, gathered: &Gathered, fact: &Fact) -> Admitted {
    let (scope, object_id, event_id, effect_id, at_us) = match fact {
        Fact::LocalEffect(row) => {
            (&row.scope, &row.object_id, row.event_id.clone(), row.effect_id.clone(), row.applied_at_us)
        }
        Fact::LocalState(row) => {
            (&row.scope, &row.object_id, String::new(), String::new(), row.updated_at_us)
        }
        Fact::InboxEvent(row) => {
            (&row.scope, &row.event_id, row.event_id.clone(), String::new(), row.received_at_us)
        }
        _ => return Admitted::No,
    };
    if let Some(reading) = gathered.readings.iter().find(|reading| reading.scope == *scope) {
        let is_booked = match fact {
            Fact::LocalEffect(row) => reading.effects.contains(&row.kind),
            _ => true,
        };
        return if is_booked { Admitted::Yes } else { Admitted::No };
    }
    if !job.request.providers.iter().any(|name| *name == *scope.provider) {
        return Admitted::No;
    }
    let (scope, object_id) = (scope.clone(), object_id.clone());
    Admitted::Stray(Stray { scope, object_id, event_id, effect_id, at_us })
}

/// Loads groups whole, asks the provider again for what no record stands behind, and judges. A payment that
/// then looks wrong is asked for whole and judged again. `of_invoices` are roots that were judged with another
/// batch, because they share an invoice with one of it.
async fn judge_batch(
    job: &Job<'_>,
    gathered: &Gathered,
    reading: &Reading,
    roots: &BTreeSet<String>,
    (of_invoices, completing): (&mut BTreeSet<(Scope, String)>, &mut Completing),
) -> Result<Said> {
    let sides = gathered.sides(job, reading)?;
    let mut roots = roots.clone();
    let mut invoices = with_payments(&sides, &mut roots).await?;
    roots.retain(|root| !of_invoices.contains(&(reading.scope.clone(), root.clone())));
    if roots.is_empty() {
        return Ok(Said::new());
    }
    let mut groups = sides.load(&roots).await?;
    let mut unproven = ids_without_record(&sides, &groups).await?;
    unproven.extend(sides.provider.not_stored(&roots, &invoices).await?);
    if job.resume_of.is_some() {
        // What the earlier run read may have changed since.
        unproven.extend(groups.keys().cloned());
        unproven.extend(groups.values().flat_map(|group| group.parts.iter().cloned()));
    }
    let was_asked = ask_again(job, gathered, &sides, unproven).await?;
    if was_asked != Asked::NothingNew {
        invoices = with_payments(&sides, &mut roots).await?;
        groups = sides.load(&roots).await?;
    }
    let context = Context {
        unread: unread(job, gathered, reading, &groups).await?,
        ..context(job, gathered, reading, was_asked != Asked::NotAll)
    };
    let mut said = judge_all(&context, &reading.scope, groups, &invoices);
    let doubtful = doubtful(&mut said, &invoices);
    let completed = completing.whole(job, gathered, &sides, &doubtful).await?;
    // What was read may have said that a payment is another one.
    let doubtful: BTreeSet<String> = doubtful.groups.into_keys().collect();
    let moved = store::resolve(job.store, &reading.scope, &doubtful, stripe::is_final_root).await?;
    let root_of = |root: &String| moved.get(root).map_or(root, |target| &target.root_id).clone();
    let mut whole: BTreeSet<String> = completed.whole.iter().map(root_of).collect();
    let unnamed: BTreeSet<String> = completed.unnamed.iter().map(root_of).collect();
    let mut again: BTreeSet<String> = doubtful.iter().map(root_of).collect();
    let of_again = with_payments(&sides, &mut again).await?;
    // An invoice is whole where all of its payments are.
    for invoice in &of_again {
        if !invoice.roots().all(|root| whole.contains(root)) {
            whole.retain(|root| !invoice.roots().any(|one| one == root));
        }
    }
    for (root_id, (group, mut judgement)) in
        judge_all(&context, &reading.scope, sides.load(&again).await?, &of_again)
    {
        if !whole.contains(&root_id) {
            judgement.doubt(&loose_kinds(&root_id, &group));
        }
        if is_by_intent(&root_id) && (!whole.contains(&root_id) || unnamed.contains(&root_id)) {
            judgement.say_unnamed();
        }
        said.insert(root_id, (group, judgement));
    }
    let roots_of_invoices = invoices.iter().chain(&of_again).flat_map(InvoiceParts::roots);
    of_invoices.extend(roots_of_invoices.map(|root| (reading.scope.clone(), root.clone())));
    Ok(said)
}

fn context(job: &Job<'_>, gathered: &Gathered, reading: &Reading, provider_was_asked: bool) -> Context {
    let grace_us = if job.request.no_grace { 0 } else { reading.settle_delay_us };
    Context {
        window: job.window,
        pending_since_us: job.request.now_us - grace_us,
        has_event_leg: gathered.inbox.is_some() && !gathered.event_ranges(&reading.scope).is_empty(),
        provider_was_asked: provider_was_asked && !gathered.lacks_permission(&reading.scope, None),
        unread: Unread::NONE,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Every id was known to be fresh, or the provider has nothing of it.
    NothingNew,
    /// Records were read anew.
    Fresh,
    /// Offline, or more ids than the cap.
    NotAll,
}

/// Reads again what the store holds from an earlier run, and what it does not hold at all.
async fn ask_again(
    job: &Job<'_>,
    gathered: &Gathered,
    sides: &Sides<'_>,
    ids: BTreeSet<String>,
) -> Result<Asked> {
    if ids.is_empty() {
        return Ok(Asked::NothingNew);
    }
    let Some(client) = gathered.clients.get(&*sides.provider.reading.scope.provider) else {
        return Ok(Asked::NotAll);
    };
    let stale = sides.provider.not_read_since(&ids, job.request.now_us).await?;
    let is_capped = stale.len() > job.settings.limits.ask_count_max;
    let stale: BTreeSet<String> = stale.into_iter().take(job.settings.limits.ask_count_max).collect();
    let mut found = fetch_ids(job, gathered, sides.provider, client, stale).await?;
    if job.resume_of.is_some() {
        // The earlier run may have been killed between keeping a record and its aliases.
        found.extend(ids);
    }
    sides.provider.learn(&found).await?;
    Ok(match (is_capped, found.is_empty()) {
        (true, _) => Asked::NotAll,
        (false, true) => Asked::NothingNew,
        (false, false) => Asked::Fresh,
    })
}

/// Asks what was given back of charges that look doubled, in whatever window that was, and gathers them again:
/// nobody is called charged twice who has the money back.
async fn confirmed(job: &Job<'_>, gathered: &Gathered, intents: Intents) -> Result<Intents> {
    let doubled = intents.doubled();
    let mut confirmed = Intents::default();
    for reading in &gathered.readings {
        let charges = doubled.iter().filter(|(scope, _, _)| *scope == reading.scope);
        let (roots, charges): (BTreeSet<String>, BTreeSet<String>) =
            charges.map(|(_, root_id, charge_id)| (root_id.clone(), charge_id.clone())).unzip();
        let sides = gathered.sides(job, reading)?;
        if let Some(client) = gathered.clients.get(&*reading.scope.provider) {
            let asked = charges.into_iter().take(job.settings.limits.ask_count_max).collect();
            let found = fetch_given_back(job, gathered, sides.provider, client, &asked).await?;
            sides.provider.learn(&found).await?;
        }
        let (facts, _) = sides.provider.whole_objects(&roots).await?;
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for fact in facts {
            if let Fact::ProviderEffect(effect) = fact {
                groups.entry(effect.root_id.clone()).or_default().provider_effects.push(effect);
            }
        }
        for invoice in sides.provider.invoices_of(&roots).await? {
            join_purchase(&mut groups, &invoice);
        }
        for (root_id, group) in groups.iter().filter(|(root_id, _)| roots.contains(*root_id)) {
            confirmed.add(&reading.scope, root_id, group);
        }
    }
    Ok(confirmed)
}

/// Events that only the inbox has: the provider is asked for each before it is called unknown.
async fn judge_inbox_only(
    job: &Job<'_>,
    gathered: &Gathered,
    suspicious: &Suspicious,
    judged: &mut Judged,
) -> Result<()> {
    let Some(inbox) = &gathered.inbox else { return Ok(()) };
    let mut by_scope: BTreeMap<Scope, BTreeSet<String>> = BTreeMap::new();
    for key in suspicious.inbox_only()? {
        let key = key?;
        by_scope.entry(key.scope).or_default().insert(key.event_id);
    }
    for reading in &gathered.readings {
        let Some(mut ids) = by_scope.remove(&reading.scope) else { continue };
        let side = ProviderSide { store: job.store, reading };
        for event in side.events_by_id(&ids).await? {
            ids.remove(&event.event_id);
        }
        let mut rows: Vec<InboxEvent> = Vec::new();
        let mut keep = |fact: Fact| {
            if let Fact::InboxEvent(row) = fact {
                rows.push(row);
            }
            Ok(())
        };
        let mut moment = Moment::begin(None, Some(inbox)).await?;
        moment.events_of(&reading.scope, &ids, &mut keep).await?;
        moment.end().await?;
        // An event received soon after the list begins may have been created before it.
        let ranges = gathered.event_ranges(&reading.scope);
        let was_listed = |at_us: i64| ranges.iter().any(|range| range.from_us + RETRIES_US <= at_us);
        let known = known_events(job, gathered, side, &rows).await?;
        judged.findings.extend(conflicting_events(&reading.scope, "", rows.iter()));
        let oldest_us = memory_us(job);
        for row in rows.iter().filter(|row| !known.contains(&row.event_id)) {
            let was_asked = !gathered.clients.is_empty();
            if !(was_listed(row.received_at_us) || (was_asked && is_recent(job, row))) {
                continue;
            }
            // The provider forgets: of an event that was made before its list begins nobody can say anything.
            match made_us(inbox, row).await? {
                Some(made_us) if made_us < oldest_us => judged.counted.not_judged += 1,
                _ => judged.findings.push(unknown_event(row)),
            }
        }
    }
    Ok(())
}

/// When an event was made, as its body says, Unix µs; `None` where the body is gone or does not say.
async fn made_us(inbox: &Inbox, row: &InboxEvent) -> Result<Option<i64>> {
    #[derive(serde::Deserialize)]
    struct Made {
        created: i64,
    }
    let body = inbox.body(&row.scope, &row.event_id).await?;
    let made = body.and_then(|body| serde_json::from_slice::<Made>(&body).ok());
    Ok(made.and_then(|made| made.created.checked_mul(SECOND_US)))
}

/// Since when the provider knows its events, Unix µs.
fn memory_us(job: &Job<'_>) -> i64 {
    let events = stripe::stream_named("events");
    let memory = events.and_then(|stream| stream.memory).unwrap_or(Duration::MAX);
    job.request.now_us.saturating_sub(i64::try_from(memory.as_micros()).unwrap_or(i64::MAX))
}

/// Within the provider's memory with the longest retry to spare: its "unknown" then means unknown.
fn is_recent(job: &Job<'_>, row: &InboxEvent) -> bool {
    row.received_at_us > memory_us(job).saturating_add(RETRIES_US)
}

async fn known_events(
    job: &Job<'_>,
    gathered: &Gathered,
    side: ProviderSide<'_>,
    rows: &[InboxEvent],
) -> Result<BTreeSet<String>> {
    let Some(client) = gathered.clients.get(&*side.reading.scope.provider) else {
        return Ok(BTreeSet::new());
    };
    let ids = rows.iter().map(|row| row.event_id.clone()).take(job.settings.limits.ask_count_max).collect();
    super::gathering::fetch_events(job, gathered, side, client, &ids).await
}
