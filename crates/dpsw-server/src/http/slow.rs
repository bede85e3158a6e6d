//! Cuts off clients that take a place and do nothing: who does not begin in time, and who takes nothing of a reply.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// So many bytes tell HTTP/1.1 from HTTP/2; until they are there, nobody else looks at the time.
const BEGINNING: usize = 24;

/// A connection that ends when its client is too slow.
pub(crate) struct Guarded<S> {
    stream: S,
    write_time: Duration,
    /// Runs until the client has begun.
    begin: Option<Pin<Box<Sleep>>>,
    /// How much it has sent until then.
    sent: usize,
    /// Runs while it takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    pub(crate) fn new(stream: S, begin_time: Duration, write_time: Duration) -> Self {
        Self { stream, write_time, begin: Some(Box::pin(sleep(begin_time))), sent: 0, stuck: None }
    }

    fn note_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes);
        if BEGINNING <= self.sent {
            self.begin = None;
        }
    }

    /// What became of a write.
    fn written<T>(&mut self, poll: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            (self.stuck, self.begin) = (None, None);
            return poll;
        }
        let write_time = self.write_time;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(write_time)));
        stuck.as_mut().poll(context).map(|()| Err(too_slow()))
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client is too slow")
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note_sent(buffer.filled().len() - before);
        match (&poll, &mut self.begin) {
            (Poll::Pending, Some(begin)) => begin.as_mut().poll(context).map(|()| Err(too_slow())),
            _ => poll,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(poll, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(poll, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(context) {
            // Flushing nothing is no sign of life.
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => self.written(Poll::Pending, context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(poll, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_client_that_never_begins_is_cut_off_and_one_that_has_begun_is_not() {
        let (_silent, stream) = duplex(64);
        let mut stream = Guarded::new(stream, SHORT, LONG);
        let error = stream.read_u8().await.expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let (mut client, stream) = duplex(64);
        let mut stream = Guarded::new(stream, SHORT, LONG);
        client.write_all(&[0; BEGINNING]).await.expect("room");
        stream.read_exact(&mut [0; BEGINNING]).await.expect("it has begun");
        let later = tokio::time::timeout(2 * SHORT, stream.read_u8()).await;
        assert!(later.is_err(), "it still waits: {later:?}");
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_cut_off() {
        let (mut client, stream) = duplex(64);
        let mut stream = Guarded::new(stream, LONG, SHORT);
        stream.write_all(&[0; 64]).await.expect("room");
        client.read_exact(&mut [0; 64]).await.expect("all of it");
        let error = stream.write_all(&[0; 65]).await.expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
