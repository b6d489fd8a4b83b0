//! `moire store`: checks, copies and compacts a store on this machine.

use anyhow::{Result, bail};
use clap::Subcommand;
use moire_console::exit;
use moire_console::stored::STORE;
use moire_console::stored::open;
use moire_coordinator::many;
use moire_corpus::{Options, Store, backup, export, fsck, import, restore};
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
    /// Put back what a damaged log lost, from an index that was moved aside
    ///
    /// Nothing that the store has is replaced. The loss stays noted until it is acknowledged.
    Repair {
        /// The index [default: the newest that was moved aside]
        #[arg(long, value_name = "FOLDER", num_args = 0..=1, required = true)]
        from_index: Option<Option<PathBuf>>,
        /// The store
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// Note that you know of all losses of the store, which ends the messages about them
    Acknowledge {
        /// The reason
        #[arg(long)]
        why: String,
        /// Who says so [default: the user]
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
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

/// The name under which somebody acknowledges a loss, if they give none.
fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned())
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
        StoreCommand::Repair { from_index, store } => {
            let mut store = open(store)?;
            let restored = restore(&mut store, from_index.as_ref().and_then(Option::as_deref))?;
            println!("from {}", restored.index.display());
            restored.records.iter().for_each(|(kind, n)| println!("  {n:8}  {kind} put back"));
            match (restored.records.is_empty(), restored.unreadable) {
                (true, 0) => println!("the index has nothing that the store has not"),
                (_, 0) => {}
                (_, n) => println!("  {n:8}  unreadable in the index"),
            }
        }
        StoreCommand::Acknowledge { why, who, store } => {
            if !store.is_dir() {
                bail!("there is no store at {}", store.display());
            }
            let (mut store, recovery) = Store::open(store, Options { create: false, ..Options::default() })?;
            eprint!("{recovery}");
            for loss in store.losses() {
                println!("{loss}");
            }
            let count = store.acknowledge(&who.clone().unwrap_or_else(user), why)?;
            println!("acknowledged: {count}");
        }
        StoreCommand::Compact { store } => {
            let (before, after) = open(store)?.compact()?;
            println!("log {before} bytes, now {after}");
        }
    }
    Ok(exit::CLEAN)
}
