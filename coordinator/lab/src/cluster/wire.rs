//! Connections that can be ended from outside, and that end in a fixed order.
//!
//! When a simulated process is killed, its tasks are dropped in an order that depends on the history of the whole
//! simulation. So each simulated process has [`Lines`], which are declared first and outlive its tasks. They end its
//! connections in the order in which they were made.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use turmoil::net::TcpStream;

/// The stream of a connection; `None` once it has ended, which the other side notices.
type Slot = Arc<Mutex<Option<TcpStream>>>;

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A switch that ends the connections made with it.
#[derive(Clone, Default)]
pub(super) struct Cut(watch::Sender<()>);

impl Cut {
    pub(super) fn cut(&self) {
        self.0.send_replace(());
    }
}

/// The connections of a process.
#[derive(Clone)]
pub(super) struct Lines {
    all: Arc<Mutex<Vec<Slot>>>,
    /// Whether the process is being killed.
    dying: Arc<AtomicBool>,
}

impl Lines {
    pub(super) fn new(dying: &Arc<AtomicBool>) -> Self {
        Self { all: Arc::default(), dying: dying.clone() }
    }
    /// Adds a connection of this process.
    pub(super) fn line(&self, stream: TcpStream, cut: &Cut) -> Line {
        let slot = Slot::new(Mutex::new(Some(stream)));
        let mut all = locked(&self.all);
        all.retain(|slot| locked(slot).is_some());
        all.push(slot.clone());
        let mut cut = cut.0.subscribe();
        // The sender lives as long as the run.
        let cut = Box::pin(async move { _ = cut.changed().await });
        Line { slot, cut, dying: self.dying.clone() }
    }
}

/// A connection that ends when its process is killed.
pub(super) struct Line {
    slot: Slot,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    dying: Arc<AtomicBool>,
}

impl Line {
    fn with<T>(
        &mut self,
        cx: &mut Context<'_>,
        what: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut slot = locked(&self.slot);
        if slot.is_some() && self.cut.as_mut().poll(cx).is_ready() {
            *slot = None;
        }
        match slot.as_mut() {
            Some(stream) => what(Pin::new(stream), cx),
            None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.dying.load(Ordering::Relaxed) {
            *locked(&self.slot) = None;
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(cx, |stream, cx| stream.poll_read(cx, to))
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.with(cx, |stream, cx| stream.poll_write(cx, from))
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(cx, |stream, cx| stream.poll_flush(cx))
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}
