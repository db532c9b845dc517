//! `[receive]`, `[work]`, `[outbox]` and `[notify]`: the path that live events take.

use super::context::Context;
use super::document::Section;
use super::load::duration;
use super::night::NOTIFY_KEYS;
use super::unusable::Unusable;
use super::values::{beside, parse_size};
use super::{NotifySettings, OutboxSettings, ReceiveSettings, WorkSettings};
use std::net::SocketAddr;
use std::time::Duration;

const BODY_BYTES_MAX: usize = 64 << 20;
const WAITING_MAX: i64 = 1_000_000;

/// `[receive]`.
pub(super) fn read_receive(root: &Section<'_>, context: &Context<'_>) -> Result<ReceiveSettings, Unusable> {
    let known = ["listen", "body_max", "waiting_max", "timeout", "spill_dir", "retention"];
    let section = root.section("receive", &known)?;
    let listen = section.text("listen")?.unwrap_or("127.0.0.1:8787");
    let listen: SocketAddr = listen
        .parse()
        .map_err(|_| section.bad("listen", "must be an address and a port such as 127.0.0.1:8787", ""))?;
    let body_bytes_max = parse_size(section.text("body_max")?.unwrap_or("1MiB"))
        .map_err(|why| section.bad("body_max", &format!("cannot be read: {why}"), ""))?;
    if !(1..=BODY_BYTES_MAX).contains(&body_bytes_max) {
        return Err(section.bad(
            "body_max",
            "must be at most 64MiB",
            "GitHub's largest deliveries have 25 MB",
        ));
    }
    let waiting = section.integer("waiting_max", 1, WAITING_MAX)?.unwrap_or(2_000);
    let timeout = duration(&section, "timeout", "2s")?;
    if timeout.is_zero() || timeout > Duration::from_mins(1) {
        return Err(section.bad(
            "timeout",
            "must be between 1s and 60s",
            "the strictest providers wait 3s in all",
        ));
    }
    let spill_dir = section.text("spill_dir")?;
    if spill_dir.is_some_and(|folder| folder.trim().is_empty()) {
        return Err(section.bad(
            "spill_dir",
            "is empty",
            "name a folder, or leave it out: then 503 while the store is away",
        ));
    }
    Ok(ReceiveSettings {
        listen,
        body_bytes_max,
        waiting_max: usize::try_from(waiting).unwrap_or(1),
        timeout,
        spill_dir: spill_dir.map(|folder| beside(context.folder(), folder)),
        retention: duration(&section, "retention", "60d")?,
    })
}

/// `[work]`.
pub(super) fn read_work(root: &Section<'_>) -> Result<WorkSettings, Unusable> {
    let section = root.section("work", &["attempts_max", "retry_delay", "batch", "park_max", "fetch"])?;
    let attempts = section.integer("attempts_max", 1, 5)?.unwrap_or(5);
    let batch = section.integer("batch", 1, 10_000)?.unwrap_or(500);
    let retry_delay = duration(&section, "retry_delay", "10s")?;
    if retry_delay.is_zero() {
        return Err(section.bad("retry_delay", "must be longer than nothing", ""));
    }
    let fetch = section.texts("fetch")?;
    Ok(WorkSettings {
        attempts_max: attempts,
        retry_delay,
        batch,
        park_max: duration(&section, "park_max", "3d")?,
        fetch: fetch.map(|types| types.into_iter().map(str::to_owned).collect()),
    })
}

/// `[outbox]`.
pub(super) fn read_outbox(root: &Section<'_>, context: &Context<'_>) -> Result<OutboxSettings, Unusable> {
    let section = root.section("outbox", &["url", "attempts_max", "retry_delay", "timeout"])?;
    let attempts = section.integer("attempts_max", 1, 50)?.unwrap_or(8);
    Ok(OutboxSettings {
        url: context.called_url(&section, "url", true)?,
        attempts_max: attempts,
        retry_delay: duration(&section, "retry_delay", "10s")?,
        timeout: duration(&section, "timeout", "10s")?,
    })
}

/// `[notify]`.
pub(super) fn read_notify(root: &Section<'_>, context: &Context<'_>) -> Result<NotifySettings, Unusable> {
    let section = root.section("notify", &NOTIFY_KEYS)?;
    let duplicates = section.integer("duplicates_per_hour", 1, i64::MAX)?.unwrap_or(100);
    Ok(NotifySettings {
        url: context.called_url(&section, "url", true)?,
        waiting_age: duration(&section, "waiting_age", "15m")?,
        duplicates_per_hour: u64::try_from(duplicates).unwrap_or(u64::MAX),
    })
}
