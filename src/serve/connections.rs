//! Connections: bounded in number and in age, with a time for their headers, ended without losing what was
//! accepted.

use anyhow::{Context, Result};
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections at a time, where the process may open as many files. The rest wait in the listener's queue.
const CONNECTIONS_MAX: usize = 8_192;
/// Files that are not for connections: the store, the spill folder, the listener.
const OTHER_FILES: usize = 128;
/// Bytes of the headers of one request. Providers send about 2 KB.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Headers of one request.
const HEADERS_MAX: usize = 100;
/// How long a connection may live: one that reads no answers would hold its place for ever.
const AGE_MAX: Duration = Duration::from_mins(5);
/// How long requests under way have to end once their connection is to be closed.
const ENDING: Duration = Duration::from_secs(20);

/// Serves `router` until `ending` resolves, then lets the requests under way end.
///
/// `header_timeout` is how long a connection may take to send a request's headers, and how long it may stay idle
/// between two requests. `on_unreadable` hears a word for each request whose head cannot be read: it never gets as far as
/// the router.
///
/// # Errors
/// When connections cannot be counted any more, which never happens.
pub async fn serve_connections(
    listener: TcpListener,
    router: Router,
    header_timeout: Duration,
    on_unreadable: impl Fn(&'static str) + Clone + Send + 'static,
    ending: impl Future<Output = ()>,
) -> Result<()> {
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(header_timeout);
    server.max_buf_size(HEADER_BYTES_MAX).max_headers(HEADERS_MAX);
    // Whoever has sent all and says so may still wait for the answer.
    server.half_close(true);
    let (say_end, is_ending) = watch::channel(false);
    let permits = Arc::new(Semaphore::new(connections_max()));
    let mut connections = JoinSet::new();
    let mut ending = pin!(ending);
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit.context("connections are counted")?,
            () = &mut ending => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut ending => break,
        };
        while connections.try_join_next().is_some() {}
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file handles, or a connection that was gone before it was taken: others go on.
                tracing::warn!("a connection could not be taken: {error}");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let connection = serve_one(server.clone(), stream, router.clone(), is_ending.clone());
        let on_unreadable = on_unreadable.clone();
        connections.spawn(async move {
            if let Err(error) = connection.await {
                match error {
                    _ if error.is_parse_too_large() => on_unreadable("headers_too_large"),
                    _ if error.is_parse() => on_unreadable("malformed_request"),
                    _ => tracing::debug!("a connection ended early: {error}"),
                }
            }
            drop(permit);
        });
    }
    drop((listener, router));
    say_end.send_replace(true);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(ENDING, all_ended).await.is_err() {
        tracing::warn!("requests under way were cut off after {ENDING:?}");
        connections.shutdown().await;
    }
    Ok(())
}

async fn serve_one(
    server: hyper::server::conn::http1::Builder,
    stream: TcpStream,
    router: Router,
    mut is_ending: watch::Receiver<bool>,
) -> hyper::Result<()> {
    // Answers are small: nothing is gained by waiting for more.
    drop(stream.set_nodelay(true));
    let mut connection =
        pin!(server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = sleep(AGE_MAX) => None,
        _ = is_ending.wait_for(|is_ending| *is_ending) => None,
    };
    if let Some(ended) = ended {
        return ended;
    }
    connection.as_mut().graceful_shutdown();
    timeout(ENDING, connection).await.unwrap_or(Ok(()))
}

/// As many as there are files for. Where the system does not say how many, the usual limit is assumed.
fn connections_max() -> usize {
    const USUAL_FILES: usize = 1_024;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| {
        let soft = line.strip_prefix("Max open files")?.split_whitespace().next()?;
        Some(soft.parse().unwrap_or(usize::MAX))
    });
    let files = files.unwrap_or(USUAL_FILES);
    files.saturating_sub(OTHER_FILES).clamp(1, CONNECTIONS_MAX)
}
