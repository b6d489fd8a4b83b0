//! The guard: checks rate, token and role before a call, and notes it in the audit log afterwards.
//!
//! Contract: a call that passes carries a [`Caller`], which holds one of its peer's slots until it is dropped; a stream keeps
//! it as long as it runs. A refusal says what to do, and reveals nothing about what exists here.

use super::rate::Slot;
use super::role::{self, Role, Rule};
use super::tokens::Holder;
use super::{Door, Entry, Lock, Peer, Refused, hash_of};
use crate::lease::Source;
use axum::http::{HeaderMap, Request, Response, header};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;
use tonic::{Code, Status};
use tower::{Layer, Service};

/// Longest subject of a call in the audit log, in bytes.
const ABOUT_BYTES_MAX: usize = 200;

/// The maker of a call.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Name of the token's holder.
    who: String,
    pub(super) role: Role,
    pub(super) token: Option<blake3::Hash>,
    /// The address or network it calls from.
    network: IpAddr,
    about: Arc<OnceLock<String>>,
    _slot: Arc<Slot>,
}

impl Caller {
    /// The name, if a token says so.
    pub(crate) fn known(&self) -> Option<&str> {
        self.token.map(|_| self.who.as_str())
    }
    /// The credential and the host of the call; `None` where nobody has to identify himself.
    pub(crate) fn source(&self) -> Option<Source> {
        let (who, at) = (self.known()?.to_owned(), self.network);
        Some(match at.to_canonical().is_loopback() {
            true => Source::Here { who, at },
            false => Source::Known(format!("{who} at {at}")),
        })
    }
    /// Says what the call is about, for the audit log.
    pub(crate) fn about(&self, what: &str) {
        let end = (0..=ABOUT_BYTES_MAX.min(what.len())).rfind(|i| what.is_char_boundary(*i)).unwrap_or(0);
        // Only the first subject counts.
        let _ = self.about.set(what[..end].to_owned());
    }
}

/// The token of a call: `Bearer TOKEN`, or the password of `Basic`, which is what browsers can ask for.
fn token(headers: &HeaderMap) -> Option<blake3::Hash> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return hash_of(rest);
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let text = String::from_utf8(data_encoding::BASE64.decode(rest.trim().as_bytes()).ok()?).ok()?;
        return hash_of(text.split_once(':')?.1);
    }
    None
}

/// Why a call is refused, and who made it, if its token is known.
pub(crate) struct Refusal {
    pub(crate) status: Status,
    holder: Option<Holder>,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self { status, holder: None }
    }
}

impl Door {
    /// Whether a call of this peer passes.
    pub(crate) fn admit(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        rule: Option<Rule>,
    ) -> Result<Caller, Refusal> {
        let network = peer.network();
        let slot = self.rates.allow(network, Instant::now()).then(|| self.calls.take(network)).flatten();
        let Some(slot) = slot else {
            Refused::count(&self.refused.limited);
            let text = "too many calls a second, or at one time; close some, or wait and try again";
            return Err(Status::resource_exhausted(text).into());
        };
        let caller = |who: &str, role, token| Caller {
            who: who.to_owned(),
            role,
            token,
            network,
            about: Arc::default(),
            _slot: Arc::new(slot),
        };
        let Some(lock) = &self.lock else { return Ok(caller("this machine", Role::Operator, None)) };
        let Some(Rule { role: needed, .. }) = rule else {
            Refused::count(&self.refused.denied);
            return Err(Status::permission_denied("this call is open to no role").into());
        };
        let Some(needed) = needed else { return Ok(caller("", Role::Viewer, None)) };
        match lock.holder(headers, needed) {
            Ok((holder, token)) => Ok(caller(&holder.name, holder.role, Some(token))),
            Err(refusal) => {
                Refused::count(&self.refused.denied);
                Err(refusal)
            }
        }
    }

    /// Notes a refused call in the audit log.
    pub(crate) fn note_refusal(&self, peer: &Peer, what: &str, refusal: &Refusal) {
        let (status, holder) = (&refusal.status, refusal.holder.as_ref());
        let entry = Entry {
            who: holder.map(|h| h.name.clone()).unwrap_or_default(),
            role: holder.map_or("", |h| h.role.word()),
            peer: peer.addr.to_string(),
            certificate: peer.certificate.clone(),
            what: what.chars().take(ABOUT_BYTES_MAX).collect(),
            answer: format!("{:?}: {}", status.code(), status.message()),
            ..Entry::default()
        };
        self.audit.refused(peer.network(), &entry);
    }

    /// Notes a call that passed in the audit log.
    fn note_answer(&self, peer: &Peer, caller: &Caller, what: &str, headers: &HeaderMap) {
        // An immediate error has its status in the headers; a stream that begins well has it in the trailers.
        let answer = match Status::from_header_map(headers) {
            Some(status) if status.code() != Code::Ok => format!("{:?}: {}", status.code(), status.message()),
            _ => "ok".to_owned(),
        };
        self.audit.granted(&Entry {
            who: caller.who.clone(),
            role: caller.role.word(),
            peer: peer.addr.to_string(),
            certificate: peer.certificate.clone(),
            what: what.to_owned(),
            about: caller.about.get().cloned().unwrap_or_default(),
            answer,
        });
    }
}

impl Lock {
    /// The holder of a call's token, if the role suffices.
    fn holder(&self, headers: &HeaderMap, needed: Role) -> Result<(Holder, blake3::Hash), Refusal> {
        let token = token(headers).ok_or_else(|| {
            Status::unauthenticated("no token: use --certs DIR with a folder that `moire certs` made")
        })?;
        let tokens = self.tokens.current();
        let holder = tokens.who(&token).cloned();
        let holder = holder
            .ok_or_else(|| Status::unauthenticated("the token is not known here; ask for a new one"))?;
        if !holder.role.may(needed) {
            let text = format!("this needs a token of the role {needed}; {} is {}", holder.name, holder.role);
            return Err(Refusal { status: Status::permission_denied(text), holder: Some(holder) });
        }
        Ok((holder, token))
    }
}

/// Puts the guard in front of a service.
#[derive(Clone)]
pub(crate) struct Guard(pub(crate) Arc<Door>);

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;
    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, door: self.0.clone() }
    }
}

/// A guarded service.
#[derive(Clone)]
pub(crate) struct Guarded<S> {
    inner: S,
    door: Arc<Door>,
}

impl<S, B, R> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The service that is ready takes the call; its clone has to become ready by itself.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let door = self.door.clone();
        Box::pin(async move {
            let Some(peer) = request.extensions().get::<Peer>().cloned() else {
                return Ok(Status::internal("a call without a connection").into_http());
            };
            let what = request.uri().path().to_owned();
            let rule = role::rule(&what);
            match door.admit(&peer, request.headers(), rule) {
                Err(refusal) => {
                    door.note_refusal(&peer, &what, &refusal);
                    Ok(refusal.status.into_http())
                }
                Ok(caller) => {
                    request.extensions_mut().insert(caller.clone());
                    let response = inner.call(request).await?;
                    if rule.is_some_and(|r| r.noted) {
                        door.note_answer(&peer, &caller, &what, response.headers());
                    }
                    Ok(response)
                }
            }
        })
    }
}
