//! `moire bisect`: which switch of a model, which version, or which release, level or target of a tool decides a finding.
//!
//! Contract: of a compiler each release that is here is asked ([`crate::releases`]). One setting of one side is changed at a time, everything else stays as the finding has it, and the rule is
//! asked again. A setting under which it holds decides the finding. Models of the oracles `self`, `model-pair` and
//! `metamorphic` are tried; the others ask a model of their own, and only their tools are.

use crate::cases::{self, Case, End};
use crate::releases::{Makes, Release, mistaken, releases, words};
use anyhow::{Result, bail};
use clap::Args;
use moire_console::output::Format;
use moire_console::stored::STORE;
use moire_console::{claim, exit};
use moire_program::validate::Target;
use moire_toolchain::source::Kind;
use moire_worker::job::{Cancel, Claim, Engine, Side, Verification};
use moire_worker::oracle::{self, Oracles, PTXAS, SASS_TOOLS, TILEIRAS};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Bisect {
    /// Program, bundle, id of a finding, or printed line
    pub(crate) what: String,
    /// How to print; json: one object a setting
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Store in which an id is looked up
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

/// Levels of optimisation that compilers have.
const LEVELS: [u8; 4] = [0, 1, 2, 3];
/// Architectures the compiler of Tile IR is asked for.
const TILE_TARGETS: [&str; 4] = ["sm_80", "sm_90", "sm_100", "sm_120"];

/// Whether the rule holds under a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "answer", content = "reason")]
enum Answer {
    /// The rule is broken as before.
    Broken,
    /// The rule holds: the setting decides.
    Holds,
    /// No answer.
    Silent(String),
}

/// One setting that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Try {
    /// The side, as the finding has it.
    side: String,
    /// A switch, `version`, `release`, `level` or `target`.
    setting: String,
    /// The value the finding has.
    was: String,
    /// The value tried.
    value: String,
    #[serde(flatten)]
    answer: Answer,
}

impl Try {
    /// The setting as a case: under one that decides, the rule holds.
    fn case(&self) -> Case {
        let (end, says) = match &self.answer {
            Answer::Broken => (End::Failed, "the rule is broken".to_owned()),
            Answer::Holds => (End::Passed, "the rule holds".to_owned()),
            Answer::Silent(reason) => (End::Open, reason.clone()),
        };
        let Try { side, setting, was, value, .. } = self;
        Case { name: format!("{side}: {setting} {value}, was {was}"), end, says }
    }
}

pub(crate) fn run(args: &Bisect) -> Result<u8> {
    let engine = Oracles::new();
    let claim = match super::replay::claim(&engine, &args.what, &args.store)? {
        Ok(claim) => claim,
        Err(code) => return Ok(code),
    };
    eprintln!("{}", claim::kind(&claim));
    match ask(&engine, &claim) {
        Answer::Broken => {}
        Answer::Holds => {
            println!("not reproduced: there is nothing to bisect");
            return Ok(exit::CLEAN);
        }
        Answer::Silent(reason) => return Ok(super::replay::not_retested(&reason)),
    }
    let (mut tries, releases) = (tries(&engine, &claim), releases(&engine, &claim));
    tries.extend(releases.iter().filter_map(|r| tried(&claim, r, &releases)));
    if tries.is_empty() {
        bail!("the oracle {} has no setting that could be tried here", claim.oracle);
    }
    match args.format {
        Format::Json => {
            for one in &tries {
                println!("{}", serde_json::to_string(one)?);
            }
        }
        Format::Text => {
            print!("{}", table(&tries));
            if let Some(said) = words(&releases) {
                println!("of the releases here: {said}");
            }
            for said in causes(&claim) {
                println!("{said}");
            }
        }
        Format::Sarif | Format::Junit => {
            cases::print(args.format, "bisect", &tries.iter().map(Try::case).collect::<Vec<_>>())?;
        }
    }
    let decided = tries.iter().any(|t| t.answer == Answer::Holds);
    Ok(if decided { exit::FINDING } else { exit::INCOMPLETE })
}

/// What a claim says of its cause: the mistake of a compiler, or the checks that forbid the outcome.
fn causes(claim: &Claim) -> Vec<String> {
    if let Some(title) = mistaken(&claim.oracle, &claim.axioms) {
        return vec![format!("the mistake: {title}")];
    }
    claim.axioms.iter().map(|set| format!("admitted without the checks {}", set.join(" and "))).collect()
}

fn ask(engine: &Oracles, claim: &Claim) -> Answer {
    match engine.verify(claim, &Cancel::new()) {
        Verification::Confirmed => Answer::Broken,
        Verification::Refuted(_) => Answer::Holds,
        Verification::Abstained(reason) => Answer::Silent(reason),
    }
}

/// Every setting of every side, one at a time.
fn tries(engine: &Oracles, claim: &Claim) -> Vec<Try> {
    let mut out = Vec::new();
    for (at, side) in claim.models.iter().enumerate() {
        let of = side.spec();
        let mut push = |setting: &str, was: &str, value: &str, answer: Answer| {
            let (setting, was, value) = (setting.to_owned(), was.to_owned(), value.to_owned());
            out.push(Try { side: of.clone(), setting, was, value, answer });
        };
        let changed = |side: Side| {
            let mut claim = claim.clone();
            claim.models[at] = side;
            claim
        };
        match side.name.as_str() {
            tool if tool == TILEIRAS.capability => {
                for (setting, was, value, side) in cells(side) {
                    push(&setting, &was, &value, ask(engine, &changed(side)));
                }
            }
            tool if Kind::ALL.iter().any(|kind| kind.name() == tool) => {
                for (setting, was, value, side) in levels(side) {
                    push(&setting, &was, &value, ask(engine, &changed(side)));
                }
            }
            tool if [PTXAS.capability, SASS_TOOLS.capability].contains(&tool) => {
                let was = side.variants.get("target").cloned().unwrap_or_default();
                for target in Target::ALL.map(|t| t.name()).into_iter().filter(|t| *t != was) {
                    push("target", &was, target, ask(engine, &changed(with(side, "target", target))));
                }
            }
            _ if oracle::named(&claim.oracle).is_some_and(|about| about.under_models) => {
                let other = claim.models.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, s)| s);
                let other: Vec<String> = other.map(Side::spec).collect();
                for (setting, was, value, side) in readings(engine, side) {
                    if !other.contains(&side.spec()) || setting != "version" {
                        push(&setting, &was, &value, ask(engine, &changed(side)));
                    }
                }
            }
            _ => {}
        }
    }
    out
}

fn with(side: &Side, setting: &str, value: &str) -> Side {
    let mut side = side.clone();
    side.variants.insert(setting.to_owned(), value.to_owned());
    side
}

type Setting = (String, String, String, Side);

/// Levels and targets of the compiler of Tile IR.
fn cells(side: &Side) -> Vec<Setting> {
    let targets = TILE_TARGETS.into_iter().map(|target| ("target", target.to_owned()));
    settings(side, LEVELS.map(|level| ("level", level.to_string())).into_iter().chain(targets))
}

/// Levels of a compiler of source programs.
fn levels(side: &Side) -> Vec<Setting> {
    settings(side, LEVELS.map(|level| ("level", level.to_string())).into_iter())
}

/// The settings that a side has not.
fn settings(side: &Side, all: impl Iterator<Item = (&'static str, String)>) -> Vec<Setting> {
    let was = |setting: &str| side.variants.get(setting).cloned().unwrap_or_default();
    let of = |(setting, value): (&str, String)| {
        let other = with(side, setting, &value);
        (setting.to_owned(), was(setting), value, other)
    };
    all.filter(|(setting, value)| was(setting) != *value).map(of).collect()
}

/// Another release that was asked, as a setting.
fn tried(claim: &Claim, release: &Release, all: &[Release]) -> Option<Try> {
    let side = claim.models.iter().find(|side| side.name == release.side.name)?;
    // An assembler is not named with its release: the newest one is asked.
    let was = side.variants.get("release").or(all.last().map(|newest| &newest.name)).cloned()?;
    let answer = match &release.makes {
        Makes::Same => Answer::Broken,
        Makes::Right => Answer::Holds,
        Makes::Other(title) => Answer::Silent(format!("it is wrong in another way: {title}")),
        Makes::Silent(why) => Answer::Silent(why.clone()),
    };
    let (setting, value) = ("release".to_owned(), release.name.clone());
    (value != was).then(|| Try { side: side.spec(), setting, was, value, answer })
}

/// Versions of the same model, then its switches.
fn readings(engine: &Oracles, side: &Side) -> Vec<Setting> {
    let stem = |name: &str| name.split('-').next().unwrap_or(name).to_owned();
    let versions = moire_models::names().filter(|n| stem(n) == stem(&side.name) && *n != side.name);
    let version = |name: &str| {
        let side = Side { name: name.to_owned(), ..side.clone() };
        ("version".to_owned(), String::new(), name.to_owned(), side)
    };
    let mut out: Vec<Setting> = versions.map(version).collect();
    out.iter_mut().for_each(|s| s.1.clone_from(&side.name));
    let Ok(model) = engine.model(&side.spec()) else { return out };
    for switch in model.switches() {
        let was = model.variant(&switch.name).unwrap_or(&switch.default);
        for value in switch.values.iter().filter(|v| *v != was) {
            out.push((switch.name.clone(), was.to_owned(), value.clone(), with(side, &switch.name, value)));
        }
    }
    out
}

/// Prints the settings that decide, and the number of the others.
fn table(tries: &[Try]) -> String {
    let mut out = String::new();
    let of = |t: &Try| format!("{} of {}: {} instead of {}", t.setting, t.side, t.value, t.was);
    for t in tries.iter().filter(|t| t.answer == Answer::Holds) {
        out.push_str(&format!("decided by {}\n", of(t)));
    }
    let broken = tries.iter().filter(|t| t.answer == Answer::Broken).count();
    if broken == tries.len() {
        out.push_str("no single setting decides it\n");
    }
    out.push_str(&format!("{broken} of {} settings change nothing\n", tries.len()));
    for t in tries {
        if let Answer::Silent(reason) = &t.answer {
            out.push_str(&format!("no answer for {}: {reason}\n", of(t)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_worker::direction::Direction;

    fn claim(oracle: &str, models: [(&str, &[(&str, &str)]); 2], program: &str) -> Claim {
        let side = |(name, variants): (&str, &[(&str, &str)])| Side {
            name: name.to_owned(),
            variants: variants.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..Side::default()
        };
        Claim {
            oracle: oracle.to_owned(),
            direction: Direction::Difference,
            models: models.map(side).to_vec(),
            program: program.to_owned(),
            ..Claim::default()
        }
    }

    const SURFACE: &str = "moire \"t\"\n.global .b32 x; .surface s = x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; \
                           fence.proxy.surface; suld.weak.u32 r, [s]; }\n";

    #[test]
    fn the_switch_in_which_two_models_differ_decides() {
        let engine = Oracles::new();
        let claim = claim("model-pair", [("ptx", &[("Q6", "D")]), ("ptx", &[])], SURFACE);
        assert_eq!(ask(&engine, &claim), Answer::Broken);
        let tries = tries(&engine, &claim);
        let decided: Vec<_> = tries.iter().filter(|t| t.answer == Answer::Holds).collect();
        assert!(
            !decided.is_empty() && decided.iter().all(|t| t.setting == "Q6" || t.setting == "version"),
            "{decided:?}"
        );
        assert!(
            decided.iter().any(|t| t.side == "ptx:Q6=D" && t.was == "D" && t.value == "A"),
            "{decided:?}"
        );
        assert!(tries.len() > 20, "all switches of both sides");
        let text = table(&tries);
        assert!(text.starts_with("decided by ") && text.contains(" settings change nothing\n"), "{text}");
    }

    #[test]
    fn what_no_setting_decides_is_said() {
        let one = |answer| Try {
            side: "ptx".into(),
            setting: "Q1".into(),
            was: "A".into(),
            value: "B".into(),
            answer,
        };
        assert!(table(&[one(Answer::Broken)]).contains("no single setting decides it"));
        let silent = table(&[one(Answer::Silent("too large".into()))]);
        assert!(silent.contains("no answer for Q1 of ptx: B instead of A: too large"), "{silent}");
    }
}
