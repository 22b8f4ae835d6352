//! Tells a connection that is in use from one that only holds its place.
//!
//! Looked at once a period. A connection is given up if, for a whole period,
//! - nothing was being worked on for the client, and it asked for nothing and took nothing; or
//! - something was to be written and not a byte went out.
//!
//! That covers replies nobody reads, streams of HTTP/2 without room in their window, idle connections, and those on which
//! a first request never comes. Pings do not count: they say that the machine is there, not that anyone wants anything.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a connection may do nothing.
#[derive(Clone, Copy)]
pub struct Patience {
    /// From its beginning to its first request.
    pub first: Duration,
    /// At any later time; it is noticed within twice as long.
    pub later: Duration,
}

/// Pings, acknowledgements and window updates of HTTP/2, some of them in one write.
const CONTROL_FRAMES_BYTES: usize = 64; // fixed: they have 9 to 17 bytes each

/// What one connection has been doing.
#[derive(Default)]
pub struct Watch {
    /// Requests and replies that wait for us. All others wait for the client.
    at_work: AtomicUsize,
    /// Has the client asked for or taken anything in this period?
    moved: AtomicBool,
    /// Does something wait to be written?
    blocked: AtomicBool,
    /// Did anything go out in this period?
    written: AtomicBool,
}

impl Watch {
    /// Returns when the connection is to be given up.
    pub async fn until_deserted(&self, patience: Patience) {
        tokio::time::sleep(patience.first).await;
        while !self.is_deserted() {
            tokio::time::sleep(patience.later).await;
        }
    }

    fn is_deserted(&self) -> bool {
        let (moved, written) =
            (self.moved.swap(false, Ordering::Relaxed), self.written.swap(false, Ordering::Relaxed));
        let is_idle = !moved && self.at_work.load(Ordering::Relaxed) == 0;
        let is_stuck = !written && self.blocked.load(Ordering::Relaxed);
        is_idle || is_stuck
    }

    /// A request that we are working on.
    pub fn request(self: &Arc<Self>) -> Turn {
        let mut turn = Turn { watch: Arc::clone(self), is_ours: false };
        turn.pass(true);
        turn
    }
}

/// Whose turn it is with one request: ours to answer, or the client's to take the answer.
pub struct Turn {
    watch: Arc<Watch>,
    is_ours: bool,
}

impl Turn {
    fn pass(&mut self, to_us: bool) {
        self.watch.moved.store(true, Ordering::Relaxed);
        match (self.is_ours, to_us) {
            (false, true) => drop(self.watch.at_work.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.watch.at_work.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        self.is_ours = to_us;
    }

    /// The reply's body: the client's turn while it is not asked for more.
    pub fn reply(mut self, body: Body) -> WatchedBody {
        self.pass(false);
        WatchedBody { body, turn: self }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.pass(false);
    }
}

pub struct WatchedBody {
    body: Body,
    turn: Turn,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.turn.pass(polled.is_pending());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose writes are watched.
pub struct WatchedStream<S> {
    stream: S,
    watch: Arc<Watch>,
}

impl<S> WatchedStream<S> {
    pub fn new(stream: S, watch: &Arc<Watch>) -> Self {
        Self { stream, watch: Arc::clone(watch) }
    }

    fn note<T>(&self, polled: &Poll<io::Result<T>>) {
        self.watch.blocked.store(polled.is_pending(), Ordering::Relaxed);
    }

    fn note_written(&self, polled: &Poll<io::Result<usize>>) {
        self.note(polled);
        if let Poll::Ready(Ok(bytes)) = polled {
            self.watch.written.store(true, Ordering::Relaxed);
            if *bytes > CONTROL_FRAMES_BYTES {
                self.watch.moved.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_written(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note_written(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.note(&polled);
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.note(&polled);
        polled
    }
}
