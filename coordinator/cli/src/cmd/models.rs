//! `moire models`: lists, shows and compares the models and their switches.

use super::diff::DiffArgs;
use anyhow::Result;
use clap::Subcommand;
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Feature, Model, Variants};
use moire_console::exit;
use moire_console::input::{ModelSpec, include_notes};
use moire_coordinator::many;

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List the shipped models
    List {
        /// Also list each check, and whether it prunes (monotone) or is judged on finished executions only (leaf-only)
        #[arg(long)]
        checks: bool,
    },
    /// Find the least program on which two models differ, or the bound up to which there is none
    Diff(DiffArgs),
    /// Show text, switches and checks of one model
    Show {
        /// A shipped model or a file that ends in .cat, with switches to set: ptx:Q6=B
        #[arg(value_name = "NAME[:SWITCH=VALUE,..]")]
        model: ModelSpec,
    },
}

pub(crate) fn run(args: &Models) -> Result<u8> {
    match args {
        Models::List { checks } => list(*checks),
        Models::Diff(args) => super::diff::run(args),
        Models::Show { model } => {
            let loaded = model.load()?;
            println!("{}", loaded.canonical_text());
            println!("Checks, and what the explorer does with them:\n{}", loaded.explain());
            contract(&loaded);
            if !loaded.switches().is_empty() {
                println!("Switches:");
            }
            for s in loaded.switches() {
                let value = loaded.variant(&s.name).unwrap_or_default();
                let contests = if s.contesting.is_empty() {
                    "baseline".into()
                } else {
                    format!("contests {}", s.contesting.join("/"))
                };
                println!("  {:4} = {value} (default {}, {contests}) {}", s.name, s.default, s.doc);
            }
            println!("\nBase sets:");
            for (name, meaning) in sets::ALL {
                println!("  {name:20} {meaning}");
            }
            println!("\nBase relations:");
            for (name, meaning) in rels::ALL {
                println!("  {name:20} {meaning}");
            }
            Ok(exit::CLEAN)
        }
    }
}

/// Prints what the model declares to the engines, and what they rely on.
fn contract(model: &Model) {
    for note in include_notes(model) {
        println!("note: {note}");
    }
    let by = |id: moire_cat::CheckId| &model.checks()[id.0].name;
    println!(
        "Values out of thin air: {}",
        match model.forbids_thin_air() {
            Some(check) => format!("forbidden by {}", by(check)),
            None => "no check forbids them; only executions without them are visited".into(),
        }
    );
    if !model.licences().is_empty() {
        println!("Licences:");
    }
    for licence in model.licences() {
        let granted = match licence.granted {
            Ok(_) => format!("granted by {}", licence.by),
            Err(why) => format!("not granted by {}: {why}", licence.by),
        };
        println!("  {:20} {} ({granted})", licence.kind.word(), licence.text);
    }
    let covered = |f: &Feature| model.covers(*f);
    let features: Vec<&str> = Feature::ALL.into_iter().filter(covered).map(Feature::word).collect();
    println!("Features: {}", if features.is_empty() { "none".into() } else { features.join(", ") });
    println!("Settings:");
    for (name, value) in model.settings().words() {
        println!("  {name:20} {value}");
    }
    println!();
}

fn list(checks: bool) -> Result<u8> {
    for name in moire_models::names() {
        let model = moire_models::load(name, &Variants::new())?;
        let switches: Vec<&str> = model.switches().iter().map(|s| s.name.as_str()).collect();
        println!("{name:8} {}, switches {}", many(model.checks().len(), "check"), switches.join(" "));
        if checks {
            model.explain().lines().for_each(|line| println!("    {line}"));
        }
    }
    Ok(exit::CLEAN)
}
