//! How JavaScript calls the playground: it writes a request into [`room`], calls [`judge`], and reads the answer from [`answer`].
//!
//! Contract: requests and answers are JSON in UTF-8, see [`crate::Request`] and [`crate::Response`]; an error is `{"error": ".."}`. One
//! thread calls at a time. What is returned as an address is valid until the next call.

#![allow(unsafe_code, reason = "exported names are unsafe attributes; nothing else here is unsafe")]

use crate::{Request, asked};
use serde_json::json;
use std::sync::{Mutex, PoisonError};

/// The request, and the answer to it.
static TEXTS: Mutex<(Vec<u8>, Vec<u8>)> = Mutex::new((Vec::new(), Vec::new()));

/// Makes room for a request of so many bytes; its address.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.0 = vec![0; bytes];
    texts.0.as_mut_ptr()
}

/// Answers the request; how many bytes the answer has.
#[unsafe(no_mangle)]
pub extern "C" fn judge() -> usize {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.1 = answered(&texts.0);
    texts.1.len()
}

/// The address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner).1.as_ptr()
}

fn answered(request: &[u8]) -> Vec<u8> {
    let request = serde_json::from_slice::<Request>(request).map_err(|e| anyhow::anyhow!("no request: {e}"));
    match request.and_then(|request| asked(&request)) {
        Ok(response) => serde_json::to_vec(&response).unwrap_or_default(),
        Err(error) => json!({"error": format!("{error:#}")}).to_string().into_bytes(),
    }
}
