//! What the coordinator says over HTTP.
//!
//! Contract: one router; `/healthz` (the process works), `/readyz` (it answers in time) and `/metrics` (Prometheus
//! text) are here, `pages` are merged into it. Nothing changes anything: every route is a GET, and answers from one look
//! at the core. Source: design section 8.

mod metrics;
mod pages;
mod rates;

use crate::Error;
use crate::service::Control;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::time::Duration;

/// Longest time the core may take to answer, for the coordinator to count as ready.
const READY: Duration = Duration::from_secs(2);
/// What Prometheus calls its text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All routes.
pub(crate) fn router(control: Control) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(control.clone())
        .merge(pages::router(control))
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

async fn metrics(State(control): State<Control>) -> Result<Response, Error> {
    let text = control.call(metrics::render).await??;
    Ok(([(header::CONTENT_TYPE, EXPOSITION)], text).into_response())
}
