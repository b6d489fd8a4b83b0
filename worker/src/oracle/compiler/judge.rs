//! The judgement of one kernel and its PTX: whether the PTX does anything that the kernel may not do.
//!
//! Both are cut to the threads and locations that can show a difference (`moire_kernel::simt::slice`) and explored: the kernel under the
//! weakest sensible reading of the Tile IR model ([`WEAKEST`]), the PTX under the PTX model. Both have
//! the memory behind the parameters in common, so final states are compared there. A source with a race may do anything.
//! A final state that the weakest reading forbids is a bug of the compiler. One that only the default reading forbids is
//! contested by the switches that make the difference. One that the PTX reaches where the source never ends is about
//! progress.

use super::cause::{self, Share};
use crate::oracle::abstention::Abstention;
use crate::oracle::forbidden::{self, Forbidden};
use crate::oracle::models::Models;
use crate::oracle::refine::{Compared, Judged, Known, Until, known};
use moire_execution::leaf::{FinalState, LeafKind, Memory, Outcome};
use moire_explore::search::{Bound, LeafView};
use moire_explore::{Limits, explore};
use moire_kernel::ptx;
use moire_kernel::simt::{self, Pair};
use moire_program::ir::{
    Content, LoadOrder, Op, Operand, Program, Space, StoreOrder, Thread, TileAccess, TileKind, TileOp,
};
use moire_tile_ir::Module;
use moire_tile_ir::run::{self as tile_run, TileLaunch, tile_entry};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Switches of the weakest sensible reading, as specifications name them.
pub(super) const WEAKEST: &str = "tile-ir:OBS=B,RPO=B,SCL=0";
/// The reading whose difference from the weakest is contested.
pub(super) const DEFAULT: &str = "tile-ir";
/// Settings of single switches of [`WEAKEST`] on top of the default.
pub(super) const SINGLE: [&str; 3] = ["OBS=B", "RPO=B", "SCL=0"];
/// The model of the compiled side.
pub(super) const PTX: &str = "ptx";
/// The stage of the source in reasons.
const SOURCE: &str = "source";
/// The stage of the compiled side in reasons.
const COMPILED: &str = "PTX";

/// The limits of exploration for both sides.
struct Reach {
    source: Limits,
    compiled: Limits,
}

/// The limits for a pair with two threads of each kind: some milliseconds for most.
fn few() -> Reach {
    let limits = Limits { leaves: 3_000, checks: 8_000, steps: 20_000, ..Limits::default() };
    Reach { source: limits, compiled: limits }
}

/// The limits for a pair with one thread of each kind. There is no smaller pair to try.
fn many() -> Reach {
    Reach {
        source: Limits { leaves: 8_000, checks: 20_000, steps: 60_000, ..Limits::default() },
        compiled: Limits { leaves: 24_000, checks: 40_000, steps: 130_000, ..Limits::default() },
    }
}

/// Most estimated executions (log2) of a pair with two threads of each kind that is explored.
const MAX_LOG2_OF_TWO: f64 = 12.0;
/// Most estimated executions (log2) of a pair with one thread of each kind that is explored.
const MAX_LOG2_OF_ONE: f64 = 48.0;

/// The estimated executions (log2) of the side that has more.
fn most(pair: &Pair) -> f64 {
    let of = |p: &Program| simt::log2_executions(p, usize::MAX, 1);
    of(&pair.source).max(of(&pair.compiled))
}

/// Final memory behind the parameters.
type Shared = Vec<Content>;

/// The judgement, and the pair it is about.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) judged: Judged,
    pub(super) pair: Pair,
    /// Executions of the PTX.
    pub(super) executions: u64,
    /// Whether a location that a tile block writes strongly is strongly read by another.
    pub(super) talks: bool,
    /// The cause of a forbidden final state, or of an end that one side has alone, where it is known.
    pub(super) cause: Option<&'static str>,
}

/// Source and PTX of a kernel as programs.
pub(super) fn pair(module: &Module, launch: &TileLaunch, text: &str) -> Result<Pair, Abstention> {
    let source = |e| Abstention::Refused(e).at(SOURCE);
    let compiled = |e| Abstention::Refused(e).at(COMPILED);
    let kernel = tile_entry(module, None).map_err(source)?;
    let source = tile_run::lower(kernel, launch).map_err(source)?;
    let text = ptx::parse(text).map_err(|e| Abstention::Module(e.0.message).at(COMPILED))?;
    let entry = moire_kernel::specialise::entry(&text, None).map_err(compiled)?;
    let sizes: Vec<u32> = source.objects.iter().map(|o| o.bytes).collect();
    let blocks = launch.grid.iter().product();
    let compiled = simt::threads(entry, blocks, &sizes).map_err(compiled)?;
    Ok(Pair { source, compiled })
}

/// Judges a pair. With `safe` the source is known to have no race under any reading. If two threads of each kind are too
/// much to explore, one of each kind is kept.
pub(super) fn judge(pair: &Pair, safe: bool, models: &Models) -> Result<Verdict, Abstention> {
    let cut = |e| Abstention::Refused(e).at("slice");
    let two = simt::slice(pair).map_err(cut)?;
    if most(&two) <= MAX_LOG2_OF_TWO
        && let Ok(verdict) = judged(two, safe, models, &few())
    {
        return Ok(verdict);
    }
    let one = simt::slice_least(pair).map_err(cut)?;
    if safe && most(&one) > MAX_LOG2_OF_ONE {
        return Err(Abstention::Unusable("cut: too many executions, as counted before"));
    }
    judged(one, safe, models, &many())
}

fn judged(pair: Pair, safe: bool, models: &Models, reach: &Reach) -> Result<Verdict, Abstention> {
    let asked = Asked { pair: &pair, safe, models, reach };
    // A source that may have a race is explored first, and to the end.
    let strict = if safe { None } else { Some(asked.source(DEFAULT, None)?) };
    if strict.as_ref().is_some_and(|s| s.undefined) {
        let talks = talks(&pair.source);
        return Ok(Verdict { judged: Judged::Racy, pair, executions: 0, talks, cause: None });
    }
    let compiled = asked.compiled()?;
    let judged = asked.verdict(&compiled, strict)?;
    let cause = match &judged {
        Judged::Beyond(outcome) => asked.cause(outcome),
        Judged::Progress(None) => asked.hang_cause(),
        Judged::Progress(Some(_)) => Some(cause::ENDLESS),
        Judged::Racy | Judged::Agrees(_) | Judged::Contested(..) | Judged::Undefined | Judged::Race => None,
    };
    let (executions, talks) = (compiled.executions, talks(&pair.source));
    Ok(Verdict { judged, pair, executions, talks, cause })
}

/// A pair to be judged.
struct Asked<'a> {
    pair: &'a Pair,
    safe: bool,
    models: &'a Models,
    reach: &'a Reach,
}

impl Asked<'_> {
    fn known(
        &self,
        program: &Program,
        spec: &str,
        until: Until<'_, Shared>,
        limits: &Limits,
    ) -> Result<Known<Shared>, Abstention> {
        let compared = Compared::Memory(&|memory: &Memory| self.shared(memory));
        known(program, &*self.models.get(spec)?, limits, &compared, until)
    }

    fn shared(&self, memory: &Memory) -> Shared {
        memory[..self.pair.source.objects.len()].to_vec()
    }

    fn compiled(&self) -> Result<Known<Shared>, Abstention> {
        self.compiled_until(&|_| false)
    }

    fn compiled_until(&self, is: &dyn Fn(&Shared) -> bool) -> Result<Known<Shared>, Abstention> {
        let known = self.known(&self.pair.compiled, PTX, Until::Found(is), &self.reach.compiled);
        known.map_err(|why| why.at(COMPILED))
    }

    /// The first outcome of the PTX that leaves this behind the parameters.
    fn end(&self, end: &Shared) -> Result<Outcome, Abstention> {
        self.compiled_until(&|e| e == end)?.found.ok_or(Abstention::Unusable("an end that is not seen again"))
    }

    /// The behaviour of the source, as far as it decides about `wanted`.
    fn source(&self, spec: &str, wanted: Option<BTreeSet<Shared>>) -> Result<Known<Shared>, Abstention> {
        let known = self
            .known(&self.pair.source, spec, Until::Allowed(wanted.clone()), &self.reach.source)
            .map_err(|why| why.at(SOURCE))?;
        match known.bounded {
            Some(why) if wanted.is_none_or(|w| !w.is_subset(&known.ends)) => {
                Err(Abstention::Bounded(why).at(SOURCE))
            }
            _ => Ok(known),
        }
    }

    fn verdict(&self, compiled: &Known<Shared>, strict: Option<Known<Shared>>) -> Result<Judged, Abstention> {
        let all = &compiled.ends;
        let some = (!compiled.hangs && !all.is_empty()).then(|| all.clone());
        let strict = strict.map_or_else(|| self.source(DEFAULT, some), Ok)?;
        if strict.undefined {
            // A looser reading has this race too.
            return Ok(Judged::Racy);
        }
        let beyond = |k: &Known<Shared>| all.difference(&k.ends).next().cloned();
        let extra = beyond(&strict);
        let hangs = compiled.hangs && !strict.hangs;
        let agrees = || match compiled.undefined {
            true => Ok(Judged::Undefined),
            false => compiled.agrees().map_err(|why| why.at(COMPILED)),
        };
        if self.safe && extra.is_none() && !hangs {
            return agrees();
        }
        let weak = self.source(WEAKEST, None)?;
        Ok(match (extra, beyond(&weak)) {
            _ if weak.undefined => Judged::Racy,
            (_, Some(extra)) if weak.ends.is_empty() => Judged::Progress(Some(self.end(&extra)?)),
            (_, Some(_)) if weak.cut => return Err(Abstention::CUT.at(SOURCE)),
            (_, Some(extra)) => match self.by_choice(&extra)? {
                true => Judged::Contested(self.end(&extra)?, vec!["TOKIF"]),
                false => Judged::Beyond(self.end(&extra)?),
            },
            _ if compiled.hangs && !weak.hangs && !weak.cut => Judged::Progress(None),
            (Some(extra), None) if !strict.cut => self.contested(extra)?,
            _ => agrees()?,
        })
    }

    /// The final state with the switches that would allow it.
    fn contested(&self, extra: Shared) -> Result<Judged, Abstention> {
        let mut by = Vec::new();
        for setting in SINGLE {
            let wanted = Some(BTreeSet::from([extra.clone()]));
            let looser = self.source(&format!("{DEFAULT}:{setting}"), wanted)?;
            if looser.undefined || looser.ends.contains(&extra) {
                by.push(setting);
            }
        }
        Ok(Judged::Contested(self.end(&extra)?, by))
    }

    /// Whether the final state is allowed, or there is a race, where tokens that an `if` chooses order nothing.
    fn by_choice(&self, end: &Shared) -> Result<bool, Abstention> {
        let Some(source) = cause::unchosen(&self.pair.source) else { return Ok(false) };
        let wanted = Until::Allowed(Some(BTreeSet::from([end.clone()])));
        let known = self.known(&source, WEAKEST, wanted, &self.reach.source).map_err(|why| why.at(SOURCE))?;
        Ok(known.undefined || known.ends.contains(end))
    }

    /// The cause of a hang of the compiled side alone: in each execution that hangs, threads of a block read different values where the
    /// kernel reads once.
    fn hang_cause(&self) -> Option<&'static str> {
        let program = &self.pair.compiled;
        let (mut hangs, mut whole) = (false, true);
        let mut see = |leaf: &mut dyn LeafView| {
            if leaf.kind() == LeafKind::Blocked {
                hangs = true;
                whole = cause::divided(program, &leaf.witness());
            }
            if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let summary =
            explore(program, &*self.models.get(PTX).ok()?, &[], &self.reach.compiled, &mut see).ok()?;
        (hangs && whole && summary.bounded.is_none_or(|b| b == Bound::Loop)).then_some(cause::ONE_READ)
    }

    /// The cause of a forbidden final state; see [`cause`].
    fn cause(&self, extra: &Outcome) -> Option<&'static str> {
        let memory = self.shared(&extra.memory);
        let limits = Limits { leaves: 100_000, checks: 100_000, steps: 200_000, ..Limits::default() };
        let under = |source: &Program, spec: &str| {
            let wanted = Until::Allowed(Some(BTreeSet::from([memory.clone()])));
            self.known(source, spec, wanted, &limits).is_ok_and(|k| k.ends.contains(&memory))
        };
        if under(&self.pair.source, &format!("{WEAKEST},{}", cause::UNHANDED)) {
            return Some(cause::HANDED);
        }
        let allowed = |source: Program| under(&source, WEAKEST);
        if Share::ALL.into_iter().filter_map(|s| cause::split(&self.pair.source, &memory, s)).any(allowed) {
            return Some(cause::ONE_READ);
        }
        let twice = cause::repeated(&self.pair.source)?;
        let mut both = Share::ALL.into_iter().filter_map(|s| cause::split(&twice, &memory, s));
        if allowed(twice.clone()) {
            return Some(cause::ONE_WRITE);
        }
        let each = both.any(allowed) || cause::twins(&self.pair.source).is_some_and(allowed);
        each.then_some(cause::ONE_OF_EACH)
    }
}

/// Why the kernel of a pair does not leave this behind its parameters. `line` is the text of a line of the kernel.
pub(super) fn forbidden(
    pair: &Pair,
    end: &Memory,
    models: &Models,
    line: &dyn Fn(u32) -> Option<String>,
) -> Result<Forbidden, Abstention> {
    let shared = |memory: &Memory| memory[..pair.source.objects.len()].to_vec();
    let so = |state: &FinalState| shared(&state.memory) == shared(end);
    Ok(forbidden::forbidden(&pair.source, &*models.get(WEAKEST)?, &many().source, &so, line))
}

fn accesses(thread: &Thread) -> impl Iterator<Item = &TileAccess> {
    thread.body.iter().filter_map(|i| {
        if let Op::Tile(TileOp::Access(access)) = &i.op { Some(access.as_ref()) } else { None }
    })
}

/// Whether two tile blocks communicate through strong accesses: one may read what the other writes.
fn talks(source: &Program) -> bool {
    let mut strong: Vec<(usize, bool, u16, i32)> = Vec::new();
    for (block, thread) in source.threads.iter().enumerate() {
        for access in accesses(thread) {
            let (reads, writes) = match access.kind {
                TileKind::Load(LoadOrder::Weak) | TileKind::Store(StoreOrder::Weak) => continue,
                TileKind::Load(_) => (true, false),
                TileKind::Store(_) => (false, true),
                TileKind::Rmw { .. } => (true, true),
            };
            for element in &access.elements {
                if let Operand::Address(symbol) = element.addr.base {
                    let place = (symbol.0, element.addr.offset);
                    strong.extend(reads.then_some((block, false, place.0, place.1)));
                    strong.extend(writes.then_some((block, true, place.0, place.1)));
                }
            }
        }
    }
    strong.iter().any(|(b, w, s, o)| *w && strong.iter().any(|r| r.0 != *b && !r.1 && (r.2, r.3) == (*s, *o)))
}

/// The cells of a final state that the source accesses, such as `arg2+4=1 arg2+8=0`.
pub(super) fn shown(pair: &Pair, memory: &[Content]) -> String {
    let mut out = Vec::new();
    let objects = pair.source.objects.iter().enumerate().filter(|(_, o)| o.space == Space::Global);
    for (n, object) in objects {
        for (offset, bytes) in cells(&pair.source, n) {
            let inside = offset.checked_add(bytes).is_some_and(|end| end <= object.bytes);
            let Some(content) = memory.get(n).filter(|_| inside) else { continue };
            let value = content.value(offset, bytes);
            let plus = if offset == 0 { String::new() } else { format!("+{offset}") };
            out.push(format!("{}{plus}={value}", object.name));
        }
    }
    out.join(" ")
}

/// The places of an object that the source accesses: offset and size.
fn cells(source: &Program, object: usize) -> BTreeSet<(u32, u32)> {
    let mut out = BTreeSet::new();
    for access in source.threads.iter().flat_map(accesses) {
        for element in &access.elements {
            if let Operand::Address(symbol) = element.addr.base
                && source.symbols.get(symbol.index()).is_some_and(|s| s.object.index() == object)
                && let Ok(offset) = u32::try_from(element.addr.offset)
            {
                out.insert((offset, access.ty.bytes()));
            }
        }
    }
    out
}
