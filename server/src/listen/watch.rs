//! Tells a connection that is in use from one that only holds its place.
//!
//! Looked at once a period. A connection is given up if, for a whole period,
//! - nothing was being worked on for the client, and it asked for nothing and took nothing; or
//! - something was to be written and not a byte went out; or
//! - it took nothing of one of its replies, whatever it did with the others: a stream of HTTP/2 without room in its window
//!   holds memory however lively its neighbours are. We cannot end that stream alone, because hyper does not ask for the
//!   body of a reply that it cannot send.
//!
//! That covers replies nobody reads, idle connections, and those on which a first request never comes. Pings do not count:
//! they say that the machine is there, not that anyone wants anything.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
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
/// The most that is handed on of a reply at a time.
const PIECE_BYTES_MAX: usize = 16 * 1024; // fixed: the size of a frame of HTTP/2

/// What one connection has been doing.
#[derive(Default)]
pub struct Watch {
    /// Requests that are not over.
    exchanges: Mutex<HashMap<u64, Arc<State>>>,
    next: AtomicU64,
    /// Has the client asked for or taken anything in this period?
    moved: AtomicBool,
    /// Does something wait to be written?
    blocked: AtomicBool,
    /// Did anything go out in this period?
    written: AtomicBool,
}

/// How one request stands.
#[derive(Default)]
struct State {
    /// Whose turn is it: ours to answer, or the client's to take the answer?
    is_ours: AtomicBool,
    /// Did it get any further in this period?
    moved: AtomicBool,
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
        let (mut is_at_work, mut is_unread) = (false, false);
        for state in self.exchanges().values() {
            let (has_moved, is_ours) =
                (state.moved.swap(false, Ordering::Relaxed), state.is_ours.load(Ordering::Relaxed));
            is_at_work |= is_ours;
            is_unread |= !is_ours && !has_moved;
        }
        let is_idle = !moved && !is_at_work;
        let is_stuck = !written && self.blocked.load(Ordering::Relaxed);
        is_idle || is_stuck || is_unread
    }

    fn exchanges(&self) -> MutexGuard<'_, HashMap<u64, Arc<State>>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request that we are working on.
    pub fn request(self: &Arc<Self>) -> Arc<Exchange> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let state = Arc::<State>::default();
        self.exchanges().insert(number, Arc::clone(&state));
        let exchange = Arc::new(Exchange { watch: Arc::clone(self), number, state });
        exchange.pass(true);
        exchange
    }
}

/// One request and its reply, until the last byte of it has gone out.
pub struct Exchange {
    watch: Arc<Watch>,
    number: u64,
    state: Arc<State>,
}

impl Exchange {
    fn pass(&self, to_us: bool) {
        self.state.is_ours.store(to_us, Ordering::Relaxed);
        self.went_on();
    }

    fn went_on(&self) {
        self.state.moved.store(true, Ordering::Relaxed);
        self.watch.moved.store(true, Ordering::Relaxed);
    }

    /// The reply's body: the client's turn while it is not asked for more.
    pub fn reply(self: Arc<Self>, body: Body) -> WatchedBody {
        self.pass(false);
        WatchedBody { body, rest: Bytes::new(), exchange: self }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.went_on();
        self.watch.exchanges().remove(&self.number);
    }
}

pub struct WatchedBody {
    body: Body,
    /// What the body gave and we have not handed on yet.
    rest: Bytes,
    exchange: Arc<Exchange>,
}

impl WatchedBody {
    /// The next piece of what is there. Pieces are small, so that a slow reader is seen to read.
    fn piece(&mut self) -> Frame<Bytes> {
        let bytes = self.rest.split_to(self.rest.len().min(PIECE_BYTES_MAX));
        Frame::data(Bytes::from_owner(Piece { bytes, exchange: Arc::clone(&self.exchange) }))
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(context);
            self.exchange.pass(polled.is_pending());
            match ready!(polled).transpose()?.map(Frame::into_data) {
                None => return Poll::Ready(None),
                Some(Err(other)) => return Poll::Ready(Some(Ok(other))),
                Some(Ok(data)) => self.rest = data,
            }
        }
        Poll::Ready(Some(Ok(self.piece())))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let upper = hint.upper();
        hint.set_lower(hint.lower() + rest);
        if let Some(upper) = upper {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// Bytes of a reply that are on their way. Whoever writes them drops them when they are out.
struct Piece {
    bytes: Bytes,
    exchange: Arc<Exchange>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.exchange.went_on();
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
