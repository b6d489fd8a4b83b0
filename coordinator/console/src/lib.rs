//! Helpers shared by the commands of the binary and by `moire bench`: exit codes, output, programs and models by name,
//! campaigns in this process, and connections to a coordinator.
//!
//! Contract: this crate knows no command. `moire-cli` and `moire-bench` depend on it; it depends on neither.

/// Prints as std's macro does, but ends the process silently if the reader has gone.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::out(format_args!($($text)*)) };
}

/// Prints as std's macro does, but ends the process silently if the reader has gone.
#[macro_export]
macro_rules! println {
    () => { $crate::output::out(format_args!("\n")) };
    ($($text:tt)+) => { $crate::output::out(format_args!("{}\n", format_args!($($text)+))) };
}

/// Prints to stderr as std's macro does, without the control characters of outside text.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::err(format_args!($($text)*)) };
}

/// Prints to stderr as std's macro does, without the control characters of outside text.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::output::err(format_args!("\n")) };
    ($($text:tt)+) => { $crate::output::err(format_args!("{}\n", format_args!($($text)+))) };
}

pub mod bounded;
pub mod campaign;
pub mod claim;
pub mod control;
pub mod ending;
pub mod input;
pub mod output;
pub mod stored;
pub mod streams;
pub mod suite;
pub mod time;

pub use moire_verdict::exit;

/// Returns the default number of worker threads: one for each processor.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
