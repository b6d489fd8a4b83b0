//! The one binary: arguments in, exit code out.

/// As std's, and a reader that went away ends the program without a word.
macro_rules! print {
    ($($text:tt)*) => { $crate::out(format_args!($($text)*)) };
}

/// As std's, and a reader that went away ends the program without a word.
macro_rules! println {
    () => { $crate::out(format_args!("\n")) };
    ($($text:tt)+) => { $crate::out(format_args!("{}\n", format_args!($($text)+))) };
}

mod args;
mod cmd;
mod days;
mod exit;
mod input;
mod kernel;
mod line;
mod local;
mod logs;
mod remote;
mod scores;
mod show;
mod tile;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Writes to stdout. What cannot be written is the end: quietly where nobody reads on (`moire .. | head`).
fn out(text: std::fmt::Arguments<'_>) {
    let Err(error) = std::io::stdout().write_fmt(text) else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(exit::CLEAN.into());
    }
    eprintln!("moire: cannot write the output: {error}");
    std::process::exit(exit::USAGE.into());
}

fn main() -> ExitCode {
    // The tests build with failpoints; a release has none.
    let _failpoints = fail::has_failpoints().then(fail::FailScenario::setup);
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let code = if e.use_stderr() { exit::USAGE } else { exit::CLEAN };
            // A closed pipe is not worth a word.
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    logs::start(cli.log);
    let result = match cli.command {
        args::Command::Check(a) => cmd::check::run(&a),
        args::Command::Test(a) => cmd::test::run(&a),
        args::Command::Fuzz(a) => cmd::fuzz::run(&a),
        args::Command::Serve(a) => cmd::serve::serve(&a, cli.log),
        args::Command::Work(a) => cmd::serve::work(&a),
        args::Command::Top(a) => cmd::top::run(&a),
        args::Command::Nightly(a) => cmd::nightly::run(&a),
        args::Command::Certs(a) => cmd::certs::run(&a),
        args::Command::Report(a) => cmd::report::run(&a),
        args::Command::Replay(a) => cmd::replay::replay(&a),
        args::Command::Minimize(a) => cmd::replay::minimize(&a),
        args::Command::Bisect(a) => cmd::bisect::run(&a),
        args::Command::Generate(a) => cmd::generate::run(&a),
        args::Command::Findings(a) => cmd::findings::run(&a),
        args::Command::Campaign(a) => cmd::store::campaigns(&a),
        args::Command::Store(a) => cmd::store::run(&a),
        args::Command::Models(a) => cmd::models::run(&a),
        args::Command::Bench(a) => cmd::bench::run(&a),
        args::Command::Gpu(a) => cmd::gpu::run(&a),
        args::Command::Doctor => cmd::doctor::run(),
        args::Command::Completions { shell } => cmd::completions(shell),
    };
    ExitCode::from(result.unwrap_or_else(|error| {
        match error.downcast_ref::<std::io::Error>() {
            Some(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {}
            _ => eprintln!("moire: {error:#}"),
        }
        exit::USAGE
    }))
}
