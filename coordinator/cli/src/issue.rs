//! A finding about a compiler as an issue that the people who keep the compiler can work with.
//!
//! It stands alone: the program in the compiler's language, the command, what comes out, which end of it is wrong and why,
//! which releases have it, and the line that replays it. The compiler and its other releases are asked where they are here.

use crate::line;
use crate::releases::{Release, lines, releases, words};
use anyhow::{Result, anyhow, bail};
use moire_corpus::Finding;
use moire_worker::direction::Direction;
use moire_worker::job::{Cancel, Claim, Engine, Verification};
use moire_worker::oracle::{ASSEMBLED_SOURCES, CRASH, Evidence, Mistake, Oracles, SASS, Unit, mistake};
use std::fmt::Write;

/// The issue of a claim, as Markdown. `found` is the finding that holds it, where there is one.
///
/// # Errors
/// The claim is about no compiler, is no mistake or not reproduced, or its text does not read here.
pub(crate) fn issue(engine: &Oracles, claim: &Claim, found: Option<&Finding>) -> Result<String> {
    let Some(evidence) = engine.evidence(claim, &Cancel::new()) else {
        bail!("a finding of the oracle {} is about no compiler, so nobody else can mend it", claim.oracle);
    };
    if !claim.direction.is_bug() {
        bail!("only some readings of the model forbid it ({}), so it is no mistake to report", claim.verdict);
    }
    if let Verification::Refuted(why) = engine.verify(claim, &Cancel::new()) {
        bail!("not reproduced: {why}");
    }
    let evidence = evidence.map_err(|why| anyhow!("{why}"))?;
    let mistake = match claim.direction {
        Direction::Progress => Mistake {
            title: "the emitted code and the program do not end alike".to_owned(),
            lost: "One of the two waits for ever where the other ends.".to_owned(),
        },
        _ => mistake(&claim.axioms),
    };
    let releases = releases(engine, claim);
    let mut out = head(&evidence, claim, &mistake);
    for unit in &evidence.units {
        out += &compiled(unit);
    }
    if claim.verdict != CRASH {
        out += &wrong(&evidence, &mistake);
    }
    out += &known(&releases);
    out += &origin(claim, found);
    Ok(out)
}

fn block(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n", text.trim_end())
}

/// PTX without its comments.
fn bare(ptx: &str) -> String {
    let lines = ptx.lines().map(|l| l.split_once("//").map_or(l, |(code, _)| code).trim_end());
    lines.filter(|l| !l.is_empty()).map(|l| format!("{l}\n")).collect()
}

fn named(unit: &Unit) -> String {
    let version = unit.version.map_or_else(|| unit.release.clone(), |v| v.to_string());
    format!("{} {version}", unit.compiler)
}

fn head(evidence: &Evidence, claim: &Claim, mistake: &Mistake) -> String {
    let names: Vec<String> = evidence.units.iter().map(named).collect();
    let by = names.join(" with ");
    let said = match &evidence.end {
        _ if claim.verdict == CRASH => format!(
            "The program below is valid, and {by} dies of it. It should compile the program, or say why not."
        ),
        _ if machine(evidence) => {
            format!("The machine code that {by} makes of the PTX below does not do what the PTX asks for.")
        }
        Some(end) => format!("The program below cannot end with `{end}`. The PTX that {by} makes of it can."),
        None if claim.direction == Direction::Progress => {
            format!("The program below ends. The PTX that {by} makes of it may wait for ever.")
        }
        None if claim.direction != Direction::Property => format!(
            "The PTX that {by} makes of the program below ends as the program cannot. How it ends was not asked, because the compiler is not here."
        ),
        None => format!(
            "The program below has no race. The PTX that {by} makes of it has one, so what it does is not defined."
        ),
    };
    format!("# {by}: {}\n\n{said}\n\n", mistake.title)
}

/// Whether it is about machine code.
fn machine(evidence: &Evidence) -> bool {
    evidence.units.iter().any(|unit| unit.machine.is_some())
}

fn compiled(unit: &Unit) -> String {
    let mut out = format!("## What {} compiles\n\n{}", named(unit), block(unit.language, &unit.text));
    let _ = writeln!(out, "\n{}", unit.names);
    if let Some((file, bytes)) = &unit.bytes {
        let text = data_encoding::BASE64.encode(bytes);
        let lines: Vec<&str> = text.as_bytes().chunks(100).filter_map(|c| str::from_utf8(c).ok()).collect();
        let _ =
            write!(out, "As bytecode, for `base64 -d > {file}`:\n\n{}\n", block("text", &lines.join("\n")));
    }
    let _ = write!(out, "Compiled by:\n\n{}\n", block("sh", &unit.command));
    if !unit.died.is_empty() {
        return out + "What it ends with:\n\n" + &block("text", &unit.died.join("\n")) + "\n";
    }
    if let Some(machine) = &unit.machine {
        return out + "The machine code that comes out:\n\n" + &block("sass", machine) + "\n";
    }
    match &unit.unasked {
        Some(why) => {
            let _ = writeln!(
                out,
                "The compiler was not asked again while this was written: {why}. It made of the program then:\n"
            );
        }
        None => out += "The PTX that comes out:\n\n",
    }
    out + &block("ptx", &bare(unit.ptx.as_deref().unwrap_or("(not kept)"))) + "\n"
}

fn wrong(evidence: &Evidence, mistake: &Mistake) -> String {
    let mut out = "## What is wrong\n\n".to_owned();
    if !evidence.litmus.starts_with("//") {
        let _ = write!(
            out,
            "The program as a litmus test, which says where each thread runs:\n\n{}\n",
            block("text", &evidence.litmus)
        );
    } else {
        let _ = writeln!(out, "Launched with `{}`.\n", evidence.litmus.trim().trim_start_matches("// tile "));
    }
    if let Some(end) = &evidence.end {
        let _ = writeln!(
            out,
            "- Wrong end: `{end}`. The PTX memory model allows it for the PTX above; the memory model of the program does not."
        );
        match evidence.rules().as_slice() {
            [] => {
                out +=
                    "- No order of the accesses leads there, so this is about values and not about order.\n"
            }
            [one] => out += &format!("- The rule that forbids it: {one}.\n"),
            several => {
                out += &format!(
                    "- Without any one of these rules it would be allowed: {}.\n",
                    several.join("; ")
                )
            }
        }
        if !evidence.forbidden.cycle.is_empty() {
            out += "- For the program to end so, its accesses would have to go round in a circle:\n";
            let steps = evidence.forbidden.cycle.iter().map(|step| format!("  - {step}.\n"));
            out += &steps.collect::<String>();
        }
    }
    if machine(evidence) {
        return out + &format!("- {}\n\n", mistake.lost);
    }
    let _ = writeln!(out, "- Where the PTX differs: {}", mistake.lost);
    let _ = writeln!(
        out,
        "\nThe model of the program is `{}`, that of the PTX is `ptx`, both as shipped with Moiré.\n",
        evidence.model
    );
    if evidence.model.contains(':') {
        out += "Where a specification can be read in several ways, the model has a switch; those that are named are set to what allows most.\n\n";
    }
    out
}

fn known(all: &[Release]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut out = "## Releases\n\n".to_owned();
    if let Some(stretch) = words(all) {
        let _ = writeln!(out, "Of the releases that were here: {stretch}.\n");
    }
    if all.len() > 1 {
        out += "Other releases were asked for their usual target, at the same level of optimisation.\n\n";
    }
    out += &lines(all).into_iter().map(|line| format!("- {line}\n")).collect::<String>();
    out + "\n"
}

fn origin(claim: &Claim, found: Option<&Finding>) -> String {
    let mut out = "## How it was found\n\n".to_owned();
    out += match claim.verdict.as_str() {
        CRASH => "Moiré, a model checker, had the program compiled. ",
        _ if [SASS.name, ASSEMBLED_SOURCES.name].contains(&claim.oracle.as_str()) => {
            "Moiré, a model checker, had the program compiled and compared each path of its machine code with what the PTX asks for. "
        }
        _ => {
            "Moiré, a model checker, had the program compiled and explored all executions of the program and of the PTX. "
        }
    };
    if let Some(f) = found {
        let p = &f.provenance;
        let _ = write!(
            out,
            "The program was drawn (seed {}, number {}) and made as small as it could be. ",
            p.seed, p.index
        );
    }
    out += "This line asks again:\n\n";
    out + &block("sh", &format!("moire replay {}", line::encode(claim)))
}
