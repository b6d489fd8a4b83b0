//! `moire store`: checks, copies and compacts a store on this machine.

use anyhow::{Result, bail};
use clap::Subcommand;
use moire_console::exit;
use moire_console::stored::STORE;
use moire_console::stored::open;
use moire_coordinator::many;
use moire_corpus::{backup, export, fsck, import};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Check a store; with --repair also repair it (nothing is deleted, damaged parts are moved aside)
    Fsck {
        /// Repair too
        #[arg(long)]
        repair: bool,
        /// The store
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// Write the whole store as one text file
    Export {
        /// The file
        out: PathBuf,
        /// The store
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// Make a store from an exported file
    Import {
        /// The file
        file: PathBuf,
        /// The new store
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// Copy the store into a new folder
    Backup {
        /// The folder
        out: PathBuf,
        /// The store
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// Rewrite the log without superseded records
    Compact {
        /// The store
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
}

pub(crate) fn run(args: &StoreCommand) -> Result<u8> {
    match args {
        StoreCommand::Fsck { repair, store } => {
            if !store.is_dir() {
                bail!("there is no store at {}", store.display());
            }
            let report = fsck(store, *repair)?;
            println!("{}, {}", many(report.commits, "commit"), many(report.bundles, "bundle"));
            report.records.iter().for_each(|(kind, n)| println!("  {n:8}  {kind}"));
            report.repairs.iter().for_each(|r| println!("repaired: {r}"));
            report.problems.iter().for_each(|p| println!("problem: {p}"));
            return Ok(if report.problems.is_empty() { exit::CLEAN } else { exit::FINDING });
        }
        StoreCommand::Export { out, store } => export(&open(store)?, out)?,
        StoreCommand::Import { file, store } => import(file, store)?,
        StoreCommand::Backup { out, store } => backup(&open(store)?, out)?,
        StoreCommand::Compact { store } => {
            let (before, after) = open(store)?.compact()?;
            println!("log {before} bytes, now {after}");
        }
    }
    Ok(exit::CLEAN)
}
