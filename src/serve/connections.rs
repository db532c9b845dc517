//! Connections: bounded in number, with a time for their headers, ended without losing what was accepted.

use anyhow::{Context, Result};
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at a time. Providers use few; the rest wait in the listener's queue.
const CONNECTIONS_MAX: usize = 1_024;
/// Headers of one request, bytes and count.
const HEADER_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;
/// How long requests under way have to end once the receiver is asked to.
const ENDING: Duration = Duration::from_secs(20);

/// Serves `router` until `ending` resolves, then lets the requests under way end.
///
/// `header_timeout` is how long a connection may take to send a request's headers, and how long it may stay idle
/// between two requests.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve_connections(
    listener: TcpListener,
    router: Router,
    header_timeout: Duration,
    ending: impl Future<Output = ()>,
) -> Result<()> {
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(header_timeout);
    server.max_buf_size(HEADER_BYTES_MAX).max_headers(HEADERS_MAX);
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    tokio::pin!(ending);
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit.context("connections are counted")?,
            () = &mut ending => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut ending => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file handles, or a connection that was gone before it was taken: others go on.
                tracing::warn!("a connection could not be taken: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(server.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("a connection ended early: {error}");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(ENDING, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests under way were cut off after {ENDING:?}");
    }
    Ok(())
}
