//! The arguments of `moire check`.

use crate::launch::{KERNELS, LaunchArgs};
use crate::model::ModelArgs;
use crate::remote::Certs;
use clap::{Args, ValueEnum};
use moire_console::output::Format;
use moire_console::time::duration;
use moire_explore::Limits;
use moire_explore::reduce::Reductions;
use moire_verdict::question::Question;
use moire_worker::link::Address;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Programs: native litmus, Dat3M PTX litmus, mixedproxy; kernels: PTX modules (.ptx), Tile IR (.tile, .mlir); folders of
    /// them; a folder that `moire record` wrote, or a file of its `launches`; - is the standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Readings taken together: letter, or a profile of the model such as practice [default: letter; for PTX modules practice,
    /// with a note on what is wrong by the letter only]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Of PTX modules judged under both profiles: what is wrong by the letter only counts for the exit code
    #[arg(long)]
    pub(crate) strict: bool,
    /// Trip counts of the free loops of a litmus text: explore the text with this many copies, NAME=N, or NAME=N,N,.. for the
    /// first entry, the second, .. (repeatable). The verdict is about these counts only, and loops that are not named have
    /// their least one [default: all trip counts are proved by the operational engine]
    #[arg(long, value_name = "NAME=N")]
    pub(crate) trips: Vec<String>,
    /// How many files and kernels are judged at one time; 0: one for each processor
    #[arg(long, default_value_t = 0)]
    pub(crate) jobs: usize,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Also write all answers into FILE, in a format of --format (repeatable)
    #[arg(long, value_name = "FORMAT=FILE", conflicts_with_all = ["states", "lowered"])]
    pub(crate) report: Vec<Report>,
    /// What `--format json` printed before: problems that it has do not fail, and what it has that is gone is said
    #[arg(long, value_name = "FILE", conflicts_with_all = ["states", "lowered"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the deciding executions into this folder: pages for a browser, pictures, Graphviz files
    #[arg(long, value_name = "DIR")]
    pub(crate) witness: Option<PathBuf>,
    /// Instead of judging, list every final state, how many executions end in it, and which models allow it
    #[arg(long, conflicts_with_all = ["witness", "contest", "coordinator", "lowered", "reduce", "descents"])]
    pub(crate) states: bool,
    /// Also say which contesting switches change the verdict, flipped one at a time
    #[arg(long)]
    pub(crate) contest: bool,
    /// Write the advice as a patch of the files, to stdout, where it replaces the report, or to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) fix: Option<PathBuf>,
    /// Also say which fences, waits, commits, barriers, orders and scopes can go without a change of any verdict
    #[arg(long)]
    pub(crate) redundant: bool,
    /// Processor time for explanations: the edits that mend a program or can go, the readings that a finding depends on. Verdicts need none
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) explain_time: Duration,
    /// Processor time that an exploration goes on after its first finding; what else is wrong may be found then
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) after_finding: Duration,
    /// Let the fleet of a running coordinator explore; the same command later resumes from the last stop
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["descents", "lowered", "reduce"])]
    pub(crate) coordinator: Option<Address>,
    #[command(flatten)]
    pub(crate) certs: Certs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// Print the litmus program that is explored instead of exploring it
    #[arg(long, help_heading = KERNELS)]
    pub(crate) lowered: bool,
}

impl Check {
    /// Whether a patch stands in the place of the answers.
    pub(super) fn patch_to_stdout(&self) -> bool {
        self.fix.as_ref().is_some_and(|to| to.as_os_str() == "-")
    }

    /// What is asked about every program.
    pub(super) fn question(&self) -> Question {
        Question {
            model: self.model.model.as_ref().map(ToString::to_string),
            switches: self.model.switches(),
            profile: self.profile.clone(),
            contest: self.contest,
            redundant: self.redundant,
            trips: self.trips.clone(),
            limits: self.limits.limits(),
            after_finding: self.after_finding,
        }
    }
}

/// A file with all answers.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) format: Format,
    pub(crate) file: PathBuf,
}

impl std::str::FromStr for Report {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write FORMAT=FILE, for example sarif=moire.sarif";
        let (format, file) = text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or(form)?;
        Ok(Report { format: Format::from_str(format, false)?, file: file.into() })
    }
}

/// Bounds of an exploration; hitting one gives the verdict `bounded`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// Most executions visited
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) limit: u64,
    /// Most iterations of a loop that changes state
    #[arg(long, default_value_t = 2)]
    pub(crate) loop_bound: u32,
    /// Leave out executions that are equivalent to others: all, none, or some of threads, reads, writes, atomics. The
    /// verdict stays the same, the number of executions does not
    #[arg(long, value_name = "REDUCTIONS", default_value = "none", conflicts_with = "descents")]
    pub(crate) reduce: Reductions,
    /// Sample instead of exploring: N random descents, each to one execution, and an estimate of their number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) descents: Option<u64>,
    /// Seed of the descents
    #[arg(long, default_value_t = 1, requires = "descents")]
    pub(crate) seed: u64,
}

impl LimitArgs {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            leaves: self.limit,
            loop_bound: self.loop_bound,
            reductions: self.reduce,
            ..Limits::default()
        }
    }
}
