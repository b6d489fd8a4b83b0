//! The coordinator over HTTP: health, metrics and pages.
//!
//! Contract: one router serves `/healthz` (the process works), `/readyz` (it answers in time), `/metrics` (Prometheus
//! text) and the `pages`. No route changes anything: each is a GET, and its answer comes from one call on the core. If
//! there are certificates, all routes except the two health routes need a viewer's token, as `Bearer` or as the password
//! of `Basic`.

pub(crate) mod metrics;
mod pages;
mod rates;

use crate::Error;
use crate::door::role::Rule;
use crate::door::{Door, Gate, Peer, Role};
use crate::service::Control;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use std::time::Duration;

/// Longest time the core of a ready coordinator may take to answer.
const READY: Duration = Duration::from_secs(2);
/// The content type of the Prometheus text format.
const EXPOSITION: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Builds all routes.
fn router(control: Control, door: Arc<Door>) -> Router {
    let metrics = Router::new().route("/metrics", get(metrics)).with_state((control.clone(), door));
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(control.clone())
        .merge(metrics)
        .merge(pages::router(control))
}

/// Serves the routes until `stop` completes.
pub(crate) async fn serve(
    gate: Gate,
    door: Arc<Door>,
    control: Control,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let guarded = router(control, door.clone()).layer(middleware::from_fn_with_state(door, guard));
    let service = guarded.into_make_service_with_connect_info::<Peer>();
    axum::serve(gate, service).with_graceful_shutdown(stop).await
}

/// Refuses callers without the role of a viewer, except for the health routes.
async fn guard(
    State(door): State<Arc<Door>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let health = matches!(request.uri().path(), "/healthz" | "/readyz");
    let rule = Rule { role: (!health).then_some(Role::Viewer), noted: false };
    match door.admit(&peer, request.headers(), Some(rule)) {
        // The caller holds its slot until the answer is made.
        Ok(_caller) => next.run(request).await,
        Err(refusal) => {
            door.note_refusal(&peer, request.uri().path(), &refusal);
            let status = refusal.status;
            let code = match status.code() {
                tonic::Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
                tonic::Code::PermissionDenied => StatusCode::FORBIDDEN,
                _ => StatusCode::UNAUTHORIZED,
            };
            let how =
                [(header::WWW_AUTHENTICATE, "Basic realm=\"moire: the token of a viewer is the password\"")];
            (code, how, format!("{}\n", status.message())).into_response()
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let code = match &self {
            Self::Status(status) if status.code() == tonic::Code::NotFound => StatusCode::NOT_FOUND,
            Self::Status(status) if status.code() == tonic::Code::InvalidArgument => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (code, format!("{self}\n")).into_response()
    }
}

async fn healthz(State(control): State<Control>) -> Result<&'static str, Error> {
    if control.stopped() { Err(Error::Stopped) } else { Ok("ok\n") }
}

async fn readyz(State(control): State<Control>) -> Result<&'static str, Error> {
    match tokio::time::timeout(READY, control.call(|_| ())).await {
        Ok(answer) => answer.map(|()| "ready\n"),
        Err(_) => Err(Error::Busy),
    }
}

async fn metrics(State((control, door)): State<(Control, Arc<Door>)>) -> Result<Response, Error> {
    let ends = door.ends();
    let text = control.call(move |core| metrics::render(core, &ends)).await??;
    Ok(([(header::CONTENT_TYPE, EXPOSITION)], text).into_response())
}
