//! Judges a changed PTX module: by `moire check` in a process of its own, which is ended when its budget is spent.
//!
//! Contract: a module that stays clean is judged again at larger launches, of more clusters and more steps, and the program
//! that it is lowered to by the enumerator and the operational engine. A larger launch says nothing if the right module is
//! not clean there. If the lowered program is that of the right module, no witness has seen the mistake, and none confirms
//! anything.

use super::Bench;
use super::edits::Edit;
use super::fate::Fate;
use super::right::{Right, What};
use crate::process::Process;
use anyhow::{Context, Result, bail};
use moire_console::exit;
use moire_lab::mutants::{Unconfirmed, second};
use moire_naive::NaiveLimits;
use moire_program::text::{Format, parse};
use moire_toolchain::Answer;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

/// What `moire check` says of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing is wrong at this grid, in clusters of so many CTAs.
    Clean(Launch),
    Wrong(String),
    Undecided(String),
    /// It is no module.
    Refused,
    /// There is no answer within the budget.
    Spent,
}

/// The launch that a verdict is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Launch {
    grid: [u64; 3],
    /// CTAs of a cluster.
    cluster: u64,
    /// Small values that were assumed for parameters, as the option names them.
    params: Vec<(String, u64)>,
}

/// Values of parameters up to this one are numbers of steps or tiles, as far as anybody can tell.
const SMALL: u64 = 64;

/// What `moire check` says of a file, within this time.
///
/// # Errors
/// No process can be started, or it ends in an unknown way.
pub(super) fn ask(path: &Path, options: &[&str], budget: Duration) -> Result<Said> {
    let fixed = ["check", "--format", "json", "--explain-time", "0s", "--jobs", "1"];
    let Some((code, out)) = run(path, &[&fixed, options].concat(), budget)? else { return Ok(Said::Spent) };
    let told: Vec<Value> = out.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let words = told.iter().filter_map(|t| t["verdicts"].as_array()).flatten().filter_map(Value::as_str);
    let words = words.collect::<Vec<_>>().join(", ");
    let launch = told.first().map(launch).unwrap_or_default();
    match code {
        exit::CLEAN => Ok(Said::Clean(launch)),
        exit::FINDING => Ok(Said::Wrong(words)),
        exit::INCOMPLETE => Ok(Said::Undecided(words)),
        exit::USAGE => Ok(Said::Refused),
        other => bail!("moire check {} ended with {other}", path.display()),
    }
}

/// Code and lines of `moire WORDS PATH`. None: the budget is spent.
fn run(path: &Path, words: &[&str], budget: Duration) -> Result<Option<(u8, Vec<String>)>> {
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).chain([path.as_os_str()]).collect();
    let mut process = Process::start(&words)?;
    if !process.over(Instant::now() + budget)? {
        return Ok(None);
    }
    let ended = process.wait()?;
    let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Some((code.unwrap_or(exit::INTERNAL), ended.out)))
}

/// The launch that a verdict is about.
fn launch(told: &Value) -> Launch {
    let size = |of: &str, at: usize| told["launch"][of]["size"][at].as_u64().unwrap_or(1);
    let cluster = (0..3).map(|at| size("cluster", at)).product();
    let param = |p: &Value| {
        let at = p["at"].as_u64().map_or(String::new(), |at| format!("+{at}"));
        let value = p["value"].as_u64().filter(|v| *v <= SMALL && p["origin"] == "assumed")?;
        Some((format!("{}{at}", p["index"].as_u64()?), value))
    };
    let params = told["launch"]["parameters"].as_array().into_iter().flatten().filter_map(param).collect();
    Launch { grid: std::array::from_fn(|at| size("grid", at)), cluster, params }
}

/// The fate of a changed module. An error of the machine is no verdict.
pub(super) fn fate(bench: &Bench<'_>, of: &Right, edit: &Edit, number: usize) -> Fate {
    judged(bench, of, edit, number).unwrap_or_else(|error| Fate::Undecided(format!("{error:#}")))
}

fn judged(bench: &Bench<'_>, of: &Right, edit: &Edit, number: usize) -> Result<Fate> {
    let path = bench.folder.0.join(format!("{number}.ptx"));
    std::fs::write(&path, &edit.text).with_context(|| format!("writing {}", path.display()))?;
    Ok(match ask(&path, &[], bench.args.budget)? {
        Said::Refused => Fate::Illegal,
        Said::Spent => Fate::Spent,
        Said::Wrong(_) => Fate::Caught,
        Said::Undecided(why) => Fate::Undecided(why),
        Said::Clean(_) if refused(bench, &edit.text) => Fate::Illegal,
        Said::Clean(launch) => survived(bench, of, (&path, number), &launch)?,
    })
}

/// Whether NVIDIA's assembler, if it is here, refuses a module for its own target.
fn refused(bench: &Bench<'_>, module: &str) -> bool {
    let target = module.lines().find_map(|line| line.trim().strip_prefix(".target"));
    let target = target.and_then(|t| t.split(',').next()).map(str::trim);
    let answer =
        bench.assembler.as_ref().zip(target).and_then(|(ptxas, target)| ptxas.assemble(module, target).ok());
    matches!(answer, Some(Answer::Refused(_)))
}

/// A mutant that is clean: what larger launches say, then the other engines.
fn survived(bench: &Bench<'_>, of: &Right, (path, number): (&Path, usize), launch: &Launch) -> Result<Fate> {
    let right = bench.folder.0.join(format!("{number}.right.ptx"));
    let What::Module(module) = &of.what else { bail!("{} is no module", of.name) };
    std::fs::write(&right, module)?;
    let (budget, mut larger) = (bench.args.budget, false);
    for [option, value] in launch.larger(module) {
        let options = [option.as_str(), value.as_str()];
        match ask(path, &options, budget)? {
            Said::Wrong(word) if matches!(ask(&right, &options, budget)?, Said::Clean(_)) => {
                return Ok(Fate::Wrong(format!("{word} with {option} {value}")));
            }
            Said::Clean(_) => larger = true,
            // The right kernel is not made for such a launch either.
            Said::Wrong(_) | Said::Undecided(_) | Said::Refused | Said::Spent => {}
        }
    }
    let grid = launch.words();
    let Some(lowered) = lowered(path, &grid, bench)? else {
        return Ok(Fate::Open("it cannot be lowered".into()));
    };
    if self::lowered(&right, &grid, bench)?.as_ref() == Some(&lowered) {
        return Ok(Fate::Open("no witness sees the mistake".into()));
    }
    Ok(
        match parse(&lowered, Format::Native)
            .map(|program| second(&program, &bench.practice, &NaiveLimits::default()))
        {
            Ok(Ok(witness)) => Fate::Confirmed(witness.to_owned()),
            Ok(Err(Unconfirmed::Differs(how))) => Fate::Wrong(how.kind().to_owned()),
            _ if larger => Fate::Confirmed("larger launches".into()),
            Ok(Err(Unconfirmed::Skipped(why))) => Fate::Open(why),
            Err(_) => Fate::Open("its lowered text cannot be read".into()),
        },
    )
}

/// The program that a module is lowered to, as text without its title. None: there is none within the budget.
fn lowered(path: &Path, grid: &str, bench: &Bench<'_>) -> Result<Option<String>> {
    let out = run(path, &["check", "--lowered", "--grid", grid], bench.args.budget)?;
    Ok(out.filter(|(code, _)| *code == exit::CLEAN).map(|(_, lines)| lines.join("\n")))
}

impl Launch {
    /// As the option says it.
    fn words(&self) -> String {
        self.grid.map(|n| n.to_string()).join(",")
    }

    /// Options for three and five clusters, as far as they are more than these, for one more in each other direction that
    /// the module asks for, and for one to three steps more of each parameter: a ring of up to four stages comes round, and
    /// each remainder of an unrolled loop has its turn.
    fn larger(&self, module: &str) -> Vec<[String; 2]> {
        let [x, y, z] = self.grid;
        let wide = [3, 5].map(|n| n * self.cluster).into_iter().filter(|n| *n > x).map(|n| [n, y, z]);
        let deep = [("%ctaid.y", [x, y + 1, z]), ("%ctaid.z", [x, y, z + 1])];
        let deep = deep.into_iter().filter(|(asked, _)| module.contains(asked)).map(|(_, grid)| grid);
        let grids = wide.chain(deep).map(|[x, y, z]| ["--grid".to_owned(), format!("{x},{y},{z}")]);
        let steps = self.params.iter().flat_map(|(name, value)| (1..=3).map(move |n| (name, value + n)));
        grids.chain(steps.map(|(name, value)| ["--param".to_owned(), format!("{name}={value}")])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_launches_have_whole_clusters_and_more_steps() {
        let parameter = |index: u64, at: Option<u64>, value: u64, origin: &str| serde_json::json!({"index": index, "at": at, "value": value, "origin": origin});
        let parameters = [
            parameter(2, None, 3, "assumed"),
            parameter(3, Some(8), 128, "assumed"),
            parameter(4, None, 1, "given"),
        ];
        let told = serde_json::json!({"launch": {
            "grid": {"size": [8, 1, 2]}, "cluster": {"size": [2, 1, 1]}, "parameters": parameters,
        }});
        let launch = super::launch(&told);
        assert_eq!(launch, Launch { grid: [8, 1, 2], cluster: 2, params: vec![("2".to_owned(), 3)] });
        let all: Vec<String> =
            launch.larger("mov.u32 %r1, %ctaid.y;").iter().map(|words| words.join(" ")).collect();
        assert_eq!(all, ["--grid 10,1,2", "--grid 8,2,2", "--param 2=4", "--param 2=5", "--param 2=6"]);
    }
}
