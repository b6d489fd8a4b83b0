//! The one binary: arguments in, exit code out.

#[macro_use(eprint, eprintln, print, println)]
extern crate moire_console;

mod cases;
mod cli;
mod cmd;
mod days;
mod device;
mod interrupt;
mod issue;
mod launch;
mod line;
mod logs;
mod memory;
mod model;
mod releases;
mod remote;
mod samples;
mod scores;

use clap::Parser;
use cli::Cli;
use moire_console::exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The tests build with failpoints; a release has none.
    let _failpoints = fail::has_failpoints().then(fail::FailScenario::setup);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let code = if e.use_stderr() { exit::USAGE } else { exit::CLEAN };
            // A closed pipe is no error.
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    moire_console::output::color(cli.color);
    if let Ok(program) = std::env::current_exe() {
        moire_toolchain::source::library::called_by(program);
    }
    logs::start(cli.log);
    moire_console::bounded::set_max_input(cli.max_input);
    let result = cli.command.run(cli.log);
    let code = result.unwrap_or_else(|error| {
        match error.downcast_ref::<std::io::Error>() {
            Some(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {}
            _ => eprintln!("moire: {error:#}"),
        }
        exit::USAGE
    });
    ExitCode::from(moire_console::stored::code(code))
}
