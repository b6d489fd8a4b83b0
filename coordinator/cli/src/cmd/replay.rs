//! `moire replay` and `moire minimize`: a finding again, from a printed line, an id, a bundle or a program.

use crate::args::{Minimize, Replay};
use crate::input::parse_program;
use crate::{exit, line, local};
use anyhow::{Context, Result, anyhow};
use moire_coordinator::many;
use moire_program::text::print;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, Plan, Source, Verification};
use moire_worker::oracle::{ORACLES, Oracles};
use std::path::Path;
use std::sync::Arc;

/// Candidates `minimize` tries unless told otherwise; a reduction of a generated program needs a few hundred.
pub(crate) const CANDIDATES: u64 = 20_000;

/// What the argument named: a claim, or a program that every oracle looks at.
enum Subject {
    Claim(Box<Claim>, Vec<String>),
    Program(String),
}

fn subject(word: &str, store: &Path) -> Result<Subject> {
    if line::is_line(word) {
        let (claim, fingerprints) = line::decode(word)?;
        return Ok(Subject::Claim(Box::new(claim), fingerprints));
    }
    let path = Path::new(word);
    if path.is_file() {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {word}"))?;
        if bytes.trim_ascii_start().starts_with(b"{")
            && let Ok(bundle) = moire_corpus::bundle::read(&bytes)
        {
            return Ok(stored(&bundle.finding));
        }
        if crate::tile::is_text(path) {
            return Ok(Subject::Program(crate::tile::text(word, &bytes)?));
        }
        let source = parse_program(word, &bytes)?;
        return Ok(Subject::Program(print(&source.program)));
    }
    if word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(stored(&super::store::open(store)?.named(word)?));
    }
    Err(anyhow!(
        "`{word}` is no file, no id of a finding (eight hexadecimal digits or more) and no replay line (m1...)"
    ))
}

/// The claim that a line, an id or a bundle names, with the fingerprints it was found under.
pub(super) fn claim(word: &str, store: &Path) -> Result<(Claim, Vec<String>)> {
    match subject(word, store)? {
        Subject::Claim(claim, fingerprints) => Ok((*claim, fingerprints)),
        Subject::Program(_) => {
            Err(anyhow!("`{word}` is a program: name a finding, or paste its replay line"))
        }
    }
}

fn stored(f: &moire_corpus::Finding) -> Subject {
    let fingerprints = f.models.iter().map(|m| m.fingerprint.short()).collect();
    Subject::Claim(Box::new(local::claim_of(f)), fingerprints)
}

/// Says so when a model is not the one the finding was made with.
fn compare_models(engine: &Oracles, claim: &Claim, fingerprints: &[String]) {
    for (side, then) in claim.models.iter().zip(fingerprints) {
        let spec = local::spec_of(side);
        // A tool that is not here: the claim is then abstained from, with the reason.
        let Ok(now) = engine.side_fingerprint(&spec) else { continue };
        let now = data_encoding::HEXLOWER.encode(&now[..8]);
        if !now.starts_with(then.as_str()) {
            eprintln!("note: {spec} has changed since this finding was made ({then}, now {now})");
        }
    }
}

/// Every rule `program` breaks.
fn claims(engine: &Oracles, program: &str) -> (Vec<Claim>, Vec<String>) {
    let here = |oracle: &&str| {
        let needs = crate::local::needs(&[(*oracle).to_owned()]);
        needs.iter().all(|tool| engine.capabilities().contains(tool))
    };
    let oracles = ORACLES.iter().filter(|o| here(o)).map(|o| (*o).to_owned()).collect();
    let plan = Plan { oracles, ..Plan::default() };
    let item = Item { plan: Arc::new(plan), index: 0, source: Source::Text(program.to_owned()) };
    let report = engine.run(&item, &Cancel::new());
    (report.claims, report.abstentions.into_keys().collect())
}

pub(crate) fn replay(args: &Replay) -> Result<u8> {
    let engine = Oracles::new();
    let (claim, fingerprints) = match subject(&args.what, &args.store)? {
        Subject::Claim(claim, fingerprints) => (claim, fingerprints),
        Subject::Program(text) => {
            let (claims, abstained) = claims(&engine, &text);
            claims.iter().for_each(|c| println!("{}\n  moire replay {}", local::kind(c), line::encode(c)));
            abstained.iter().for_each(|reason| eprintln!("abstained: {reason}"));
            return Ok(match (claims.is_empty(), abstained.is_empty()) {
                (false, _) => exit::FINDING,
                (true, false) => exit::INCOMPLETE,
                (true, true) => {
                    println!("every oracle agrees");
                    exit::CLEAN
                }
            });
        }
    };
    compare_models(&engine, &claim, &fingerprints);
    println!("{}\n{}", local::kind(&claim), claim.program.trim_end());
    match engine.verify(&claim, &Cancel::new()) {
        Verification::Confirmed => {
            println!("reproduced");
            let (found, _) = claims(&engine, &claim.program);
            let same = found.into_iter().find(|c| local::kind(c) == local::kind(&claim));
            if let Some(witness) = same.map(|c| c.witness).filter(|w| !w.is_empty()) {
                println!("witness {witness}");
            }
            Ok(exit::FINDING)
        }
        Verification::Refuted(why) => {
            println!("not reproduced: {why}");
            Ok(exit::CLEAN)
        }
        Verification::Abstained(reason) => {
            println!("abstained: {reason}");
            Ok(exit::INCOMPLETE)
        }
    }
}

pub(crate) fn minimize(args: &Minimize) -> Result<u8> {
    let engine = Oracles::new();
    let found = match subject(&args.what, &args.store)? {
        Subject::Claim(claim, _) => vec![*claim],
        Subject::Program(text) => claims(&engine, &text).0,
    };
    let Some(claim) = found.first() else {
        println!("every oracle agrees; there is nothing to keep while it is made smaller");
        return Ok(exit::CLEAN);
    };
    let stop = Cancel::new();
    super::on_interrupt(stop.clone());
    let reduced = engine.minimise(claim, Budget { candidates: args.limit }, &stop, &mut |best| {
        eprintln!("{} bytes", best.program.len());
    });
    print!("{}", reduced.claim.program);
    eprintln!(
        "{} tried, {}",
        many(reduced.tried, "candidate"),
        if reduced.normal { "nothing smaller" } else { "limit hit" }
    );
    eprintln!("moire replay {}", line::encode(&reduced.claim));
    Ok(if reduced.normal { exit::FINDING } else { exit::INCOMPLETE })
}
