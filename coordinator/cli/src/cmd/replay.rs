//! `moire replay` and `moire minimize`: run a finding again, or reduce it; given as printed line, id, bundle or program.
//!
//! Contract: a program whose verdict is a finding is reduced as long as its verdicts under the model stay the same, and a
//! hang waits for the same kind of thing. Any other program is reduced as long as the rule that it breaks stays broken.

use super::check::smaller::smaller;
use crate::device::Lent;
use crate::interrupt::on_interrupt;
use crate::launch::LaunchArgs;
use crate::line;
use crate::model::ModelArgs;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use moire_cat::Model;
use moire_console::input::{File, Rejected, parse_program, read_file};
use moire_console::stored::STORE;
use moire_console::{claim, exit};
use moire_coordinator::{MINIMISE_CANDIDATES, many};
use moire_execution::leaf::End;
use moire_explore::Limits;
use moire_explore::judge::{self, Judgement, Questions, Verdict};
use moire_program::ir::Program;
use moire_program::lanes::joined;
use moire_program::reduce;
use moire_program::text::print;
use moire_source::text as source_text;
use moire_verdict::kernel;
use moire_worker::direction::UnknownDirection;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Plan, Source, Verification};
use moire_worker::oracle::{self, About, Oracles};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Program, bundle, id of a finding, or printed line
    pub(crate) what: String,
    /// Store in which an id is looked up
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) lent: Lent,
}

#[derive(Debug, Args)]
pub(crate) struct Minimize {
    /// Program, PTX module, bundle, id of a finding, or printed line
    pub(crate) what: String,
    /// Most candidates to try
    #[arg(long, default_value_t = MINIMISE_CANDIDATES)]
    pub(crate) limit: u64,
    /// What a program keeps while it is reduced [default: its verdicts if one is a finding, else the broken rule]
    #[arg(long, value_enum)]
    pub(crate) keep: Option<Keep>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Store in which an id is looked up
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) lent: Lent,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

/// The property that a program keeps while it is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// The verdicts of `moire check` under the model
    Verdict,
    /// The rule that an oracle finds broken
    Rule,
}

/// The meaning of the argument: a claim (with fingerprints of its models), or a program for all oracles.
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
        let bytes = moire_console::bounded::read(path).with_context(|| format!("cannot read {word}"))?;
        if bytes.trim_ascii_start().starts_with(b"{")
            && let Ok(bundle) = moire_corpus::bundle::read(&bytes)
        {
            return stored(&bundle.finding);
        }
        if let Some(text) = source(word, &bytes)? {
            return Ok(Subject::Program(text));
        }
        if kernel::is_text(path, &bytes) {
            return Ok(Subject::Program(kernel::text(word, &bytes)?));
        }
        if kernel::is_compiled(&File::new(path, word, bytes.clone(), None)) {
            bail!(
                "{word}: no oracle judges a PTX module; `moire check {word}` does, and `moire minimize` reduces what is wrong"
            );
        }
        let source = parse_program(word, &bytes)?;
        return Ok(Subject::Program(print(source.written())));
    }
    if word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        return stored(&moire_console::stored::open(store)?.named(word)?);
    }
    Err(anyhow!(
        "`{word}` is no file, no id of a finding (eight hexadecimal digits or more) and no replay line (m1...)"
    ))
}

/// The text of a source program; `None` for another text.
pub(super) fn source(name: &str, bytes: &[u8]) -> Result<Option<String>> {
    let Some(text) = str::from_utf8(bytes).ok().filter(|text| source_text::is_source(text)) else {
        return Ok(None);
    };
    match source_text::parse(text) {
        Ok(_) => Ok(Some(text.to_owned())),
        Err(e) => Err(anyhow!(Rejected::new(name, text, e.0))),
    }
}

/// The meaning of the argument; or the exit code, where it is a claim that this release does not read.
fn read(word: &str, store: &Path) -> Result<Result<Subject, u8>> {
    match subject(word, store) {
        Err(why) if why.is::<UnknownDirection>() => Ok(Err(not_retested(&why.to_string()))),
        read => read.map(Ok),
    }
}

/// The claim that a line, an id or a bundle names, or the first of a program; or the exit code, where this release does not
/// read it, or no oracle claims anything.
pub(super) fn claim(engine: &Oracles, word: &str, store: &Path) -> Result<Result<Claim, u8>> {
    Ok(match read(word, store)? {
        Ok(Subject::Claim(claim, _)) => Ok(*claim),
        Ok(Subject::Program(text)) => {
            let (claims, abstained) = claims(engine, &text);
            claims.into_iter().next().ok_or_else(|| agreed(&abstained, ""))
        }
        Err(code) => Err(code),
    })
}

fn stored(f: &moire_corpus::Finding) -> Result<Subject> {
    let fingerprints = f.models.iter().map(|m| m.fingerprint.short()).collect();
    Ok(Subject::Claim(Box::new(claim::of(f)?), fingerprints))
}

/// Prints a note if a model has changed since the finding was made.
fn compare_models(engine: &Oracles, claim: &Claim, fingerprints: &[String]) {
    for (side, then) in claim.models.iter().zip(fingerprints) {
        let spec = side.spec();
        // A side without fingerprint needs a tool that is not installed; the oracle abstains with that reason.
        let Ok(now) = engine.side_fingerprint(&spec) else { continue };
        let now = data_encoding::HEXLOWER.encode(&now[..8]);
        if !now.starts_with(then.as_str()) {
            eprintln!("note: {spec} has changed since this finding was made ({then}, now {now})");
        }
    }
}

/// The exit code of a program that breaks no rule; `so` ends the sentence if every oracle had an answer.
fn agreed(abstained: &[String], so: &str) -> u8 {
    match abstained.is_empty() {
        true => {
            println!("every oracle agrees{so}");
            exit::CLEAN
        }
        false => exit::INCOMPLETE,
    }
}

/// Runs all oracles on `program` whose tools are here.
fn run(engine: &Oracles, program: &str) -> ItemReport {
    let capabilities = engine.capabilities();
    let here =
        |about: &&About| about.tool.is_none_or(|tool| capabilities.iter().any(|c| c == tool.capability));
    let oracles = oracle::oracles().filter(here).map(|about| about.name.to_owned()).collect();
    let plan = Plan { oracles, ..Plan::default() };
    let item = Item { plan: Arc::new(plan), index: 0, source: Source::Text(program.to_owned()) };
    engine.run(&item, &Cancel::new())
}

/// The claims of all oracles, and the reasons for abstaining, which are printed. A program that no oracle judges has a
/// reason, too.
fn claims(engine: &Oracles, program: &str) -> (Vec<Claim>, Vec<String>) {
    let report = run(engine, program);
    let mut abstained: Vec<String> = report.abstentions.into_keys().collect();
    if report.engines.is_empty() && report.claims.is_empty() && abstained.is_empty() {
        abstained.push("no oracle here judges it".to_owned());
    }
    abstained.iter().for_each(|reason| eprintln!("abstained: {reason}"));
    (report.claims, abstained)
}

pub(crate) fn replay(args: &Replay) -> Result<u8> {
    let engine = Oracles::with_device(args.lent.host()?);
    let (claim, fingerprints) = match read(&args.what, &args.store)? {
        Err(code) => return Ok(code),
        Ok(Subject::Claim(claim, fingerprints)) => (claim, fingerprints),
        Ok(Subject::Program(text)) => {
            let (claims, abstained) = claims(&engine, &text);
            claims.iter().for_each(|c| println!("{}\n  moire replay {}", claim::kind(c), line::encode(c)));
            return Ok(match claims.is_empty() {
                true => agreed(&abstained, ""),
                false => exit::FINDING,
            });
        }
    };
    compare_models(&engine, &claim, &fingerprints);
    println!("{}\n{}", claim::kind(&claim), claim.program.trim_end());
    if let Some(code) = not_broken(&engine, &claim) {
        return Ok(code);
    }
    println!("reproduced");
    let same =
        run(&engine, &claim.program).claims.into_iter().find(|c| claim::kind(c) == claim::kind(&claim));
    print!("{}", same.and_then(|c| moire_shown::show::stored(&c.witness)).unwrap_or_default());
    Ok(exit::FINDING)
}

/// Says why a claim has no answer here.
pub(super) fn not_retested(reason: &str) -> u8 {
    println!("not re-tested: {reason}");
    exit::INCOMPLETE
}

/// The exit code of a claim with which nothing can be done, because its rule is not broken here.
fn not_broken(engine: &Oracles, claim: &Claim) -> Option<u8> {
    match engine.verify(claim, &Cancel::new()) {
        Verification::Confirmed => None,
        Verification::Refuted(why) => {
            println!("not reproduced: {why}");
            Some(exit::CLEAN)
        }
        Verification::Abstained(reason) => Some(not_retested(&reason)),
    }
}

pub(crate) fn minimize(args: &Minimize) -> Result<u8> {
    if let Some(module) = module(&args.what)? {
        if args.keep == Some(Keep::Rule) {
            bail!("{}: a PTX module keeps its verdicts; leave out --keep rule", args.what);
        }
        return smaller(&module, (&args.model, &args.launch), args.limit);
    }
    let engine = Oracles::with_device(args.lent.host()?);
    let (found, abstained) = match read(&args.what, &args.store)? {
        Err(code) => return Ok(code),
        Ok(Subject::Claim(claim, _)) => match not_broken(&engine, &claim) {
            Some(code) => return Ok(code),
            None => (vec![*claim], Vec::new()),
        },
        Ok(Subject::Program(text)) => {
            if args.keep != Some(Keep::Rule)
                && let Some(code) = wrong(args, &text)?
            {
                return Ok(code);
            }
            claims(&engine, &text)
        }
    };
    let Some(claim) = found.first() else {
        return Ok(agreed(&abstained, "; there is nothing to keep while it is made smaller"));
    };
    let stop = Cancel::new();
    on_interrupt(stop.clone());
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

/// The PTX module that the argument names, if it is one.
fn module(word: &str) -> Result<Option<File>> {
    let path = Path::new(word);
    Ok(if path.is_file() { Some(read_file(path)?).filter(kernel::is_compiled) } else { None })
}

/// Executions of one candidate. Programs that need more are not tried.
const CANDIDATE_EXECUTIONS: u64 = 100_000;

/// The kinds of findings that a program has under a model, of a hang also what is waited for; none if it is not explored to
/// its end.
fn kinds(program: &Program, model: &Model) -> BTreeSet<&'static str> {
    let limits = Limits { leaves: CANDIDATE_EXECUTIONS, ..Limits::default() };
    let questions = Questions { witnesses: false, about: judge::About::All };
    let judged = judge::judge(&joined(program), model, &limits, questions);
    if judged.verdicts.iter().any(|v| v.exit_code() == exit::INCOMPLETE) {
        return BTreeSet::new();
    }
    let found = judged.verdicts.iter().filter(|v| v.exit_code() == exit::FINDING).map(Verdict::word);
    found.chain(awaited(&judged)).collect()
}

/// What the threads of the first blocked execution wait for.
fn awaited(judged: &Judgement) -> BTreeSet<&'static str> {
    let ends = judged.hang.iter().flat_map(|(ends, _)| ends).enumerate();
    let of = |(t, end): (usize, &End)| match end {
        End::Done => None,
        _ if judged.stalls.iter().any(|s| s.thread == t) => Some("at an mbarrier"),
        _ if judged.column_stalls.iter().any(|s| s.thread == t) => Some("for tensor memory"),
        End::Barrier(_) => Some("at a barrier"),
        End::Spin(_) => Some("in a loop"),
    };
    ends.filter_map(of).collect()
}

/// Reduces a program whose verdict is a finding; `None` for any other program.
fn wrong(args: &Minimize, text: &str) -> Result<Option<u8>> {
    // What a source program does wrong is a matter of its compilers.
    if source_text::is_source(text) {
        return Ok(None);
    }
    let Ok(source) = parse_program(&args.what, text.as_bytes()) else { return Ok(None) };
    let model = match &args.model.model {
        Some(spec) => spec.load()?,
        None => moire_models::load("ptx", &BTreeMap::new())?,
    };
    let found = kinds(source.written(), &model);
    if found.is_empty() {
        if args.keep == Some(Keep::Verdict) {
            return Err(anyhow!(
                "{}: no finding under {}; there is nothing to keep",
                args.what,
                model.name()
            ));
        }
        return Ok(None);
    }
    let words: Vec<&str> = found.iter().copied().collect();
    eprintln!("kept: {} under {}", words.join(", "), model.name());
    let limits = reduce::Limits { tried_max: usize::try_from(args.limit).unwrap_or(usize::MAX) };
    let reduced = reduce::minimise(source.written(), |candidate| kinds(candidate, &model) == found, limits);
    print!("{}", print(&reduced.program));
    eprintln!(
        "{} tried, {}",
        many(reduced.tried, "candidate"),
        if reduced.complete { "nothing smaller" } else { "limit hit: --limit raises it" }
    );
    Ok(Some(if reduced.complete { exit::FINDING } else { exit::INCOMPLETE }))
}
