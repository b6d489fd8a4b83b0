//! What the commands of the binary and the lab behind `moire bench` share: exit codes, output, programs and models by
//! name, campaigns in this process, and the way to a coordinator.
//!
//! Contract: this crate knows no command. `moire-cli` and `moire-bench` depend on it, and it on neither.

/// Prints as std's macro does; a reader that went away ends the process without a message.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::out(format_args!($($text)*)) };
}

/// Prints as std's macro does; a reader that went away ends the process without a message.
#[macro_export]
macro_rules! println {
    () => { $crate::output::out(format_args!("\n")) };
    ($($text:tt)+) => { $crate::output::out(format_args!("{}\n", format_args!($($text)+))) };
}

pub mod campaign;
pub mod claim;
pub mod control;
pub mod exit;
pub mod input;
pub mod output;
pub mod stored;
pub mod suite;
pub mod time;

/// The default number of worker threads: one for each processor.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
