//! Connections: accepted up to a limit, with or without TLS, and ended in peace.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::http::app::App;
use crate::http::openapi::router;
use crate::http::places::{Held, Place, Places};
use crate::http::slow::Guarded;
use crate::limits::Limits;
use crate::tls::Tls;

/// The parts of a server.
#[derive(Debug)]
pub struct ServeSettings {
    /// What handlers share.
    pub app: App,
    /// The certificate, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
}

/// Requests of one connection that are answered at a time.
const STREAMS_MAX: u32 = 64;
/// The longest piece of a body (HTTP/2): a usual batch comes in one, and is not copied.
const FRAME_LEN_MAX: u32 = 64 << 10;
/// How often tokens and certificates are looked at again.
const UPKEEP: Duration = Duration::from_secs(2);
/// How long to wait when the system has no more sockets.
pub(crate) const SOCKETS_LATER: Duration = Duration::from_millis(100);
/// How often the other end of a quiet HTTP/2 connection is asked whether it is still there.
const PING: Duration = Duration::from_secs(20);
/// How long one that gets no place is told so.
const NO_PLACE: Duration = Duration::from_millis(200);

/// Answers until it is told to shut down; then takes no more connections and answers what was asked.
///
/// # Errors
/// The address of the listener is not known.
pub async fn serve(
    listener: TcpListener,
    settings: ServeSettings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let ServeSettings { app, tls } = settings;
    let upkeep = upkeep(app.clone(), tls.clone());
    let server = Server {
        places: Places::new(app.limits.connections),
        tls: tls.as_ref().map(|tls| TlsAcceptor::from(tls.server_config())),
        graceful: GracefulShutdown::new(),
        router: router(app.clone()),
        app,
    };
    let address = listener.local_addr()?;
    tracing::info!(%address, tls = server.tls.is_some(), "listening");
    tokio::select! {
        () = server.accept(&listener) => {}
        () = shutdown => {}
    }
    drop(listener);
    upkeep.abort();
    server.end().await;
    Ok(())
}

struct Server {
    app: App,
    router: Router,
    tls: Option<TlsAcceptor>,
    places: Places,
    graceful: GracefulShutdown,
}

impl Server {
    async fn accept(&self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.take(stream, peer.ip()),
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken now");
                    sleep(SOCKETS_LATER).await;
                }
            }
        }
    }

    fn take(&self, stream: TcpStream, address: IpAddr) {
        let Some(place) = self.places.take(address) else {
            if self.tls.is_none() {
                tokio::spawn(timeout(NO_PLACE, refuse(stream)));
            }
            return;
        };
        // Replies are sent as they are made; without it small ones wait for the client's receipt.
        let _ = stream.set_nodelay(true);
        let connection = Connection {
            router: self.router.clone(),
            limits: self.app.limits.clone(),
            watcher: self.graceful.watcher(),
            place: Arc::new(place),
        };
        match self.tls.clone() {
            Some(tls) => tokio::spawn(connection.encrypted(stream, tls)),
            None => tokio::spawn(connection.answer(stream)),
        };
    }

    /// Lets those finish who are being answered.
    async fn end(self) {
        self.app.closing.send_replace(true);
        let time = self.app.limits.shutdown_time.duration();
        if timeout(time, self.graceful.shutdown()).await.is_err() {
            tracing::warn!("some requests were not answered in time and are cut off");
        }
    }
}

/// Says that there is no place.
async fn refuse(mut stream: TcpStream) {
    const REPLY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
    // Whoever does not take it has lost nothing.
    let _ = stream.write_all(REPLY.as_bytes()).await;
    let _ = stream.shutdown().await;
}

struct Connection {
    router: Router,
    limits: Limits,
    watcher: Watcher,
    place: Arc<Place>,
}

impl Connection {
    async fn encrypted(self, stream: TcpStream, tls: TlsAcceptor) {
        let time = self.limits.head_time.duration();
        // One that cannot agree on a cipher, or hangs, is gone.
        if let Ok(Ok(stream)) = timeout(time, tls.accept(stream)).await {
            self.answer(stream).await;
        }
    }

    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let head_time = self.limits.head_time.duration();
        let write_time = self.limits.write_time.duration();
        let stream = TokioIo::new(Guarded::new(stream, head_time, write_time));
        let router = self.router.clone();
        let place = Arc::clone(&self.place);
        let service = service_fn(move |request: Request<Incoming>| {
            let router = router.clone();
            let answering = place.answering();
            async move {
                let response = router.oneshot(request.map(Body::new)).await?;
                Ok::<_, Infallible>(response.map(|body| Held::wrap(body, answering)))
            }
        });
        let connection = builder(&self.limits).serve_connection(stream, service).into_owned();
        tokio::select! {
            // What goes wrong on a connection is the client's affair, and may hold what it sent.
            _ = self.watcher.watch(connection) => {}
            () = self.place.quiet_for(head_time) => {}
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head_time.duration());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_frame_size(FRAME_LEN_MAX)
        .keep_alive_interval(PING)
        .keep_alive_timeout(limits.write_time.duration());
    builder
}

/// Notices tokens that another process has made or deleted, and new certificates.
fn upkeep(app: App, tls: Option<Arc<Tls>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = interval(UPKEEP);
        loop {
            ticks.tick().await;
            let app = app.clone();
            let tls = tls.clone();
            let _ = tokio::task::spawn_blocking(move || look_again(&app, tls.as_deref())).await;
        }
    })
}

fn look_again(app: &App, tls: Option<&Tls>) {
    if let Err(error) = app.bind_tokens() {
        tracing::error!(%error, "the tokens that were known stay");
    }
    if let Some(Err(error)) = tls.map(Tls::reload) {
        tracing::error!(%error, "the certificate that was known stays");
    }
}
