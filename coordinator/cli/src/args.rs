//! The command line.

use crate::remote::{COORDINATOR, Certs, MaybeRemote, Remote};
use clap::{Args, Parser, Subcommand, ValueEnum};
use moire_explore::reduce::Reductions;
use moire_worker::link::Address;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Finds where two descriptions of GPU concurrency that should agree do not.
#[derive(Debug, Parser)]
#[command(
    name = "moire",
    version,
    about,
    max_term_width = 100,
    after_help = "Exit codes: 0 clean, 2 usage or bad input, 10 finding, 11 incomplete, 70 internal."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Form of the log on stderr; MOIRE_LOG says how much of it
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub(crate) log: crate::logs::Log,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge programs under a model: races, hangs, conditions
    Check(Check),
    /// Run every program of a folder that has an expectation
    Test(Test),
    /// Run a campaign in this process: make programs, ask every oracle, store what disagrees
    Fuzz(Fuzz),
    /// Keep campaigns and findings, and give work to workers
    Serve(Serve),
    /// Take work from a coordinator
    Work(Work),
    /// Make certificates and tokens for coordinator, workers and clients
    #[command(subcommand)]
    Certs(crate::cmd::certs::Certs),
    /// What a running coordinator is doing, in this terminal; q leaves
    Top(Top),
    /// A night: campaigns with a budget, every open and fixed finding run again, a report against the last one
    ///
    /// Exit codes: 10 something is new or flaky, or planted bugs are missed; 11 something was not re-tested, or a campaign
    /// was cut short; 0 neither. Suppressed findings and mere differences between models never count.
    Nightly(Nightly),
    /// Write the findings of a store as a page and for tools, against the last report
    Report(ReportArgs),
    /// Show a finding again: from a program, an id, a bundle or a printed line
    Replay(Replay),
    /// Make a program or finding smaller while the same rule stays broken
    Minimize(Minimize),
    /// Which switch, version or release decides a finding: one setting changed at a time
    Bisect(Bisect),
    /// Print programs of the stream
    Generate(Generate),
    /// What was found
    #[command(subcommand)]
    Findings(Findings),
    /// Campaigns of a store
    #[command(subcommand)]
    Campaign(Campaigns),
    /// Check, copy and compact a store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Show and compare the models
    #[command(subcommand)]
    Models(Models),
    /// Measure, and try what ordinary use does not
    #[command(subcommand)]
    Bench(crate::cmd::bench::Bench),
    /// Run litmus programs on a GPU, many times, and hold what is seen to what the model allows
    Gpu(Gpu),
    /// Say what is installed and what is missing
    Doctor,
    /// Print a completion script
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// One object a program, versioned
    Json,
}

/// How `moire check` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For people
    Text,
    /// One object a program, versioned
    Json,
    /// One SARIF 2.1.0 document, for code review tools
    Sarif,
    /// One JUnit document, for continuous integration
    Junit,
}

/// Which model, with which switches.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelArgs {
    /// A shipped model, or a file that ends in .cat [default: ptx, and tile-ir for Tile IR kernels]
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Set a switch of the model, for example Q6=B (repeatable)
    #[arg(long = "variant", value_name = "NAME=VALUE")]
    pub(crate) variants: Vec<String>,
}

impl ModelArgs {
    /// The model for a file, or for no file.
    pub(crate) fn name(&self, file: Option<&std::path::Path>) -> &str {
        let own = if file.is_some_and(crate::tile::has_blocks) { "tile-ir" } else { "ptx" };
        self.model.as_deref().unwrap_or(own)
    }
}

/// How the kernel of a PTX module is launched.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kernels (files that end in .ptx or .tile)")]
pub(crate) struct LaunchArgs {
    /// CTAs or tile blocks of the grid; one cluster, or one tile block, if not given
    #[arg(long, value_name = "X[,Y,Z]", value_parser = crate::kernel::shape)]
    pub(crate) grid: Option<[u32; 3]>,
    /// Threads of a CTA; not needed where the kernel says it
    #[arg(long, value_name = "X[,Y,Z]", value_parser = crate::kernel::shape)]
    pub(crate) block: Option<[u32; 3]>,
    /// CTAs of a cluster; not needed where the kernel says it
    #[arg(long, value_name = "X[,Y,Z]", value_parser = crate::kernel::shape)]
    pub(crate) cluster: Option<[u32; 3]>,
    /// The value of a parameter, from 0 on (repeatable); pointers and tensor maps need none
    #[arg(long = "param", value_name = "INDEX=VALUE", value_parser = crate::kernel::param)]
    pub(crate) params: Vec<(u16, u64)>,
    /// Which kernel, when the module has several
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Print the litmus program that is explored instead of exploring it
    #[arg(long)]
    pub(crate) lowered: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Programs: native litmus, Dat3M PTX litmus, mixedproxy; kernels: PTX modules (.ptx)
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Readings taken together: letter, or a profile of the model such as practice
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CheckFormat,
    /// Write the deciding executions as Graphviz files into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) witness: Option<PathBuf>,
    /// Also say which contesting switches change the verdict, flipped one at a time
    #[arg(long)]
    pub(crate) contest: bool,
    /// Have the fleet of a running coordinator explore; asked again, it goes on where it was
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["descents", "lowered", "reduce"])]
    pub(crate) coordinator: Option<Address>,
    #[command(flatten)]
    pub(crate) certs: Certs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
}

/// Bounds of an exploration; hitting one gives the verdict `bounded`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// Executions visited at most
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) limit: u64,
    /// Iterations of a loop that changes state
    #[arg(long, default_value_t = 2)]
    pub(crate) loop_bound: u32,
    /// Leave out executions that others stand for: all, none, or some of threads, reads, writes, atomics. The verdict is
    /// the same, the number of executions is not
    #[arg(long, value_name = "REDUCTIONS", default_value = "none", conflicts_with = "descents")]
    pub(crate) reduce: Reductions,
    /// For what is too big to finish: so many random descents, each to one execution; says how many there are, about
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) descents: Option<u64>,
    /// Seed of the descents
    #[arg(long, default_value_t = 1, requires = "descents")]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Folder with expected.csv, or with NAME.expected beside programs
    pub(crate) dir: PathBuf,
    /// Only the lines of NAME.expected under this profile; letter: those without one
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Also run the rows of debated.csv; they never fail the run
    #[arg(long)]
    pub(crate) debated: bool,
    /// Judge the rows of the newest published version under this model too
    #[arg(long, value_name = "MODEL")]
    pub(crate) also: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// The shipped models
    List {
        /// Each check, and whether it prunes (monotone) or is judged on finished executions only (leaf-only)
        #[arg(long)]
        checks: bool,
    },
    /// The least program on which two models differ, or the bound up to which there is none
    Diff(DiffArgs),
    /// Text, switches and checks of one model
    Show {
        /// A shipped model, or a file that ends in .cat [default: that of --model]
        name: Option<String>,
        #[command(flatten)]
        model: ModelArgs,
    },
}

/// Where findings are kept.
const STORE: &str = ".moire/store";

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Stop after this time: 90s, 10m, 2h [default: 60s without --programs]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Stop when this many programs of the stream are done
    #[arg(long, value_name = "N")]
    pub(crate) programs: Option<u64>,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What the stream is made of: random, shapes, mixed, tensor, tile-ir
    #[arg(long, default_value = "mixed")]
    pub(crate) profile: String,
    /// Only these oracles: self, model-pair, metamorphic, patterns, assembler, compiler, lowering (repeatable)
    #[arg(long)]
    pub(crate) oracle: Vec<String>,
    /// Compare these models, NAME or NAME:SWITCH=VALUE,.. in order (repeatable)
    #[arg(long = "model")]
    pub(crate) models: Vec<String>,
    /// Threads that work [default: all processors]
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Gpu {
    /// Programs: native litmus, Dat3M PTX litmus, mixedproxy
    pub(crate) files: Vec<PathBuf>,
    /// Draw so many programs that the lane runs, beside the files
    #[arg(long, default_value_t = 0)]
    pub(crate) count: u64,
    /// What they are drawn from: shapes, mixed, random
    #[arg(long, default_value = "shapes")]
    pub(crate) profile: String,
    /// Seed of the stream, and of the placements
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The model, NAME or NAME:SWITCH=VALUE,..
    #[arg(long, default_value = "ptx")]
    pub(crate) model: String,
    /// Samples are taken until an outcome of this probability would have been seen with 95 % confidence
    #[arg(long, default_value_t = 1e-5)]
    pub(crate) probability: f64,
    /// Launches of one program at most
    #[arg(long, default_value_t = 60)]
    pub(crate) launches: u32,
    /// Which device
    #[arg(long, default_value_t = 0)]
    pub(crate) device: u32,
    /// Interleave the threads here instead of on a device: finds nothing, exercises everything else
    #[arg(long)]
    pub(crate) stand_in: bool,
    /// Write all launches down
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Judge a record instead of running anything; the programs and numbers are those it was made with
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stand_in", "record"])]
    pub(crate) replay: Option<PathBuf>,
    /// Print the kernels and run nothing
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Architecture of printed kernels
    #[arg(long, default_value = "sm_90")]
    pub(crate) target: String,
    /// Folder of the locks, one a device
    #[arg(long, value_name = "DIR", default_value = ".moire/gpu")]
    pub(crate) locks: PathBuf,
    /// One launch, for a child process
    #[arg(long, hide = true)]
    pub(crate) launch: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Program, bundle, id of a finding, or printed line
    pub(crate) what: String,
    /// Where an id is looked up
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Bisect {
    /// Bundle, id of a finding, or printed line
    pub(crate) what: String,
    /// How to print; json: one object a setting
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: OutputFormat,
    /// Where an id is looked up
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Minimize {
    /// Program, bundle, id of a finding, or printed line
    pub(crate) what: String,
    /// Candidates tried at most
    #[arg(long, default_value_t = crate::cmd::replay::CANDIDATES)]
    pub(crate) limit: u64,
    /// Where an id is looked up
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// How many
    #[arg(long, default_value_t = 10)]
    pub(crate) count: u64,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Position of the first program in the stream
    #[arg(long, default_value_t = 0)]
    pub(crate) first: u64,
    /// What the stream is made of: random, shapes, mixed, tensor, tile-ir
    #[arg(long, default_value = "mixed")]
    pub(crate) profile: String,
    /// Count what the programs exercise instead of printing them
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Write one file a program into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Findings {
    /// One line a finding
    List {
        #[command(flatten)]
        remote: MaybeRemote,
        /// Where findings are kept
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// One finding in full
    Show {
        /// Id, or its first eight digits or more
        id: String,
        #[command(flatten)]
        remote: MaybeRemote,
        /// Where findings are kept
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// Write a finding as one self-contained file
    Export {
        /// Id, or its first eight digits or more
        id: String,
        /// The file
        out: PathBuf,
        #[command(flatten)]
        remote: MaybeRemote,
        /// Where findings are kept
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// Change the life cycle of a finding
    Mark {
        /// Id, or its first eight digits or more
        id: String,
        /// open, invalid, fixed, duplicate:ID, suppress or unsuppress
        state: String,
        /// The reason; a finding is closed or suppressed with one
        #[arg(long, default_value = "")]
        why: String,
        /// Who says so, or answers for the suppression [default: the user]
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// When a suppression is over: a day such as 2027-01-31 (UTC), or 14d from now
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        #[command(flatten)]
        remote: MaybeRemote,
        /// Where findings are kept
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Campaigns {
    /// Create a campaign on a running coordinator
    Create(NewCampaign),
    /// Hold a campaign
    Pause(CampaignControl),
    /// Go on with a campaign
    Resume(CampaignControl),
    /// End a campaign
    Cancel(CampaignControl),
    /// One line a campaign
    List {
        #[command(flatten)]
        remote: MaybeRemote,
        /// Where campaigns are kept
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
    /// One campaign, with its digest
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        remote: MaybeRemote,
        /// Where campaigns are kept
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
}

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
    /// Rewrite the log without what is superseded
    Compact {
        /// The store
        #[arg(long, default_value = STORE)]
        store: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// First model: NAME or FILE.cat, with :SWITCH=VALUE,.. after it to set switches
    pub(crate) a: String,
    /// Second model
    pub(crate) b: String,
    /// All programs of up to N memory events, N+2 instructions and 2 threads, of every alphabet [default: each alphabet
    /// as far as the table of differences goes]
    #[arg(long, value_name = "N")]
    pub(crate) size: Option<usize>,
    /// Threads of the largest program, instead of what --size says
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Memory events of the largest program, instead of what --size says
    #[arg(long)]
    pub(crate) events: Option<usize>,
    /// Instructions of the largest program, instead of what --size says
    #[arg(long)]
    pub(crate) instructions: Option<usize>,
    /// Programs tried at most
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) limit: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; this machine only, unless there are certificates
    #[arg(long, value_name = "ADDRESS", default_value = COORDINATOR)]
    pub(crate) listen: SocketAddr,
    /// Address of /metrics, /healthz and /readyz; as for --listen [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) certs: Certs,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Work {
    #[command(flatten)]
    pub(crate) remote: Remote,
    /// Leases held at one time [default: all processors]
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Name shown to people
    #[arg(long)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) remote: Remote,
    /// Print one look as text
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewCampaign {
    /// Its name
    pub(crate) name: String,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What the stream is made of: random, shapes, mixed, tensor, tile-ir
    #[arg(long, default_value = "mixed")]
    pub(crate) profile: String,
    /// Programs; without it the campaign goes on until it is cancelled
    #[arg(long, value_name = "N")]
    pub(crate) programs: Option<u64>,
    /// Only these oracles (repeatable)
    #[arg(long)]
    pub(crate) oracle: Vec<String>,
    /// Compare these models in order (repeatable)
    #[arg(long = "model")]
    pub(crate) models: Vec<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignControl {
    /// Its name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// What fails a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Findings that are new or flaky
    New,
    /// Every open finding
    Open,
}

#[derive(Debug, Args)]
pub(crate) struct Nightly {
    /// A campaign: random, shapes, mixed, tensor or tile-ir, and its programs (repeatable) [default: mixed=10000 tensor=60]
    #[arg(long, value_name = "PROFILE=PROGRAMS")]
    pub(crate) campaign: Vec<String>,
    /// Seed of the first night's streams; each night has its own
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Times each finding is run again; runs that disagree make it flaky
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: u32,
    /// Findings run again at most, those longest untested first [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) retests: Option<u64>,
    /// Stop what is under way after this time: 90s, 10m, 2h
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// What fails the night
    #[arg(long, value_enum, default_value = "new")]
    pub(crate) fail_on: FailOn,
    /// Folder for report.html, summary.md, findings.jsonl, report.sarif and junit.xml
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Threads that work [default: all processors]
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Use a running coordinator and its workers instead of the store
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["workers", "store"])]
    pub(crate) coordinator: Option<Address>,
    #[command(flatten)]
    pub(crate) certs: Certs,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Only findings seen or tested in this time: 24h [default: all]
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Folder for report.html, summary.md, findings.jsonl, report.sarif and junit.xml
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}
