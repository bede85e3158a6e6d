//! With real sockets: HTTP/1.1 and HTTP/2, TLS and new certificates, slow clients, too many of them, and the end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, Version};
use dpsw_server::http::{App, ServeSettings, serve};
use dpsw_server::limits::Limits;
use dpsw_server::quantity::Millis;
use dpsw_server::tls::{Tls, TlsFiles};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::support::{Rig, SOURCE, pages};

/// How long a test waits for what should come soon, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A service with a socket.
struct Running {
    rig: Rig,
    address: SocketAddr,
    end: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Running {
    async fn new(tls: Option<Arc<Tls>>, change: impl FnOnce(&mut Limits)) -> Self {
        let rig = Rig::with(|parts| change(&mut parts.limits));
        rig.make(SOURCE, &[pages()]).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (end, ended) = oneshot::channel::<()>();
        let settings = ServeSettings { app: App::clone(&rig.app), tls };
        let served = tokio::spawn(serve(listener, settings, async move {
            let _ = ended.await;
        }));
        Self { rig, address, end, served }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }

    fn request(&self, path: &str) -> Request<Body> {
        let uri = format!("http://{}{path}", self.address);
        let request =
            Request::builder().uri(uri).header("authorization", format!("Bearer {}", self.rig.token));
        request.header("host", "localhost").body(Body::empty()).expect("a request")
    }

    async fn end(self) {
        self.end.send(()).expect("it runs");
        let served = tokio::time::timeout(PATIENCE, self.served).await.expect("in time");
        served.expect("no panic").expect("no error");
    }
}

/// All that comes until the other end closes.
async fn read_all(mut stream: impl AsyncRead + Unpin) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    let _ = read.expect("the other end closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn ask_http1<S>(stream: S, request: Request<Body>) -> StatusCode
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    let reply = sender.send_request(request).await.expect("a reply");
    assert_eq!(reply.version(), Version::HTTP_11);
    reply.status()
}

async fn ask_http2<S>(stream: S, request: Request<Body>) -> StatusCode
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let reply = sender.send_request(request).await.expect("a reply");
    assert_eq!(reply.version(), Version::HTTP_2);
    reply.status()
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_on_one_port() {
    let running = Running::new(None, |_| {}).await;
    let path = "/v1/streams/pages/top";
    assert_eq!(ask_http1(running.connect().await, running.request(path)).await, StatusCode::OK);
    assert_eq!(ask_http2(running.connect().await, running.request(path)).await, StatusCode::OK);
    running.end().await;
}

/// A new certificate for localhost, written to two files.
fn certify(folder: &Path) -> (TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let files = TlsFiles { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") };
    std::fs::write(&files.certificate, made.cert.pem()).expect("a file");
    std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("a file");
    let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).expect("PEM");
    (files, certificate)
}

async fn encrypted(
    running: &Running,
    trusted: &CertificateDer<'static>,
    protocol: &str,
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.expect("versions").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, running.connect().await).await
}

#[tokio::test]
async fn connections_are_encrypted_and_new_certificates_are_shown_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, first) = certify(folder.path());
    let tls = Tls::open(files).expect("a certificate");
    let running = Running::new(Some(Arc::clone(&tls)), |_| {}).await;
    let path = "/v1/streams/pages/top";
    for (protocol, is_second) in [("http/1.1", false), ("h2", true)] {
        let stream = encrypted(&running, &first, protocol).await.expect("trusted");
        let status = match is_second {
            true => ask_http2(stream, running.request(path)).await,
            false => ask_http1(stream, running.request(path)).await,
        };
        assert_eq!(status, StatusCode::OK, "{protocol}");
    }
    // A key that does not belong to the certificate changes nothing.
    let kept = std::fs::read(folder.path().join("certificate.pem")).expect("a file");
    let (_, second) = certify(folder.path());
    let new = std::fs::read(folder.path().join("certificate.pem")).expect("a file");
    std::fs::write(folder.path().join("certificate.pem"), kept).expect("a file");
    tls.reload().expect_err("they do not belong together");
    encrypted(&running, &first, "h2").await.expect("still trusted");
    std::fs::write(folder.path().join("certificate.pem"), new).expect("a file");
    tls.reload().expect("both are new");
    assert!(encrypted(&running, &first, "h2").await.is_err(), "the old one is no longer shown");
    encrypted(&running, &second, "h2").await.expect("the new one is");
    // Who does not encrypt gets no answer.
    let mut plain = running.connect().await;
    plain.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await.expect("sent");
    assert!(!read_all(plain).await.contains("HTTP/1.1 200"));
    running.end().await;
}

#[test]
fn certificates_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, _) = certify(folder.path());
    let missing = TlsFiles { key: folder.path().join("none.pem"), ..files.clone() };
    assert!(Tls::open(missing).expect_err("no file").to_string().contains("none.pem"));
    let swapped = TlsFiles { certificate: files.key.clone(), key: files.certificate };
    assert!(Tls::open(swapped).expect_err("swapped").to_string().contains("a certificate"));
}

#[tokio::test]
async fn clients_that_begin_and_do_not_go_on_are_cut_off() {
    let running = Running::new(None, |limits| limits.head_time = Millis(100)).await;
    for begun in
        ["", "P", "PRI * HTTP/2.0", "GET /healthz HTTP/1.1\r\nHost: local", "GET /healthz HTTP/1.1\r\nX: "]
    {
        let mut stream = running.connect().await;
        stream.write_all(begun.as_bytes()).await.expect("sent");
        let reply = read_all(stream).await;
        assert!(!reply.contains("200 OK"), "{begun:?}: {reply}");
    }
    // One that keeps its connection and asks nothing more is cut off as well.
    let mut stream = running.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("sent");
    assert!(read_all(stream).await.contains("200 OK"));
    running.end().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let running = Running::new(None, |limits| limits.body_time = Millis(100)).await;
    let mut stream = running.connect().await;
    let head = format!(
        "POST /v1/sources/web/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\
         Connection: close\r\nAuthorization: Bearer {}\r\n\r\nabc",
        running.rig.token
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let reply = read_all(stream).await;
    assert!(reply.starts_with("HTTP/1.1 408") && reply.contains("body-too-slow"), "{reply}");
    running.end().await;
}

#[tokio::test]
async fn there_is_room_for_so_many_connections() {
    let running = Running::new(None, |limits| limits.connections = 1).await;
    let mut followed = running.connect().await;
    let head = format!(
        "GET /v1/streams/pages/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        running.rig.token
    );
    followed.write_all(head.as_bytes()).await.expect("sent");
    followed.read_exact(&mut [0; 12]).await.expect("a reply begins");
    let refused = read_all(running.connect().await).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    drop(followed);
    // The place is free again, at once or soon after.
    while ask_http1(running.connect().await, running.request("/healthz")).await != StatusCode::OK {}
    running.end().await;
}

#[tokio::test]
async fn quiet_connections_keep_nobody_out() {
    let running = Running::new(None, |limits| limits.connections = 4).await;
    let mut quiet = Vec::new();
    for _ in 0..20 {
        let handshake = hyper::client::conn::http2::handshake::<_, _, Body>(
            TokioExecutor::new(),
            TokioIo::new(running.connect().await),
        );
        let (sender, connection) = handshake.await.expect("HTTP/2");
        tokio::spawn(connection);
        quiet.push(sender);
        assert_eq!(
            ask_http1(running.connect().await, running.request("/healthz")).await,
            StatusCode::OK,
            "{} are quiet",
            quiet.len()
        );
    }
    running.end().await;
}

#[tokio::test]
async fn a_connection_that_asks_nothing_for_long_is_closed_in_both_versions() {
    let running = Running::new(None, |limits| limits.head_time = Millis(100)).await;
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(running.connect().await));
    let (mut sender, connection) = handshake.await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let reply = sender.send_request(running.request("/healthz")).await.expect("a reply");
    assert_eq!(reply.status(), StatusCode::OK);
    drop(reply);
    let closed = tokio::time::timeout(PATIENCE, connection).await.expect("it is closed");
    let _ = closed.expect("no panic");
    drop(sender);
    running.end().await;
}

#[tokio::test]
async fn at_the_end_everybody_who_was_being_answered_is_answered() {
    let running = Running::new(None, |limits| limits.shutdown_time = Millis(30_000)).await;
    let mut followed = running.connect().await;
    let head = format!(
        "GET /v1/streams/pages/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        running.rig.token
    );
    followed.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 12];
    followed.read_exact(&mut first).await.expect("a reply begins");
    let mut slow = running.connect().await;
    let head = format!(
        "POST /v1/sources/web/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\
         Authorization: Bearer {}\r\n\r\na\n",
        running.rig.token
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    // Until its head was read it is no request that is being answered.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (address, ended) = (running.address, tokio::spawn(running.end()));
    assert!(read_all(followed).await.contains("event: top"), "who follows is sent away");
    slow.write_all(b"a\n").await.expect("sent");
    let reply = read_all(slow).await;
    assert!(reply.starts_with("HTTP/1.1 202"), "{reply}");
    ended.await.expect("it ends");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
