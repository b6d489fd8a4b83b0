//! The memory order that PTX asks for, in the machine code that the assembler makes of it.
//!
//! Both texts of a kernel are followed along their paths, each for one thread that is alone in its warp, and a path becomes a
//! sequence of steps: accesses with their place, width and scope, fences, invalidations of the cache, barriers, and
//! instructions of the asynchronous engines. PTX asks for steps: a release for a fence in front of the access, an acquire for
//! an invalidation behind it, a fence for both. The machine code does steps. A path of it *fits* a path of the PTX if each step
//! that is asked for is done, as strong, as wide and at the same place, in an order that keeps what the PTX orders; what may
//! be left out, joined or added besides is the header of `fit`.
//!
//! A kernel is right if each path of the machine code fits one of the PTX, or if each path of the PTX is fitted by one of the
//! machine code. Either alone would do for code whose conditions are all understood. Both are tried because some are not: a
//! path that no value takes fits nothing, on either side. So a loss is said only where the texts have, on both sides, a path
//! without a partner.
//!
//! What this leaves out: values that are stored, order through dependencies (the model of PTX has none), and code after more
//! than a few rounds of a loop.

mod fit;
mod machine;
mod paths;
mod planted;
mod ptx;
mod step;
#[cfg(test)]
mod tests;
mod text;
mod told;
mod unread;
mod value;

pub use planted::Planted;
pub use unread::Unread;

use fit::{Fit, fit, is_likely, word};
use machine::Machine;
use paths::{Path, paths};
use ptx::Ptx;
use std::collections::BTreeMap;
use step::{Act, Step};

/// What the machine code of a kernel does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// `lost`, `weakened`, `moved` or `added`.
    pub how: &'static str,
    /// The step, and the class of the instruction that asks for it.
    pub what: String,
}

/// Machine code of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The lines of each kernel: instructions, and labels with a colon.
    pub kernels: BTreeMap<String, Vec<String>>,
    /// Names of memory whose addresses are constants, in the order of the constants.
    pub slots: Vec<String>,
}

/// What the machine code of each kernel of a text of PTX does not do; a kernel that is read has `None` where there is nothing.
pub fn losses(ptx: &str, code: &Listing, target: &str) -> Vec<Result<Option<Loss>, Unread>> {
    let first = if target.starts_with("sm_9") { 0x210 } else { 0x380 };
    let shared: Vec<String> = ptx.lines().filter_map(shared).collect();
    let one = |(name, head, body): (&str, &str, &str)| {
        let machine = code.kernels.get(name).ok_or(Unread::Missing)?;
        loss(&Ptx::read(body, &shared), &Machine::read(machine, &code.slots, &parameters(head, first)))
    };
    entries(ptx).map(one).collect()
}

/// The kernels of a text of PTX: name, head, and what is behind its first brace.
fn entries(ptx: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let kernels = ptx.split(".entry ").skip(1).filter_map(|text| text.split_once('{'));
    let name = |head: &str| head.split(|c: char| c == '(' || c.is_whitespace()).next().map_or(0, str::len);
    kernels.map(move |(head, body)| (&head[..name(head)], head, body))
}

/// The name in `.shared .align 128 .b8 m0[8];` or `.shared .align 4 .u32 m1;`, which may be extern.
fn shared(line: &str) -> Option<String> {
    let (_, rest) =
        line.split_once(".shared").filter(|(before, _)| matches!(before.trim(), "" | ".extern"))?;
    Some(rest.split(['[', ';']).next()?.split_whitespace().last()?.to_owned())
}

/// The parameters of a kernel by their place in the bank of parameters, each at a multiple of its size.
fn parameters(head: &str, first: i64) -> BTreeMap<i64, String> {
    let (mut out, mut at) = (BTreeMap::new(), first);
    for part in head.split(".param").skip(1) {
        let words: Vec<&str> =
            part.split(|c: char| c.is_whitespace() || "(),".contains(c)).filter(|w| !w.is_empty()).collect();
        let bits = words.first().and_then(|ty| ty.get(2..)?.parse::<i64>().ok()).unwrap_or(64);
        at = (at + bits / 8 - 1) / (bits / 8) * (bits / 8);
        words
            .iter()
            .rev()
            .find(|w| w.starts_with(|c: char| c.is_alphabetic() || "_%$".contains(c)))
            .into_iter()
            .for_each(|name| {
                out.insert(at, (*name).to_owned());
            });
        at += bits / 8;
    }
    out
}

/// Compares the machine code of a kernel with its PTX.
fn loss(code: &Ptx<'_>, machine: &Machine<'_>) -> Result<Option<Loss>, Unread> {
    let (asked, done) = (paths(code)?, paths(machine)?);
    if asked.is_empty() || done.is_empty() {
        return Err(Unread::Endless);
    }
    let Some((a, at, d)) = apart(&asked, &done)? else { return Ok(None) };
    let what = |step: &Step| match code.class(step.at) {
        class if matches!(step.act, Act::Access(_)) => class,
        class => format!("{} of {class}", step.act),
    };
    Ok(Some(Loss { how: word(&a, at, &d), what: a.get(at).map_or_else(|| "a write".to_owned(), what) }))
}

type Apart = (Path, usize, Path);

/// The pair of paths that comes nearest, where neither all paths of the machine nor all of the PTX have a fit.
fn apart(asked: &[Path], done: &[Path]) -> Result<Option<Apart>, Unread> {
    let fits = |a: &Path, d: &Path| is_likely(a, d) && fit(a, d) == Fit::Fits;
    let Some(worst) = asked.iter().find(|a| !done.iter().any(|d| fits(a, d))) else { return Ok(None) };
    if done.iter().all(|d| asked.iter().any(|a| fits(a, d))) {
        return Ok(None);
    }
    let far: Vec<Fit> = done.iter().map(|d| fit(worst, d)).collect();
    if far.contains(&Fit::Unknown) {
        return Err(Unread::Paths);
    }
    // The path of the machine that does most of it, and has no more writes.
    let depth = |d: &usize| match far[*d] {
        Fit::Fails(at) => at,
        Fit::Fits | Fit::Unknown => 0,
    };
    let best = (0..done.len()).max_by_key(|d| (is_likely(worst, &done[*d]), depth(d))).unwrap_or(0);
    Ok(Some((worst.clone(), depth(&best), done[best].clone())))
}
