//! The gate: accepts connections, within bounds, and under TLS if there are certificates.
//!
//! Contract: a peer that sends nothing, or no valid handshake, costs one slot for at most [`super::Limits::patience`] and
//! delays nobody. Each handshake uses the certificates of that moment. Pages have slots of their own, and a connection for
//! pages ends when nothing was answered on it for so long: headers that come slowly, answers that nobody reads and idle
//! connections keep no slot.

use super::rate::Slot;
use super::{Door, Refused, network};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};

/// Most connections that are ready and not yet served.
const READY_MAX: usize = 64;
/// Pause after a failed accept: there may be no file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) addr: SocketAddr,
    /// Start of the BLAKE3 of its certificate.
    pub(crate) certificate: Option<String>,
}

impl Peer {
    /// The address or network whose bounds it counts against.
    pub(super) fn network(&self) -> IpAddr {
        network(self.addr.ip())
    }
}

/// The bytes of a connection, encrypted or not.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection that may be served.
pub(crate) struct Connection {
    io: Box<dyn Io>,
    peer: Peer,
    /// When it ends, unless something is written before; none on connections for calls, which have signs of life.
    ends: Option<Ends>,
    _slot: Slot,
}

/// The end of a connection on which nothing is answered.
struct Ends {
    after: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Ends {
    fn new(after: Duration) -> Self {
        Self { after, timer: Box::pin(tokio::time::sleep(after)) }
    }
    /// Whether it is time.
    fn now(&mut self, cx: &mut Context<'_>) -> bool {
        self.timer.as_mut().poll(cx).is_ready()
    }
    fn later(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.after);
    }
}

impl Connection {
    /// Whether nothing was answered for too long.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        self.ends.as_mut().is_some_and(|ends| ends.now(cx))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        match &written {
            Poll::Ready(Ok(_)) => self.ends.iter_mut().for_each(Ends::later),
            Poll::Pending if self.is_over(cx) => return Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            _ => {}
        }
        written
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl tonic::transport::server::Connected for Connection {
    type ConnectInfo = Peer;
    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

/// The service behind a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// gRPC, for workers and clients.
    Calls,
    /// Pages and metrics, for browsers and scrapers.
    Pages,
}

/// Accepts connections of peers, within bounds.
pub(crate) struct Gate {
    ready: mpsc::Receiver<Connection>,
    addr: SocketAddr,
}

impl Gate {
    /// Accepts on `listener` until `stop` is dropped.
    pub(crate) fn open(
        listener: TcpListener,
        door: Arc<Door>,
        face: Face,
        mut stop: watch::Receiver<()>,
    ) -> io::Result<Self> {
        let addr = listener.local_addr()?;
        let (sender, ready) = mpsc::channel(READY_MAX);
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    _ = stop.changed() => return,
                    accepted = listener.accept() => accepted,
                };
                match accepted {
                    Ok((stream, addr)) => admit(stream, addr, &door, face, &sender),
                    Err(error) => {
                        tracing::warn!(%error, "accept");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        });
        Ok(Self { ready, addr })
    }

    /// Connections that come from a simulated network, in a trial.
    pub(crate) fn over(
        connections: mpsc::Receiver<(Box<dyn Io>, SocketAddr)>,
        door: Arc<Door>,
    ) -> impl Stream<Item = io::Result<Connection>> {
        ReceiverStream::new(connections).filter_map(move |(io, addr)| {
            let _slot = door.connections.take(network(addr.ip()))?;
            Some(Ok(Connection { io, peer: Peer { addr, certificate: None }, ends: None, _slot }))
        })
    }

    /// For servers that take a stream.
    pub(crate) fn incoming(self) -> impl Stream<Item = io::Result<Connection>> {
        ReceiverStream::new(self.ready).map(Ok)
    }
}

impl axum::serve::Listener for Gate {
    type Io = Connection;
    type Addr = Peer;

    async fn accept(&mut self) -> (Connection, Peer) {
        match self.ready.recv().await {
            Some(connection) => {
                let peer = connection.peer.clone();
                (connection, peer)
            }
            // The channel is closed. The server learns by other means that it has to stop.
            None => std::future::pending().await,
        }
    }
    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer { addr: self.addr, certificate: None })
    }
}

impl axum::extract::connect_info::Connected<axum::serve::IncomingStream<'_, Gate>> for Peer {
    fn connect_info(stream: axum::serve::IncomingStream<'_, Gate>) -> Self {
        stream.remote_addr().clone()
    }
}

/// Takes a slot for the connection, and makes the handshake in a task of its own.
fn admit(
    stream: TcpStream,
    addr: SocketAddr,
    door: &Arc<Door>,
    face: Face,
    ready: &mpsc::Sender<Connection>,
) {
    let slots = match face {
        Face::Calls => &door.connections,
        Face::Pages => &door.pages,
    };
    let Some(slot) = slots.take(network(addr.ip())) else {
        Refused::count(&door.refused.connections);
        return tracing::debug!(%addr, "over the bound of connections");
    };
    // Without this, small messages are delayed by Nagle's algorithm.
    let _ = stream.set_nodelay(true);
    let (door, ready) = (door.clone(), ready.clone());
    tokio::spawn(async move {
        let shaken = tokio::time::timeout(door.limits.patience, shake(stream, addr, &door, face)).await;
        match shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            // Sending fails only when the server has stopped.
            Ok((io, peer)) => {
                let ends = (face == Face::Pages).then(|| Ends::new(door.limits.patience));
                _ = ready.send(Connection { io, peer, ends, _slot: slot }).await;
            }
            Err(error) => {
                Refused::count(&door.refused.connections);
                tracing::debug!(%addr, %error, "no handshake");
            }
        }
    });
}

async fn shake(
    stream: TcpStream,
    addr: SocketAddr,
    door: &Door,
    face: Face,
) -> io::Result<(Box<dyn Io>, Peer)> {
    let Some(lock) = &door.lock else {
        return Ok((Box::new(stream), Peer { addr, certificate: None }));
    };
    let config = match face {
        Face::Calls => lock.calls.current(),
        Face::Pages => lock.pages.current(),
    };
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    let chain = stream.get_ref().1.peer_certificates();
    let certificate = chain.and_then(<[_]>::first).map(|c| blake3::hash(c).to_hex()[..16].to_owned());
    Ok((Box::new(stream), Peer { addr, certificate }))
}
