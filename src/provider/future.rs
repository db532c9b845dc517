//! Records that claim to be created in the future. They are shown to a person and belong to no window, so
//! they can never move a watermark.

use super::Stream;
use super::client::Client;
use super::fetch_error::FetchError;
use super::list_page::read_page;
use crate::record::{Note, NoteKind, SECOND_US, Scope};
use anyhow::Result;

/// Creation times later than this ahead of now are a fault of the provider's record.
const FUTURE_US: i64 = 300 * SECOND_US;

/// Asks a stream once for records created later than `now_us` allows: one note for each, at most a page of them.
///
/// # Errors
/// When the provider cannot be talked to.
pub(super) async fn future_notes(
    client: &Client,
    scope: &Scope,
    stream: &Stream,
    now_us: i64,
) -> Result<Vec<Note>> {
    let after_us = now_us.saturating_add(FUTURE_US);
    let path = format!("{}?limit=100&created%5Bgte%5D={}", stream.path, after_us / SECOND_US + 1);
    let body = match client.get(stream.name, &path, &scope.account).await {
        Ok(body) => body,
        // The window is read; this look beyond it may fail without taking that back.
        Err(FetchError::Budget { .. } | FetchError::Forbidden { .. } | FetchError::RateLimited { .. }) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.into()),
    };
    let (records, _) = read_page(&body).map_err(|problem| FetchError::Shape {
        what: format!("fetch {}: GET {path}", stream.name),
        problem,
    })?;
    let notes = records.into_iter().map(|record| (record.created.saturating_mul(SECOND_US), record.id));
    Ok(notes
        .filter(|(at_us, _)| *at_us > after_us)
        .map(|(at_us, id)| future_note(scope, stream.name, id, at_us))
        .collect())
}

fn future_note(scope: &Scope, stream: &str, id: String, at_us: i64) -> Note {
    Note {
        scope: scope.clone(),
        root_id: id.clone(),
        object_id: id,
        event_ids: Vec::new(),
        kind: NoteKind::NeedsReview,
        cause: "future_timestamp".to_owned(),
        text: format!(
            "a record of {stream} is created more than 300 s in the future; it belongs to no window"
        ),
        at_us,
    }
}
