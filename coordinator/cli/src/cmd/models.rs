//! `moire models`: what the models are and what they leave open.

use crate::args::Models;
use crate::exit;
use crate::input::{load_model, variants};
use anyhow::Result;
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Variants, builtin};
use moire_coordinator::many;

pub(crate) fn run(args: &Models) -> Result<u8> {
    match args {
        Models::List { checks } => list(*checks),
        Models::Diff(args) => super::diff::run(args),
        Models::Show { name, model } => {
            let name = name.as_deref().unwrap_or(model.name(None));
            let loaded = load_model(name, &variants(&model.variants)?)?;
            println!("{}", loaded.canonical_text());
            println!("Checks, and what the explorer does with them:\n{}", loaded.explain());
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

fn list(checks: bool) -> Result<u8> {
    for name in builtin::names() {
        let model = builtin::load(name, &Variants::new())?;
        let switches: Vec<&str> = model.switches().iter().map(|s| s.name.as_str()).collect();
        println!("{name:8} {}, switches {}", many(model.checks().len(), "check"), switches.join(" "));
        if checks {
            model.explain().lines().for_each(|line| println!("    {line}"));
        }
    }
    Ok(exit::CLEAN)
}
