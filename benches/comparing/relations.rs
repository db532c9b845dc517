//! Reads the six relations in parallel: blocks of whole records, handed out under one lock.
//!
//! A block without a quote is split at commas and line ends; one with a quote is left to the `csv`
//! crate, which knows all of RFC 4180.

use anyhow::{Context, Result, bail, ensure};
use memchr::{memchr, memchr2, memchr2_iter, memrchr};
use recon::compare::{EffectRow, Feed, ScopeId};
use recon::record::{EffectKind, InboxStatus, Scope, Status};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const BLOCK_BYTES: usize = 1 << 20;

/// One of the six.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation {
    ProviderEvent,
    InboxEvent,
    ProviderEffect,
    LocalEffect,
    ProviderState,
    LocalState,
}

impl Relation {
    pub(crate) const ALL: [Self; 6] = [
        Self::ProviderEvent,
        Self::InboxEvent,
        Self::ProviderEffect,
        Self::LocalEffect,
        Self::ProviderState,
        Self::LocalState,
    ];

    /// File name without `.csv`, and header: the field names of the facts.
    pub(crate) const fn shape(self) -> (&'static str, &'static str) {
        match self {
            Self::ProviderEvent => (
                "provider_event",
                "provider,account,mode,root_id,object_id,event_id,event_type,tracks,created_us,wanted,settled",
            ),
            Self::InboxEvent => {
                ("inbox_event", "provider,account,mode,event_id,event_type,received_at_us,status,body_sha256")
            }
            Self::ProviderEffect => (
                "provider_effect",
                "provider,account,mode,root_id,object_id,kind,amount_minor,currency,occurred_at_us,intent,in_window",
            ),
            Self::LocalEffect => (
                "local_effect",
                "provider,account,mode,root_id,object_id,effect_id,kind,amount_minor,currency,applied_at_us,\
                 event_id,corrects_effect_id,in_window",
            ),
            Self::ProviderState => (
                "provider_state",
                "provider,account,mode,root_id,object_id,status,refunded_minor,authorized_minor,at_us",
            ),
            Self::LocalState => (
                "local_state",
                "provider,account,mode,root_id,object_id,status,refunded_minor,updated_at_us,changed_by",
            ),
        }
    }
}

/// The files that are still to be read.
pub(crate) struct Source {
    state: Mutex<State>,
}

struct State {
    waiting: Vec<(Relation, File)>,
    /// The begun record at the end of the last block.
    carry: Vec<u8>,
}

impl Source {
    pub(crate) fn open(folder: &Path, relations: &[Relation]) -> Result<Self> {
        let mut waiting = Vec::new();
        for &relation in relations.iter().rev() {
            let (name, header) = relation.shape();
            let path = folder.join(name).with_extension("csv");
            let mut file = File::open(&path).with_context(|| format!("open {}", path.display()))?;
            let mut found = vec![0; header.len() + 1];
            file.read_exact(&mut found)?;
            ensure!(found == format!("{header}\n").as_bytes(), "{} has another header", path.display());
            waiting.push((relation, file));
        }
        Ok(Self { state: Mutex::new(State { waiting, carry: Vec::new() }) })
    }

    /// The next block of whole records; `None` when everything was handed out.
    pub(crate) fn next_block(&self, block: &mut Vec<u8>) -> Result<Option<Relation>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { waiting, carry } = &mut *state;
        while let Some((relation, file)) = waiting.last_mut() {
            let relation = *relation;
            block.clear();
            block.append(carry);
            loop {
                let held = block.len();
                block.resize(held.max(BLOCK_BYTES - 1) + 1, 0);
                if held == block.len() {
                    block.resize(held * 2, 0);
                }
                let read = file.read(&mut block[held..])?;
                block.truncate(held + read);
                if read == 0 {
                    waiting.pop();
                    if !block.is_empty() && !block.ends_with(b"\n") {
                        block.push(b'\n');
                    }
                    break;
                }
                if let Some(end) = last_record_end(block) {
                    carry.extend_from_slice(&block[end..]);
                    block.truncate(end);
                    break;
                }
            }
            if !block.is_empty() {
                return Ok(Some(relation));
            }
        }
        Ok(None)
    }
}

/// Where the last whole record ends: after the last line end that no quotes enclose.
fn last_record_end(block: &[u8]) -> Option<usize> {
    if memchr(b'"', block).is_none() {
        return memrchr(b'\n', block).map(|at| at + 1);
    }
    let (mut is_quoted, mut end) = (false, None);
    for at in memchr2_iter(b'"', b'\n', block) {
        if block[at] == b'"' {
            is_quoted = !is_quoted;
        } else if !is_quoted {
            end = Some(at + 1);
        }
    }
    end
}

/// Reads blocks into a feed until none is left.
pub(crate) fn read(source: &Source, feed: Feed) -> Result<()> {
    let mut reader = Reader { feed, scopes: Vec::new() };
    let mut block = Vec::new();
    while let Some(relation) = source.next_block(&mut block)? {
        let text = std::str::from_utf8(&block)?;
        match relation {
            Relation::ProviderEvent => records(&mut reader, text, Reader::provider_event),
            Relation::InboxEvent => records(&mut reader, text, Reader::inbox_event),
            Relation::ProviderEffect => records(&mut reader, text, Reader::provider_effect),
            Relation::LocalEffect => records(&mut reader, text, Reader::local_effect),
            Relation::ProviderState => records(&mut reader, text, Reader::provider_state),
            Relation::LocalState => records(&mut reader, text, Reader::local_state),
        }
        .with_context(|| format!("read {}", relation.shape().0))?;
    }
    reader.feed.close()
}

struct Reader {
    feed: Feed,
    scopes: Vec<([String; 3], ScopeId)>,
}

impl Reader {
    fn scope(&mut self, provider: &str, account: &str, mode: &str) -> ScopeId {
        let known = self.scopes.iter().find(|(known, _)| *known == [provider, account, mode]);
        if let Some((_, id)) = known {
            return *id;
        }
        let id = self.feed.scope(&Scope::new(provider, account, mode));
        self.scopes.push(([provider, account, mode].map(str::to_owned), id));
        id
    }

    fn provider_event(&mut self, fields: [&str; 11]) -> Result<()> {
        let [provider, account, mode, root, _, event, _, _, _, wanted, _] = fields;
        let scope = self.scope(provider, account, mode);
        self.feed.provider_event(scope, event, root, flag(wanted)?)
    }

    fn inbox_event(&mut self, fields: [&str; 8]) -> Result<()> {
        let [provider, account, mode, event, _, received, status, _] = fields;
        let scope = self.scope(provider, account, mode);
        let status: InboxStatus = status.parse().map_err(|()| unknown(status))?;
        self.feed.inbox_event(scope, event, status, received.parse()?)
    }

    fn provider_effect(&mut self, fields: [&str; 11]) -> Result<()> {
        let [provider, account, mode, root_id, object_id, kind, amount, currency, at, intent, in_window] =
            fields;
        let scope = self.scope(provider, account, mode);
        let row = effect(root_id, object_id, kind, amount, currency, at, in_window)?;
        self.feed.provider_effect(scope, &row, intent)
    }

    fn local_effect(&mut self, fields: [&str; 13]) -> Result<()> {
        let [
            provider,
            account,
            mode,
            root_id,
            object_id,
            _,
            kind,
            amount,
            currency,
            at,
            event,
            corrects,
            inside,
        ] = fields;
        let scope = self.scope(provider, account, mode);
        let row = effect(root_id, object_id, kind, amount, currency, at, inside)?;
        self.feed.local_effect(scope, &row, event, !corrects.is_empty())
    }

    fn provider_state(&mut self, fields: [&str; 9]) -> Result<()> {
        let [provider, account, mode, root, _, status, refunded, authorized, _] = fields;
        let scope = self.scope(provider, account, mode);
        self.feed.provider_state(scope, root, status_of(status)?, minor(refunded)?, minor(authorized)?)
    }

    fn local_state(&mut self, fields: [&str; 9]) -> Result<()> {
        let [provider, account, mode, root, _, status, refunded, _, _] = fields;
        let scope = self.scope(provider, account, mode);
        self.feed.local_state(scope, root, status_of(status)?, minor(refunded)?)
    }
}

/// Hands every record of a block to `take`.
pub(crate) fn records<T, const N: usize>(
    target: &mut T,
    text: &str,
    take: impl Fn(&mut T, [&str; N]) -> Result<()>,
) -> Result<()> {
    if memchr(b'"', text.as_bytes()).is_some() {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record)? {
            ensure!(record.len() == N, "a record has {} fields instead of {N}", record.len());
            take(target, std::array::from_fn(|place| &record[place]))?;
        }
        return Ok(());
    }
    let mut rest = text;
    while !rest.is_empty() {
        let mut fields = [""; N];
        for (place, field) in fields.iter_mut().enumerate() {
            let at = memchr2(b',', b'\n', rest.as_bytes()).context("a record is cut")?;
            let is_last = rest.as_bytes()[at] == b'\n';
            ensure!(is_last == (place + 1 == N), "a record has not {N} fields");
            *field = &rest[..at];
            rest = &rest[at + 1..];
        }
        fields[N - 1] = fields[N - 1].strip_suffix('\r').unwrap_or(fields[N - 1]);
        take(target, fields)?;
    }
    Ok(())
}

fn effect<'a>(
    root_id: &'a str,
    object_id: &'a str,
    kind: &str,
    amount: &str,
    currency: &'a str,
    at: &str,
    in_window: &str,
) -> Result<EffectRow<'a>> {
    let kind: EffectKind = kind.parse().map_err(|()| unknown(kind))?;
    let (amount_minor, at_us, in_window) = (amount.parse()?, at.parse()?, flag(in_window)?);
    Ok(EffectRow { root_id, object_id, kind, amount_minor, currency, at_us, in_window })
}

pub(crate) fn status_of(text: &str) -> Result<Status> {
    text.parse().map_err(|()| unknown(text))
}

pub(crate) fn minor(text: &str) -> Result<Option<i64>> {
    if text.is_empty() { Ok(None) } else { Ok(Some(text.parse()?)) }
}

pub(crate) fn flag(text: &str) -> Result<bool> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => bail!("`{text}` is neither 0 nor 1"),
    }
}

pub(crate) fn unknown(text: &str) -> anyhow::Error {
    anyhow::anyhow!("`{text}` is no known word")
}
