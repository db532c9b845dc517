//! Workers take partitions one by one, load, sort and judge them.
//!
//! A partition that does not fit (a hot object, a memory setting that is too small for the input) is
//! sorted in runs on disk and judged from there, by the same code and with the same answer (`loader.rs`).

use super::Shared;
use super::event_leg::EventLeg;
use super::feed::Part;
use super::intent_leg::IntentLeg;
use super::leg::{Found, LegKind, Sink};
use super::loader::{Loader, each_place};
use super::root_leg::RootLeg;
use super::scatter::Stored;
use super::suspicious::Suspicious;
use super::totals::Totals;
use crate::record::Scope;
use crate::spill::Spill;
use anyhow::Result;
use std::sync::Arc;

/// Judges all partitions and gathers what is suspicious.
pub(super) fn judge(shared: &Shared, scopes: Vec<Scope>, parts: Vec<Part>) -> Result<Suspicious> {
    let mut totals = Totals::default();
    let mut stored = Vec::new();
    for part in parts {
        totals.counts.add(&part.counts);
        for (number, sums) in part.sums {
            sums.add_to(&mut totals, &scopes[number as usize]);
        }
        stored.push(part.stored);
    }
    let (scopes, ranks) = ranked(scopes);
    let plan = shared.plan;
    let outcomes = each_place(
        plan.threads,
        LegKind::ALL.len() * plan.partitions,
        || Worker::new(shared, Arc::clone(&ranks)),
        |worker, place| worker.judge(shared, &stored, place),
        |worker| worker.sink.finish(),
    )?;
    let mut found = Found::default();
    for outcome in outcomes {
        found.add(outcome);
    }
    let spill = Arc::new(Spill::create(&shared.folder)?);
    let bytes_max = shared.plan.load_bytes;
    Ok(Suspicious::new(scopes, found.reduce(&spill, bytes_max)?, bytes_max, totals))
}

/// Scopes in order, and the position of each scope number in it.
fn ranked(scopes: Vec<Scope>) -> (Vec<Scope>, Arc<[u32]>) {
    let mut order: Vec<(Scope, usize)> =
        scopes.into_iter().enumerate().map(|(number, scope)| (scope, number)).collect();
    order.sort_unstable();
    let mut ranks = vec![0; order.len()];
    for (rank, (_, number)) in (0..).zip(&order) {
        ranks[*number] = rank;
    }
    (order.into_iter().map(|(scope, _)| scope).collect(), ranks.into())
}

struct Worker {
    sink: Sink,
    loader: Loader,
}

impl Worker {
    fn new(shared: &Shared, ranks: Arc<[u32]>) -> Result<Self> {
        let spill = Arc::new(Spill::create(&shared.folder)?);
        let sink = Sink::new(ranks, &spill, shared.plan.sink_bytes);
        let loader = Loader::new(&shared.folder, shared.plan.load_bytes, shared.hash)?;
        Ok(Self { sink, loader })
    }

    fn judge(&mut self, shared: &Shared, stored: &[Stored], place: usize) -> Result<()> {
        let Self { sink, loader } = self;
        match LegKind::ALL.get(place / shared.plan.partitions) {
            Some(LegKind::Event) => loader.judge::<EventLeg>(stored, place, sink),
            Some(LegKind::Root) => loader.judge::<RootLeg>(stored, place, sink),
            Some(LegKind::Intent) => loader.judge::<IntentLeg>(stored, place, sink),
            None => Ok(()),
        }
    }
}
