//! `moire certs`: a private CA for a fleet, and a folder for each who uses it.

use anyhow::Result;
use moire_console::exit;
use moire_coordinator::certs::{Holder, init, issue};
use std::path::PathBuf;

/// How long certificates last unless told otherwise, in days.
const DAYS: i64 = 365;

/// Make certificates and tokens for coordinator, workers and clients
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Certs {
    /// Make a CA, and folders for the coordinator, a worker, an operator and a viewer
    Init {
        /// The new folder
        dir: PathBuf,
        /// Name or address under which the coordinator is reached, beside localhost (repeatable)
        #[arg(long = "name", value_name = "HOST")]
        names: Vec<String>,
        /// Days they last
        #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(i64).range(1..=3650))]
        days: i64,
    },
    /// Make one more folder under an existing CA, to add somebody or to renew before the old one expires
    Issue {
        /// The folder `init` made
        dir: PathBuf,
        /// Name of the new folder, and of the token's holder in the audit log
        holder: String,
        /// What it is for: server, worker, operator or viewer
        #[arg(long)]
        role: String,
        /// With --role server: name or address under which the coordinator is reached (repeatable)
        #[arg(long = "name", value_name = "HOST")]
        names: Vec<String>,
        /// Days it lasts
        #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(i64).range(1..=3650))]
        days: i64,
    },
}

pub(crate) fn run(args: &Certs) -> Result<u8> {
    match args {
        Certs::Init { dir, names, days } => {
            for folder in init(dir, names, *days)? {
                println!("{}", folder.display());
            }
            eprintln!(
                "keep {} to yourself; give each machine only the folder it uses, with --certs or MOIRE_CERTS",
                dir.join("ca").display()
            );
        }
        Certs::Issue { dir, holder, role, names, days } => {
            let what = match role.as_str() {
                "server" => Holder::Server(names.clone()),
                role => Holder::Client(role.parse().map_err(anyhow::Error::msg)?),
            };
            println!("{}", issue(dir, holder, &what, *days)?.display());
            if what != Holder::Server(names.clone()) {
                eprintln!("its token is in {} now", dir.join("server/tokens").display());
            }
        }
    }
    Ok(exit::CLEAN)
}
