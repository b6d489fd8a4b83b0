//! `moire bench census`: does the book of instructions say of each form what ptxas says?
//!
//! Contract: a census is a table of forms with the answers of ptxas (columns: `corpus/isa/src/census/mod.rs`); without a file
//! it is our own. Each form is read by the book and, in a module of its own, by the reader of modules. With `--neighbours`
//! the forms are drawn from the book itself, and an installed ptxas is asked; without one the command says that it is
//! skipped. The table depends on the arguments, the file and that ptxas alone. Exit 10: forms are judged otherwise than
//! ptxas judges them more often than the bars allow.

mod ask;
mod table;

use anyhow::{Context, Result};
use moire_console::exit;
use moire_isa::census::{Form, OWN, TARGETS, draw};
use moire_toolchain::Ptxas;
use std::fmt::Write;
use std::path::PathBuf;
use table::Table;

#[derive(Debug, clap::Args)]
pub(crate) struct Census {
    /// A census, uncompressed [default: our own]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Draw this many neighbours of its forms and ask an installed ptxas about them instead
    #[arg(long, value_name = "N")]
    neighbours: Option<usize>,
    /// Which neighbours are drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write what was drawn, with the answers of ptxas, as a census
    #[arg(long, value_name = "FILE", requires = "neighbours")]
    out: Option<PathBuf>,
    /// List each form that is judged otherwise
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(args: &Census) -> Result<u8> {
    let text = match &args.file {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
        }
        None => OWN.to_owned(),
    };
    let Some(count) = args.neighbours else { return compare(&text, args.list) };
    let Ok(ptxas) = Ptxas::find(None) else {
        println!("skipped: no ptxas is installed; `moire doctor` says how to get it");
        return Ok(exit::CLEAN);
    };
    let drawn = census(&ptxas, &draw(&text, args.seed, count))?;
    if let Some(path) = &args.out {
        std::fs::write(path, &drawn).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("ptxas {}, seed {}", ptxas.version(), args.seed);
    compare(&drawn, args.list)
}

/// Compares a census with both readers, and prints the table.
fn compare(text: &str, list: bool) -> Result<u8> {
    let mut table = Table::default();
    for form in text.lines().filter_map(Form::of) {
        for line in table.add(&form).into_iter().filter(|_| list) {
            println!("{line}");
        }
    }
    print!("{table}");
    Ok(if table.within_the_bars() { exit::CLEAN } else { exit::FINDING })
}

/// Asks ptxas about forms, and writes its answers as a census. A form that the book refuses is asked once more, alone.
fn census(ptxas: &Ptxas, forms: &[(&str, String)]) -> Result<String> {
    let texts: Vec<&str> = forms.iter().map(|(_, text)| text.as_str()).collect();
    let mut targets = ask::targets(ptxas, &texts)?;
    for ((mnemonic, text), answer) in forms.iter().zip(&mut targets) {
        let form = Form { mnemonic, text, targets: *answer, version: 0 };
        if form.accepted() && form.compare().read.is_err() {
            for (accepted, sm) in answer.iter_mut().zip(TARGETS).filter(|(accepted, _)| **accepted) {
                *accepted = ask::takes(ptxas, text, sm)?;
            }
        }
    }
    let versions = ask::versions(ptxas, &texts, &targets)?;
    let mut out = "#mnemonic\tform\torigin\ttargets\tversion\n".to_owned();
    for (((mnemonic, text), answer), version) in forms.iter().zip(targets).zip(versions) {
        let letters: String = answer.iter().map(|a| if *a { 'A' } else { '-' }).collect();
        let version = if version == 0 { String::new() } else { format!("{}.{}", version / 10, version % 10) };
        writeln!(out, "{mnemonic}\t{text}\tdrawn\t{letters}\t{version}")
            .context("a string takes all text")?;
    }
    Ok(out)
}
