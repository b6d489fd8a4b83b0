//! `moire certs`: makes a private CA for a fleet, and a folder for each holder of a certificate.

use anyhow::Result;
use moire_console::exit;
use moire_coordinator::certs::{Holder, init, issue};
use std::path::PathBuf;

/// Default validity of certificates, in days.
const DAYS: i64 = 365;

/// Make certificates and tokens for coordinator, workers and clients
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Certs {
    /// Make a CA, and folders for the coordinator, a worker, an operator and a viewer
    Init {
        /// The new folder
        dir: PathBuf,
        /// Name or address of the coordinator, in addition to localhost (repeatable)
        #[arg(long = "name", value_name = "HOST")]
        names: Vec<String>,
        /// Days that they are valid
        #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(i64).range(1..=3650))]
        days: i64,
    },
    /// Make one more folder under an existing CA, to add somebody or to renew before the old one expires
    Issue {
        /// The folder `init` made
        dir: PathBuf,
        /// Name of the new folder, and of the token's holder in the audit log
        holder: String,
        /// Role of its holder: server, worker, operator or viewer
        #[arg(long)]
        role: String,
        /// With --role server: name or address of the coordinator (repeatable)
        #[arg(long = "name", value_name = "HOST")]
        names: Vec<String>,
        /// Days that it is valid
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
