//! PTX modules: from a module and a launch to programs.

use super::covering::Covering;
use super::launched::{AnyData, Argument, Covered, Launched, Origin, Size, Taken};
use super::lowered::{Candidate, Kernel};
use super::metadata::Metadata;
use super::queued;
use super::wanted::{Recorded, Wanted};
use crate::input::{File, Rejected, Source};
use crate::readings::{Otherwise, Reading, Relied};
use anyhow::{Result, anyhow};
use moire_explore::judge::Verdict;
use moire_kernel::Refusal;
use moire_kernel::ptx;
use moire_kernel::specialise::{
    Apart, Class, Goals, Launch, Missed, Need, Note, Part, Practice, Sweep, entry, lower_apart,
    lower_apart_for_any_data, sweep,
};
use moire_program::ir::Program;
use moire_program::text::{Diagnostic, decode};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// Threads of a CTA where nothing says how many.
const BLOCK: [u32; 3] = [128, 1, 1];
/// Those that are tried where words of global memory decide something.
const BLOCKS: [[u32; 3]; 3] = [BLOCK, [256, 1, 1], [512, 1, 1]];
/// What says how a launch that happened was.
const RECORD: &str = "the record";
/// Clusters of a kernel that names other CTAs where nothing says how large they are.
const PAIRED: [[u32; 3]; 3] = [[2, 1, 1], [4, 1, 1], [4, 2, 1]];
/// The last of them where the third axis of the grid tells CTAs apart.
const STACKED: [u32; 3] = [1, 1, 8];
/// Most clusters along x where nothing says how many.
const CLUSTERS: u32 = 4;

/// The names of the kernels of a module.
pub(crate) fn entries(file: &File) -> Vec<String> {
    let module = decode(&file.bytes).ok().and_then(|text| ptx::parse(text).ok());
    module.map_or(Vec::new(), |m| m.kernels.into_iter().map(|k| k.name).collect())
}

/// Reads the kernel of a module and runs it ahead.
pub(crate) fn read(file: &File, args: &Wanted) -> Result<Kernel> {
    if !args.then.is_empty() {
        return queued::read(file, args);
    }
    let asked = match asked(file, args, 0)? {
        Ok(asked) => asked,
        Err(errors) => return Ok(Kernel::Rejected(errors)),
    };
    let (tried, needs) = asked.tried().map_err(|why: Refusal| anyhow!("{}: {why}", asked.name))?;
    let candidates: Result<Vec<Candidate>> = tried.into_iter().map(|t| asked.candidate(t, &needs)).collect();
    // A launch that happened is judged for itself.
    let known = asked.happened().is_some();
    let covering = (!known).then(|| Covering { asked: Rc::new(asked), needs, among: None });
    Ok(Kernel::Launches(candidates?, covering.into_iter().collect()))
}

/// Reads the kernel of a module whose lines are counted behind so many others; all errors if it is illegal.
pub(super) fn asked(file: &File, args: &Wanted, before: u32) -> Result<Result<Asked, Vec<Rejected>>> {
    let name = file.name();
    let reject = |text: &str, d: Diagnostic| anyhow!(Rejected::new(name, text, d));
    let text = decode(&file.bytes).map_err(|e| reject("", e.0))?;
    let module = ptx::parse(text).map_err(|e| reject(text, e.0))?;
    let errors: Vec<Rejected> = module
        .kernels
        .iter()
        .flat_map(|k| k.rejected(&module))
        .map(|d| Rejected::new(name, text, d))
        .collect();
    if !errors.is_empty() {
        return Ok(Err(errors));
    }
    let module = match before {
        0 => module,
        _ => ptx::parse(&("\n".repeat(before as usize) + text)).map_err(|e| reject(text, e.0))?,
    };
    let kernel = entry(&module, args.entry.as_deref()).map_err(|why| anyhow!("{name}: {why}"))?;
    Ok(Ok(Asked {
        name: name.to_owned(),
        text: text.to_owned(),
        several: module.kernels.len() > 1,
        goals: Goals::new(kernel),
        kernel: kernel.clone(),
        args: args.clone(),
        beside: file.metadata.as_deref().map_or(Metadata::default(), Metadata::of),
    }))
}

/// Runs launches ahead, and where data decides something, for any data: what depends on it then.
pub(super) fn wide(
    lower: &dyn Fn(bool) -> Result<Apart, Refusal>,
) -> (Result<Apart, Refusal>, Option<String>) {
    match lower(false) {
        Err(why @ Refusal::Abstained { .. }) => match lower(true) {
            Ok(apart) => (Ok(apart), Some(why.to_string())),
            Err(_) => (Err(why), None),
        },
        lowered => (lowered, None),
    }
}

/// Launches that were run ahead, and what is said of them.
pub(super) struct Made {
    pub(super) lowered: Result<Apart, Refusal>,
    /// What depends on data, if they were run ahead for any data.
    pub(super) any_data: Option<String>,
    /// The same under the profile that is not in use.
    pub(super) otherwise: Option<Other>,
    /// By kernel.
    pub(super) launches: Vec<Launch>,
    pub(super) said: Launched,
    /// The kernel as it stands.
    pub(super) kernel: Source,
}

/// The candidate that launches make, with the goals of each kernel.
pub(super) fn made(of: Made, goals: &[&Goals]) -> Result<Candidate> {
    let Made { lowered, any_data, otherwise, launches, mut said, kernel } = of;
    let choosing = any_data.is_some();
    said.any_data = any_data.map(AnyData::new);
    let source = |program| Source::new(&kernel.name, program, &kernel.text);
    match lowered {
        Ok(apart) => {
            let runs = queued::runs(launches, &apart, choosing);
            let Apart { parts, notes, coverage, reserve, loose } = apart;
            said.taken.extend(taken(notes));
            let mut otherwise = otherwise.map_or(Vec::new(), |o| o.parts(&parts)).into_iter();
            let covered = coverage.iter().zip(goals).map(|(coverage, goals)| Covered::new(coverage, goals));
            queued::cover(&mut said, covered.collect());
            said.parts = parts.iter().map(|p| p.clusters.clone()).collect();
            let mut sources: Vec<Source> = parts.into_iter().map(|p| source(p.program)).collect();
            sources.iter_mut().for_each(|s| s.otherwise = otherwise.next().map(Box::new));
            let reserve = reserve.map(|why| why.to_string());
            Ok(Candidate { sources, launch: said, refused: None, reserve, loose, runs, long: None })
        }
        Err(refusal) => {
            let alone = if let [launch] = launches.as_slice() { Some(launch.clone()) } else { None };
            let long = alone.filter(|_| matches!(refusal, Refusal::Bounded(_)));
            Ok(Candidate { long, ..Candidate::refused(refusal, kernel, said)? })
        }
    }
}

/// A launch that was run ahead under the profile that is not in use.
pub(super) struct Other {
    lowered: Result<Apart, Refusal>,
    /// The readings of practice, with the lines that rely on them.
    relied: Vec<Relied>,
}

impl Other {
    /// What stands beside each of these parts.
    fn parts(self, parts: &[Part]) -> Vec<Otherwise> {
        let Other { lowered, relied } = self;
        let programs: Vec<Result<_, Verdict>> = match lowered {
            Ok(apart) if apart.parts.iter().map(|p| &p.clusters).eq(parts.iter().map(|p| &p.clusters)) => {
                let reserve = apart.reserve.map(|why| Verdict::Abstained(why.to_string()));
                apart.parts.into_iter().map(|p| reserve.clone().map_or(Ok(p.program), Err)).collect()
            }
            Ok(_) => {
                let why = "clusters that have something in common under one profile only";
                parts.iter().map(|_| Err(Verdict::Abstained(why.to_owned()))).collect()
            }
            Err(Refusal::Bounded(why)) => parts.iter().map(|_| Err(Verdict::Bounded(why.clone()))).collect(),
            Err(why) => parts.iter().map(|_| Err(Verdict::Abstained(why.to_string()))).collect(),
        };
        programs.into_iter().map(|program| Otherwise { program, relied: relied.clone() }).collect()
    }
}

/// The readings of practice that notes are about, with their lines.
fn relied(notes: &[Note]) -> Vec<Relied> {
    let mut lines: BTreeMap<Practice, BTreeSet<u32>> = BTreeMap::new();
    for note in notes {
        note.practice.into_iter().for_each(|p| lines.entry(p).or_default().extend([note.line]));
    }
    let one = |(practice, lines): (Practice, BTreeSet<u32>)| Relied {
        reading: Reading { setting: practice.setting(), says: practice.says().to_owned() },
        lines,
    };
    lines.into_iter().map(one).collect()
}

/// A launch that was run ahead.
pub(super) struct Tried {
    launch: Launch,
    /// The reason that it has one cluster, where two would be assumed.
    alone: Option<String>,
    lowered: Result<Apart, Refusal>,
    /// What depends on data, if the launch was run ahead for any data.
    any_data: Option<String>,
}

impl Tried {
    /// Runs a launch ahead; where data decides something, for any data.
    pub(super) fn new(kernel: &ptx::Kernel, launch: Launch) -> Tried {
        let lower = |choosing: bool| match choosing {
            true => lower_apart_for_any_data(kernel, &launch),
            false => lower_apart(kernel, &launch),
        };
        let (lowered, any_data) = wide(&lower);
        Tried { launch, alone: None, lowered, any_data }
    }

    /// Whether it was run ahead and no two clusters share memory.
    fn is_apart(&self) -> bool {
        let alone =
            |parts: &[Part]| parts.iter().flat_map(|p| &p.clusters).all(|clusters| clusters.len() == 1);
        self.lowered.as_ref().is_ok_and(|apart| alone(&apart.parts))
    }

    /// How many statements that synchronise it does not run; all of them if it cannot be run ahead.
    fn unreached(&self) -> usize {
        let synchronise = |missed: &&Missed| missed.class == Class::Synchronises;
        let missed =
            |apart: &Apart| apart.coverage.iter().flat_map(|c| &c.missed).filter(synchronise).count();
        self.lowered.as_ref().map_or(usize::MAX, missed)
    }
}

/// A kernel, and everything that says how it is launched.
pub(super) struct Asked {
    name: String,
    /// The text of the module.
    text: String,
    /// The module has several kernels.
    several: bool,
    pub(super) kernel: ptx::Kernel,
    pub(super) goals: Goals,
    pub(super) args: Wanted,
    beside: Metadata,
}

impl Asked {
    /// A launch that was run ahead, with its programs.
    pub(super) fn candidate(&self, tried: Tried, needs: &[Need]) -> Result<Candidate> {
        let Tried { launch, alone, lowered, any_data } = tried;
        let choosing = any_data.is_some();
        let run = || {
            let launch = Launch { letter: !self.args.letter, ..launch.clone() };
            let lower = if choosing { lower_apart_for_any_data } else { lower_apart };
            lower(&self.kernel, &launch)
        };
        let otherwise = self.otherwise(&lowered, &run);
        let said = self.said(&launch, alone, needs);
        let kernel = self.source(self.kernel.program.clone());
        made(Made { lowered, any_data, otherwise, launches: vec![launch], said, kernel }, &[&self.goals])
    }

    /// The name of its file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The launches that are worth judging where words of global memory are data, the smallest first, and the parameters whose
    /// values were chosen.
    pub(super) fn launches(&self) -> Result<(Vec<Launch>, Vec<Need>), Refusal> {
        let (tried, needs) = self.tried_with(false, BLOCK)?;
        Ok((tried.into_iter().map(|t| t.launch).collect(), needs))
    }

    /// A program of the kernel with its text.
    pub(super) fn source(&self, program: Program) -> Source {
        Source::new(&self.name, program, &self.text)
    }

    /// Whether nothing says how many threads a CTA has.
    pub(super) fn assumes_block(&self) -> bool {
        let file = self.kernel.threads.or(self.kernel.most_threads);
        self.args
            .block
            .or(self.args.recorded.as_ref().map(|r| r.block))
            .or(self.beside.block)
            .or(file)
            .is_none()
    }

    /// The grid that is asked for, or that of a launch that happened, if it is not too large.
    fn grid(&self) -> Option<[u32; 3]> {
        self.args.grid.or_else(|| self.happened().map(|r| r.grid))
    }

    /// The launch that happened, if it can be judged as it was.
    fn happened(&self) -> Option<&Recorded> {
        let changed = self.args.grid.or(self.args.block).or(self.args.cluster).is_some();
        self.args.recorded.as_ref().filter(|r| r.fits() && !changed)
    }

    /// The launches that are worth judging, the smallest first, and the parameters whose values were chosen. If data keeps them from
    /// being run ahead, with values for words of global memory.
    fn tried(&self) -> Result<(Vec<Tried>, Vec<Need>), Refusal> {
        let given = !self.args.words.is_empty();
        let tried = self.tried_with(given, BLOCK)?;
        let ended = |tried: &[Tried]| tried.last().is_some_and(|t| t.lowered.is_ok());
        let stuck = matches!(tried.0.last(), Some(Tried { lowered: Err(Refusal::Abstained { .. }), .. }));
        if given || !stuck || self.happened().is_some() {
            return Ok(tried);
        }
        // What the first size leaves out may need more warps. If it alone can be run ahead, it is not that of the kernel.
        let blocks = if self.assumes_block() { &BLOCKS[..] } else { &[BLOCK] };
        let told = blocks.iter().filter_map(|block| self.tried_with(true, *block).ok());
        let told: Vec<_> = told.filter(|told| ended(&told.0)).collect();
        let few = told.len() + 1 < blocks.len();
        let most = told.into_iter().min_by_key(|told| told.0.last().map_or(usize::MAX, Tried::unreached));
        let most = most.filter(|_| !few);
        Ok(most.unwrap_or(tried))
    }

    /// The same with or without values for words of global memory, and as many threads where nothing says how many.
    fn tried_with(&self, words: bool, threads: [u32; 3]) -> Result<(Vec<Tried>, Vec<Need>), Refusal> {
        let Asked { kernel, args, beside, .. } = self;
        let said = kernel.threads.or(kernel.most_threads).map_or(Some(threads), |_| None);
        let recorded = args.recorded.as_ref();
        let beside = match recorded {
            Some(r) => Metadata { block: Some(r.block), cluster: Some(r.cluster.unwrap_or([1; 3])) },
            None => *beside,
        };
        let block = args.block.or(beside.block.filter(|_| kernel.threads.is_none())).or(said);
        let cluster = args.cluster.or(beside.cluster.filter(|_| kernel.cluster.is_none()));
        let said = cluster.is_some() || kernel.cluster.is_some() || args.grid.is_some();
        match !said && kernel.peers() {
            true => self.in_clusters(block, words),
            false => self.shaped(block, cluster, words),
        }
    }

    /// The launches of a kernel that names other CTAs of its cluster, of which nothing says how many there are: the fewest with
    /// which it can be run ahead.
    fn in_clusters(&self, block: Option<[u32; 3]>, words: bool) -> Result<(Vec<Tried>, Vec<Need>), Refusal> {
        let mut first = None;
        let alone = (!self.kernel.pairs()).then_some(None);
        let stacked = words && self.kernel.body.iter().any(|s| s.what.reads_third_axis());
        let [two, four, eight] = PAIRED;
        let shapes = [two, four, if stacked { STACKED } else { eight }];
        for cluster in alone.into_iter().chain(shapes.map(Some)) {
            let tried = self.shaped(block, cluster, words)?;
            if tried.0.last().is_some_and(|t| t.lowered.is_ok()) {
                return Ok(tried);
            }
            if cluster.is_some() {
                first.get_or_insert(tried);
            }
        }
        Ok(first.unwrap_or_default())
    }

    /// The launches with blocks and clusters of this shape.
    fn shaped(
        &self,
        block: Option<[u32; 3]>,
        cluster: Option<[u32; 3]>,
        words: bool,
    ) -> Result<(Vec<Tried>, Vec<Need>), Refusal> {
        let Asked { kernel, args, .. } = self;
        let Recorded { mut params, actual, .. } = args.recorded.clone().unwrap_or_default();
        params.extend(&args.params);
        let base = Launch::of(kernel, self.grid(), block, cluster, params)?;
        let assumed = args.assumed.iter().map(|a| a.of(kernel)).collect::<Result<_, _>>()?;
        let base = Launch { fields: args.fields.clone(), actual, assumed, letter: args.letter, ..base };
        let told = || Launch { words: Some(args.words.clone()), ..base.clone() }.telling(kernel);
        let base = if words { told() } else { base };
        let Sweep { launches, needs } = sweep(kernel, &self.goals, &base);
        let mut out = Vec::new();
        for launch in launches {
            self.clusters(launch, &mut out);
        }
        Ok((out, needs))
    }

    /// The launch under the profile that is not in use, which `run` runs ahead, if a reading of practice makes a difference to it.
    pub(super) fn otherwise(
        &self,
        lowered: &Result<Apart, Refusal>,
        run: &dyn Fn() -> Result<Apart, Refusal>,
    ) -> Option<Other> {
        let notes = &lowered.as_ref().ok().filter(|_| self.args.both)?.notes;
        let own = relied(notes);
        match self.args.letter {
            true => {
                let lowered = run();
                let relied = lowered.as_ref().map_or(Vec::new(), |apart| relied(&apart.notes));
                (!relied.is_empty()).then_some(Other { lowered, relied })
            }
            false => (!own.is_empty()).then(|| Other { lowered: run(), relied: own }),
        }
    }

    /// Runs a launch ahead. Without a grid it gets a second cluster, so that clusters meet, unless the kernel does the same in
    /// each or there is no launch with two. One cluster is worth judging, too, if the two share memory or cannot be run ahead.
    /// It gets more clusters while something that synchronises does not run, and more of it does with more of them.
    fn clusters(&self, one: Launch, out: &mut Vec<Tried>) {
        if self.grid().is_some() {
            out.push(Tried::new(&self.kernel, one));
            return;
        }
        if !tells_clusters_apart(&self.kernel) {
            let why = "nothing in the kernel tells clusters apart, so all would do the same".to_owned();
            out.push(Tried { alone: Some(why), ..Tried::new(&self.kernel, one) });
            return;
        }
        let [x, y, z] = one.grid;
        let with = |clusters: u32| {
            let launch = Launch { grid: [x.saturating_mul(clusters), y, z], ..one.clone() };
            Tried::new(&self.kernel, sweep(&self.kernel, &self.goals, &launch).launches.swap_remove(0))
        };
        let two = with(2);
        let tried = (!two.is_apart()).then(|| Tried::new(&self.kernel, one.clone()));
        match (&two.lowered, tried) {
            (Err(why), Some(tried)) if tried.lowered.is_err() || matches!(why, Refusal::Launch(_)) => {
                let alone = tried.lowered.is_ok().then(|| format!("with two, {why}"));
                return out.push(Tried { alone, ..tried });
            }
            (_, tried) => out.extend(tried.into_iter().chain([two])),
        }
        for clusters in 3..=CLUSTERS {
            let left = out.last().map_or(0, Tried::unreached);
            out.extend((left > 0).then(|| with(clusters)).filter(|more| more.unreached() < left));
        }
    }

    /// What a record or the user says of parameters.
    fn said_of_parameters(&self) -> Vec<Taken> {
        let recorded = self.args.recorded.iter().flat_map(|r| &r.taken).cloned();
        let assumed = self.args.assumed.iter().map(|a| format!("what --assume says: {}", a.text));
        recorded.chain(assumed).map(|text| Taken { line: 0, text }).collect()
    }

    /// The launch with the origin of each part of it.
    pub(super) fn said(&self, launch: &Launch, alone: Option<String>, needs: &[Need]) -> Launched {
        let Asked { kernel, args, beside, .. } = self;
        let first =
            |all: [(bool, Origin); 3], last: Origin| all.into_iter().find(|o| o.0).map_or(last, |o| o.1);
        let recorded = args.recorded.as_ref();
        let metadata = Origin::File(recorded.map_or("metadata beside it", |_| RECORD));
        let block = [
            (args.block.is_some(), Origin::Given),
            (kernel.threads.is_some(), Origin::File(".reqntid")),
            (beside.block.is_some() || recorded.is_some(), metadata.clone()),
        ];
        let most = kernel.most_threads.map_or(Origin::Assumed, |_| Origin::Most(".maxntid"));
        let cluster = [
            (args.cluster.is_some(), Origin::Given),
            (kernel.cluster.is_some(), Origin::File(".reqnctapercluster")),
            (beside.cluster.is_some() || recorded.is_some(), metadata.clone()),
        ];
        let happened = (self.happened().is_some(), metadata.clone());
        let grid = first([(args.grid.is_some(), Origin::Given), happened.clone(), happened], Origin::Assumed);
        let known = |index: u16, given: bool| match recorded {
            _ if given => Origin::Given,
            Some(r) if r.params.contains_key(&index) => metadata.clone(),
            _ => Origin::Assumed,
        };
        let argument = |index: u16, at: Option<u32>, value: u64, given: bool| {
            let here = |n: &&Need| !n.behind && n.index == index && at.is_none_or(|at| at == n.at);
            let decides = needs.iter().find(here);
            Argument {
                index,
                at,
                behind: false,
                word: None,
                name: kernel.params.get(usize::from(index)).map_or(String::new(), |p| p.name.clone()),
                value,
                origin: known(index, given),
                decides: decides.map(|n| n.decides.clone()),
            }
        };
        let whole = launch.params.iter().map(|(i, v)| argument(*i, None, *v, args.params.contains_key(i)));
        let fields =
            launch.fields.iter().map(|(f, v)| argument(f.0, Some(f.1), *v, args.fields.contains_key(f)));
        let words = launch.words.iter().flatten().map(|(word, v)| {
            let need =
                needs.iter().find(|n| n.behind && word.at.is_none() && (n.index, n.at) == word.pointer);
            let field = kernel.params.get(usize::from(word.pointer.0)).is_some_and(|p| p.array);
            let at = field.then_some(word.pointer.1);
            Argument {
                behind: true,
                word: word.at,
                decides: need.map(|n| n.decides.clone()),
                ..argument(word.pointer.0, at, *v, args.words.contains_key(word))
            }
        });
        let mut params: Vec<Argument> = whole.chain(fields).chain(words).collect();
        params.sort_by_key(|p| (p.index, p.at, p.behind, p.word));
        Launched {
            file: recorded.map_or_else(|| self.name.clone(), |r| r.file.clone()),
            entry: kernel.name.clone(),
            several: self.several && recorded.is_none(),
            recorded: recorded
                .and_then(|r| Some(Path::new(&r.file).file_stem()?.to_string_lossy().into_owned())),
            grid: Size { size: launch.grid, origin: grid },
            cluster: Some(Size { size: launch.cluster, origin: first(cluster, Origin::Assumed) }),
            block: Some(Size { size: launch.block, origin: first(block, most) }),
            params,
            alone,
            smaller: Vec::new(),
            more: Vec::new(),
            taken: self.said_of_parameters(),
            parts: Vec::new(),
            coverage: None,
            assumed: false,
            command: String::new(),
            any_data: None,
            every: Vec::new(),
            number: 0,
            same: Vec::new(),
            then: Vec::new(),
        }
    }
}

/// The first note of each text, by line. A reading of practice has all its lines.
pub(crate) fn taken(notes: Vec<Note>) -> Vec<Taken> {
    let relied = relied(&notes);
    let lines = |n: &Note| {
        let setting = n.practice?.setting();
        let lines = &relied.iter().find(|r| r.reading.setting == setting)?.lines;
        let all: Vec<String> = lines.iter().map(u32::to_string).collect();
        (all.len() > 1).then(|| format!(" (lines {})", all.join(", ")))
    };
    let mut seen = BTreeSet::new();
    let first = notes.iter().filter(|n| seen.insert(n.text.clone()));
    let text = |n: &Note| n.text.clone() + &lines(n).unwrap_or_default();
    let mut out: Vec<Taken> = first.map(|n| Taken { line: n.line, text: text(n) }).collect();
    out.sort();
    out
}

/// Whether clusters can do different things.
fn tells_clusters_apart(kernel: &ptx::Kernel) -> bool {
    kernel.body.iter().any(|statement| statement.what.tells_clusters_apart())
}
