//! What a decision rests on: the provider's records as they were read, and whether they still stand.
//!
//! The one thing to get right: another worker may have asked later and written what it was told before this one
//! books. What is compared is what the records say, not when anybody's clock says that they were read.

use super::decide::Deed;
use crate::record::Scope;
use crate::store::{StoredRecord, records_by_id_in};
use anyhow::Result;
use sha2::{Digest, Sha256};
use sqlx::{Any, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// Fingerprints of records by id.
pub type Grounds = BTreeMap<String, [u8; 32]>;

/// Fingerprint of a record as stored.
#[must_use]
pub fn fingerprint(record: &StoredRecord) -> [u8; 32] {
    Sha256::digest(&record.body).into()
}

/// Of these deeds, the indexes of those that rest on a record that says something else now.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn moved(
    tx: &mut Transaction<'_, Any>,
    deeds: &[(usize, &Deed)],
) -> Result<BTreeSet<usize>> {
    let mut ids: BTreeMap<&Scope, BTreeSet<String>> = BTreeMap::new();
    for (_, deed) in deeds.iter().filter(|(_, deed)| !deed.grounds.is_empty()) {
        ids.entry(&deed.scope).or_default().extend(deed.grounds.keys().cloned());
    }
    let mut held: BTreeMap<(&Scope, String), [u8; 32]> = BTreeMap::new();
    for (scope, ids) in ids {
        for record in records_by_id_in(tx, scope, &ids, None).await? {
            let print = fingerprint(&record);
            held.insert((scope, record.record_id), print);
        }
    }
    let has_moved = |deed: &Deed| {
        deed.grounds.iter().any(|(id, print)| held.get(&(&deed.scope, id.clone())) != Some(print))
    };
    Ok(deeds.iter().filter(|(_, deed)| has_moved(deed)).map(|(index, _)| *index).collect())
}
