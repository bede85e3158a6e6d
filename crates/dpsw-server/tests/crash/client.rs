//! A client that speaks HTTP/1.1 over one connection, and makes another one when that is closed.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long a client waits for what should come at once, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    address: String,
    token: String,
    connection: Option<BufReader<TcpStream>>,
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Status line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A request, but for the token and the length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'r> {
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
    pub(crate) headers: &'r [(&'r str, &'r str)],
    pub(crate) body: &'r [u8],
}

impl<'r> Request<'r> {
    pub(crate) fn get(path: &'r str) -> Self {
        Self { method: "GET", path, headers: &[], body: &[] }
    }
}

impl Client {
    pub(crate) fn new(address: &str, token: &str) -> Self {
        Self { address: address.to_owned(), token: token.to_owned(), connection: None }
    }

    /// Sends a request and waits for the whole reply. After an error nobody knows whether it was done.
    pub(crate) fn ask(&mut self, request: Request<'_>) -> io::Result<Reply> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BufReader::new(connect(&self.address)?),
        };
        connection.get_mut().write_all(&self.written(request))?;
        let reply = Reply::read(&mut connection)?;
        if !reply.head.contains("connection: close") && !reply.is_endless() {
            self.connection = Some(connection);
        }
        Ok(reply)
    }

    /// The bytes of a request.
    pub(crate) fn written(&self, request: Request<'_>) -> Vec<u8> {
        let Request { method, path, headers, body } = request;
        let mut bytes = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n",
            self.token,
            body.len()
        );
        headers.iter().for_each(|(name, value)| bytes.push_str(&format!("{name}: {value}\r\n")));
        bytes.push_str("\r\n");
        [bytes.as_bytes(), body].concat()
    }
}

pub(crate) fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

impl Reply {
    pub(crate) fn read(connection: &mut impl BufRead) -> io::Result<Self> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if connection.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(ErrorKind::InvalidData)?;
        let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; len.and_then(|len| len.parse().ok()).unwrap_or(0)];
        connection.read_exact(&mut body)?;
        let mut reply = Self { status, head, body };
        if reply.is_endless() {
            // Of a reply that goes on for ever, the first event.
            while !reply.body.ends_with(b"\n\n") && 0 < connection.read_until(b'\n', &mut reply.body)? {}
        }
        Ok(reply)
    }

    fn is_endless(&self) -> bool {
        self.head.contains("text/event-stream")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The reply, if it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {}", self.head, self.text());
        self
    }
}
