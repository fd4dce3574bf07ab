//! The HTTP side of the port: health and counters for operators. The file API has no place here but in an adapter of its own.

use crate::config::About;
use crate::engine::Engine;
use agfs_core::ErrorKind;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often each path of the port was called since the server started.
#[derive(Default)]
pub struct Requests(Mutex<BTreeMap<String, u64>>);

/// The most different paths that are counted: a stranger who makes paths up must not fill the memory.
const MAX_PATHS: usize = 256;

#[derive(Clone)]
struct Shared {
    engine: Arc<Engine>,
    about: Arc<About>,
    requests: Arc<Requests>,
}

/// `GET /healthz` and `GET /v1/stats`, and counting around everything on the port.
pub fn with_http(grpc: Router, engine: Arc<Engine>, about: Arc<About>) -> Router {
    let requests = Arc::new(Requests::default());
    let shared = Shared { engine, about, requests: requests.clone() };
    let own = Router::new().route("/healthz", get(health)).route("/v1/stats", get(stats)).with_state(shared);
    grpc.merge(own).layer(axum::middleware::from_fn_with_state(requests, count))
}

async fn count(State(requests): State<Arc<Requests>>, request: Request, next: Next) -> Response {
    {
        let mut counts = requests.0.lock();
        let path = request.uri().path();
        if counts.len() < MAX_PATHS || counts.contains_key(path) {
            *counts.entry(path.to_owned()).or_default() += 1;
        }
    }
    next.run(request).await
}

/// 200 while the store answers, 503 when it does not.
async fn health(State(shared): State<Shared>) -> Response {
    let engine = shared.engine.clone();
    let read = tokio::task::spawn_blocking(move || engine.meta.get(&crate::model::keys::counter("space")).map(|_| ()));
    let (status, body) = match read.await {
        Ok(Ok(())) => (StatusCode::OK, json!({ "status": "ok", "version": shared.about.version })),
        Ok(Err(e)) => {
            (http_status(e.kind()), json!({ "status": "failing", "code": e.kind().code(), "message": e.message() }))
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "failing" })),
    };
    (status, Json(body)).into_response()
}

async fn stats(State(shared): State<Shared>) -> Json<Value> {
    let store: BTreeMap<String, u64> = shared.engine.meta.stats().into_iter().collect();
    let spaces = shared.engine.all_spaces();
    let mounts: usize = spaces.iter().map(|s| s.hub.mounts().len()).sum();
    let requests = shared.requests.0.lock().clone();
    Json(json!({ "requests": requests, "store": store, "spaces": spaces.len(), "mounts": mounts }))
}

/// Error kind to HTTP status: exhaustive, no wildcard arm.
pub const fn http_status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound | ErrorKind::NoAttribute => StatusCode::NOT_FOUND,
        ErrorKind::Stale => StatusCode::GONE,
        ErrorKind::AlreadyExists | ErrorKind::NotEmpty | ErrorKind::TextBusy | ErrorKind::Conflict => {
            StatusCode::CONFLICT
        }
        ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::InvalidArgument
        | ErrorKind::NameTooLong
        | ErrorKind::CrossDevice
        | ErrorKind::BufferTooSmall => StatusCode::BAD_REQUEST,
        ErrorKind::PermissionDenied | ErrorKind::NotPermitted | ErrorKind::ReadOnly => StatusCode::FORBIDDEN,
        ErrorKind::Refused | ErrorKind::TooManyLinks => StatusCode::PRECONDITION_FAILED,
        ErrorKind::FileTooLarge | ErrorKind::ValueTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::NoSpace | ErrorKind::QuotaExceeded => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::TimedOut | ErrorKind::OutcomeUnknown | ErrorKind::Interrupted => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
