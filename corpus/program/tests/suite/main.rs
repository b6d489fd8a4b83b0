//! Tests of texts, validation, canonical form and reducer.

#![expect(
    clippy::unwrap_used,
    clippy::single_range_in_vec_init,
    reason = "tests; lists of one range are meant"
)]

mod forms;
mod hostile;
mod joined;
mod lanes;
mod pinned;
mod tensor;
