//! Kernels that are launched one after another on one stream: from modules and launches to programs.
//!
//! Contract: the launches of each kernel are chosen as if it were alone, and judged together, the largest with the largest.
//! A launch that runs more of one kernel is judged together with the largest ones of the others. Lines are counted through
//! the files: those of each further file begin behind the next thousand (`pieces`). Nobody says which memory the kernels
//! have in common but the user: where nothing is said, that is an error. Words of global memory are data: a kernel ahead may
//! write them.

use super::covering::{Covering, Run};
use super::launched::{Covered, Launched, Shared, Taken};
use super::lowered::{Candidate, Kernel};
use super::ptx::{Asked, Made, made, wide};
use super::wanted::{Behind, Wanted};
use crate::input::{File, Source};
use anyhow::{Result, anyhow, bail};
use moire_kernel::Refusal;
use moire_kernel::specialise::{Apart, Grid, Launch, Need, lower_queue};
use moire_program::text::decode;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Lines are counted anew from a multiple of it.
const THOUSAND: u32 = 1_000;

/// A file among those whose lines are counted through.
pub(crate) struct Piece {
    pub(crate) name: String,
    /// The lines before its first one.
    pub(crate) before: u32,
    pub(crate) text: String,
}

impl Piece {
    /// The number of its last line.
    fn end(&self) -> u32 {
        self.before.saturating_add(u32::try_from(self.text.lines().count()).unwrap_or(u32::MAX))
    }
}

/// The files of a kernel and of those behind it, each once, and the file of each kernel.
pub(crate) fn pieces(file: &File, then: &[Behind]) -> (Vec<Piece>, Vec<usize>) {
    let mut out: Vec<Piece> = Vec::new();
    let mut of = Vec::new();
    for file in std::iter::once(file).chain(then.iter().map(|b| &b.file)) {
        let text = decode(&file.bytes).unwrap_or_default();
        let known = out.iter().position(|p| p.name == file.name() && p.text == text);
        of.push(known.unwrap_or(out.len()));
        if known.is_none() {
            let lines = out.last().map_or(0, Piece::end);
            let before = lines.next_multiple_of(THOUSAND);
            out.push(Piece { name: file.name().to_owned(), before, text: text.to_owned() });
        }
    }
    (out, of)
}

/// The piece that has a line, if several files are there and it is not in the first.
pub(crate) fn piece_of(pieces: &[Piece], line: u32) -> &Piece {
    pieces.iter().rev().find(|p| p.before < line).unwrap_or(&pieces[0])
}

/// All texts as one, with the lines of each where they are counted.
fn joint(pieces: &[Piece]) -> String {
    let mut out = String::new();
    let mut line = 0;
    for piece in pieces {
        out.extend(std::iter::repeat_n('\n', (piece.before - line) as usize));
        out += &piece.text;
        line = piece.end();
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Kernels on one stream, and everything that says how they are launched.
pub(super) struct Queue {
    grids: Vec<Rc<Asked>>,
    /// The file of each.
    modules: Vec<usize>,
    same: Vec<BTreeMap<u16, (usize, u16)>>,
    text: String,
    /// What is said of the lines.
    counted: Vec<Taken>,
}

/// Where a kernel stands among others.
pub(super) struct Among {
    queue: Rc<Queue>,
    /// Its number.
    grid: usize,
    /// The launches of all.
    launches: Vec<Launch>,
}

impl Among {
    /// The candidate with another launch of this kernel.
    pub(super) fn candidate(&self, launch: Launch) -> Result<Candidate> {
        let mut launches = self.launches.clone();
        launches[self.grid] = launch;
        self.queue.candidate(launches)
    }
}

/// Reads kernels, and runs them ahead together.
pub(super) fn read(file: &File, args: &Wanted) -> Result<Kernel> {
    let (pieces, modules) = pieces(file, &args.then);
    let mut grids = Vec::new();
    let own = args.then.iter().map(|b| (&b.file, &b.wanted));
    for (n, (file, wanted)) in std::iter::once((file, args)).chain(own).enumerate() {
        let (letter, both) = (args.letter, args.both);
        let wanted = Wanted { then: Vec::new(), letter, both, ..wanted.clone() };
        if !wanted.words.is_empty() {
            bail!(
                "{}: a word behind a pointer has no value with --then: a kernel ahead may write it",
                file.name()
            );
        }
        match super::ptx::asked(file, &wanted, pieces[modules[n]].before)? {
            Ok(asked) => grids.push(Rc::new(asked)),
            Err(errors) => return Ok(Kernel::Rejected(errors)),
        }
    }
    let same = args.then.iter().map(|b| b.same.clone());
    let mut same: Vec<_> = std::iter::once(BTreeMap::new()).chain(same).collect();
    unshared(&grids, &same)?;
    absent(&grids, &same)?;
    // A parameter that is its own is none of a kernel ahead.
    same.iter_mut().enumerate().for_each(|(n, all)| all.retain(|index, of| *of != (n, *index)));
    let (text, counted) = (joint(&pieces), counted(&pieces));
    let queue = Rc::new(Queue { grids, modules, same, text, counted });
    queue.launches()
}

/// What is said of the lines of further files.
fn counted(pieces: &[Piece]) -> Vec<Taken> {
    let one = |p: &Piece| {
        let text =
            format!("line {} is the first of {}: lines are counted through the files", p.before + 1, p.name);
        Taken { line: 0, text }
    };
    pieces.iter().skip(1).map(one).collect()
}

/// Refuses a kernel with pointers of which nothing is said: whether it has memory in common with those ahead decides everything.
fn unshared(grids: &[Rc<Asked>], same: &[BTreeMap<u16, (usize, u16)>]) -> Result<()> {
    let silent = |n: &usize| !pointers(&grids[*n]).is_empty() && same[*n].is_empty();
    let Some(n) = (1..grids.len()).find(silent) else { return Ok(()) };
    let list = |n: usize| {
        let all = pointers(&grids[n]);
        let all: Vec<String> = all.iter().map(|(at, name)| format!("{n}:{at} ({name})")).collect();
        format!(
            "{} has {}",
            grids[n].kernel.name,
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        )
    };
    let lists: Vec<String> = (0..=n).map(list).collect();
    bail!(
        "{}: nothing says which memory {} has in common with the kernels ahead of it: give --param {n}:INDEX=0:INDEX for a pointer or \
         a tensor map that is one of theirs, or --param {n}:INDEX={n}:INDEX for one that is not; {}",
        grids[n].name(),
        grids[n].kernel.name,
        lists.join("; ")
    )
}

/// Refuses what is said of a parameter that is not there.
fn absent(grids: &[Rc<Asked>], same: &[BTreeMap<u16, (usize, u16)>]) -> Result<()> {
    let there = |n: usize, index: &u16| usize::from(*index) < grids[n].kernel.params.len();
    let all = || same.iter().enumerate().flat_map(|(n, all)| all.iter().map(move |said| (n, said)));
    match all().find(|(n, (index, _))| !there(*n, index)) {
        Some((n, (index, (of, param)))) => {
            bail!("parameter {n}:{index} = {of}:{param}: there is no such parameter")
        }
        None => Ok(()),
    }
}

/// The parameters that may be pointers or tensor maps and have no value.
fn pointers(asked: &Asked) -> Vec<(u16, &str)> {
    let open = |n: &u16| !asked.args.params.contains_key(n);
    let all = (0..).zip(&asked.kernel.params).filter(|(n, p)| open(n) && (p.pointer || p.array));
    all.map(|(n, p)| (n, p.name.as_str())).collect()
}

impl Queue {
    /// The launches that are worth judging, and what may add to their coverage.
    fn launches(self: Rc<Self>) -> Result<Kernel> {
        let mut tried: Vec<Vec<Launch>> = Vec::new();
        let mut needs: Vec<Vec<Need>> = Vec::new();
        for asked in &self.grids {
            let (launches, own) = asked.launches().map_err(|why| anyhow!("{}: {why}", asked.name()))?;
            tried.push(launches);
            needs.push(own);
        }
        let most = tried.iter().map(Vec::len).max().unwrap_or(0);
        // The last ones are the largest.
        let at = |all: &Vec<Launch>, n: usize| all[(all.len() + n).saturating_sub(most)].clone();
        let step = |n: usize| tried.iter().map(|all| at(all, n)).collect::<Vec<_>>();
        let candidates: Result<Vec<Candidate>> =
            (0..most).map(|n| self.candidate_with(step(n), &needs)).collect();
        let largest = step(most.saturating_sub(1));
        let covering = |(grid, needs): (usize, Vec<Need>)| {
            let among = Among { queue: Rc::clone(&self), grid, launches: largest.clone() };
            Covering { asked: Rc::clone(&self.grids[grid]), needs, among: Some(among) }
        };
        let coverings = needs.into_iter().enumerate().map(covering).collect();
        Ok(Kernel::Launches(candidates?, coverings))
    }

    fn candidate(&self, launches: Vec<Launch>) -> Result<Candidate> {
        let needs = vec![Vec::new(); self.grids.len()];
        self.candidate_with(launches, &needs)
    }

    /// The candidate with these launches; what chose parameters is said.
    fn candidate_with(&self, launches: Vec<Launch>, needs: &[Vec<Need>]) -> Result<Candidate> {
        let lower = |choosing, other: bool| self.lower(&launches, choosing, other);
        let (lowered, any_data) = wide(&|choosing| lower(choosing, false));
        let choosing = any_data.is_some();
        let otherwise = self.grids[0].otherwise(&lowered, &|| lower(choosing, true));
        let mut said = self.said(&launches, needs);
        let behind: Vec<Taken> = said.then.iter_mut().flat_map(|l| std::mem::take(&mut l.taken)).collect();
        said.taken = [self.counted.clone(), std::mem::take(&mut said.taken), behind].concat();
        let source = Source::new(self.grids[0].name(), self.grids[0].kernel.program.clone(), &self.text);
        let made_of = Made { lowered, any_data, otherwise, launches, said, kernel: source };
        let goals: Vec<_> = self.grids.iter().map(|asked| &asked.goals).collect();
        made(made_of, &goals)
    }

    /// Runs launches ahead together; with `other`, under the profile that is not in use.
    fn lower(&self, launches: &[Launch], choosing: bool, other: bool) -> Result<Apart, Refusal> {
        let grid = |(n, launch): (usize, &Launch)| Grid {
            kernel: &self.grids[n].kernel,
            launch: Launch { letter: launch.letter != other, ..launch.clone() },
            module: self.modules[n],
            same: self.same[n].clone(),
        };
        lower_queue(launches.iter().enumerate().map(grid).collect(), choosing)
    }

    /// The launches with the origin of each part of them.
    fn said(&self, launches: &[Launch], needs: &[Vec<Need>]) -> Launched {
        let one = |(n, launch): (usize, &Launch)| {
            let shared = |(index, of): (&u16, &(usize, u16))| Shared { index: *index, grid: of.0, of: of.1 };
            let same = self.same[n].iter().map(shared).collect();
            Launched { number: n, same, ..self.grids[n].said(launch, None, &needs[n]) }
        };
        let mut all = launches.iter().enumerate().map(one);
        let first = all.next().expect("a queue has a kernel");
        Launched { then: all.collect(), ..first }
    }
}

/// Notes how much of each kernel runs.
pub(super) fn cover(said: &mut Launched, covered: Vec<Covered>) {
    let own = std::iter::once(&mut said.coverage).chain(said.then.iter_mut().map(|l| &mut l.coverage));
    own.zip(covered).for_each(|(place, covered)| *place = Some(covered));
}

/// The runs of each kernel.
pub(super) fn runs(launches: Vec<Launch>, apart: &Apart, choosing: bool) -> Vec<Run> {
    let met = apart.coverage.iter().map(|c| c.met.clone());
    launches.into_iter().zip(met).map(|(launch, met)| Run { launch, met, choosing }).collect()
}
