//! While the service starts, which takes long where much is restored: health is answered, and all else is told to wait.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::http::operate;
use crate::http::problem::Problem;
use crate::http::serve::SOCKETS_LATER;
use crate::tls::Tls;
use crate::wire::problem::Code;
use crate::wire::report::Readiness;

/// Connections at a time; the others wait in the system.
const CONNECTIONS: usize = 64;
/// A connection has one question and this much time.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long clients should wait.
const LATER: Duration = Duration::from_secs(1);

/// Answers health and readiness, and tells all others to wait, until the service has started: what that gave.
pub async fn answer_until<T>(
    started: impl Future<Output = T>,
    listener: &TcpListener,
    tls: Option<&Arc<Tls>>,
) -> T {
    let tls = tls.map(|tls| TlsAcceptor::from(tls.server_config()));
    tokio::select! {
        started = started => started,
        () = accept(listener, tls) => unreachable!("it goes on until the service has started"),
    }
}

async fn accept(listener: &TcpListener, tls: Option<TlsAcceptor>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let router = router();
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(timeout(PATIENCE, answer(stream, tls.clone(), router.clone(), place)));
            }
            Err(_) => sleep(SOCKETS_LATER).await,
        }
    }
}

async fn answer(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, _place: OwnedSemaphorePermit) {
    match tls {
        None => answer_one(stream, router).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                answer_one(stream, router).await;
            }
        }
    }
}

/// One question: whoever asks again comes to the service itself, once it has started.
async fn answer_one(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(1);
    // What goes wrong on a connection is the client's affair.
    let _ = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}

fn router() -> Router {
    Router::new()
        .route("/healthz", get(operate::healthz))
        .route("/version", get(operate::version))
        .route("/readyz", get(readyz))
        .fallback(starting)
}

async fn readyz() -> (StatusCode, Json<Readiness>) {
    (StatusCode::SERVICE_UNAVAILABLE, Json(Readiness { ready: false, starting: true }))
}

async fn starting() -> Problem {
    Problem::new(Code::Starting, "the service is starting; ask again later").after(LATER)
}
