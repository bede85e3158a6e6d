//! Sends batches to the service on this machine, one after the other on one connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the longest answer that is read.
const ANSWER_MAX: u64 = 64 * 1024;

pub(crate) struct Post {
    connection: BufReader<TcpStream>,
    /// All of a request but the length of its body.
    head: String,
}

impl Post {
    pub(crate) fn to(address: &str, path: &str, token: &str) -> Result<Self> {
        let connection = TcpStream::connect(address).context("the service does not answer")?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        Ok(Self { connection: BufReader::new(connection), head })
    }

    /// Sends a batch and waits until it is durable.
    pub(crate) fn send(&mut self, batch: &str) -> Result<()> {
        self.ask("application/x-ndjson", batch, &[" 202 "])
    }

    /// Makes what is described, unless it is there.
    pub(crate) fn make(&mut self, described: &str) -> Result<()> {
        self.ask("application/json", described, &[" 201 ", " 409 "])
    }

    fn ask(&mut self, content: &str, body: &str, wanted: &[&str]) -> Result<()> {
        let request =
            format!("{}Content-Type: {content}\r\nContent-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.connection.get_mut().write_all(request.as_bytes())?;
        let (status, body) = self.answer()?;
        if wanted.iter().any(|wanted| status.contains(wanted)) {
            Ok(())
        } else {
            bail!("the service replied {status}: {body}")
        }
    }

    fn answer(&mut self) -> Result<(String, String)> {
        let status = self.line()?;
        let mut len = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                len = value.trim().parse().context("the service says no length")?;
            }
        }
        let mut body = String::new();
        self.connection.by_ref().take(len.min(ANSWER_MAX)).read_to_string(&mut body)?;
        Ok((status, body))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.connection.by_ref().take(ANSWER_MAX).read_line(&mut line)?;
        if read == 0 { bail!("the service ended the connection") } else { Ok(line.trim_end().to_owned()) }
    }
}
