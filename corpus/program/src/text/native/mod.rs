//! The native litmus format: declarations, one block of PTX for each thread, conditions.
//!
//! ```text
//! moire "mp"
//! .global .b32 x;
//! .global .b32 f;
//! P0 (gpu 0, cta 0) { st.weak.u32 [x], 1; fence.acq_rel.gpu; st.relaxed.gpu.u32 [f], 1; }
//! P1 (gpu 0, cta 1) { ld.relaxed.gpu.u32 r0, [f]; fence.acq_rel.gpu; ld.weak.u32 r1, [x]; }
//! ~exists (P1:r0 == 1 /\ P1:r1 == 0)
//! ```

mod arithmetic;
mod book;
mod condition;
mod declare;
mod instruction;
mod notation;
mod qualifiers;
mod reader;
mod sync;
mod tile;

use super::ParseError;
use super::build::{Builder, ThreadBuilder};
use super::scan::{Comments, Parsed, Scan, Spot, closest};
use crate::ir::*;
use crate::limits::REPEATS;
use condition::condition;
use declare::{declaration, named};
pub use instruction::{form, instruction};
use reader::register;

/// What to do with a file that is no program, by what it seems to be.
fn instead(source: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| source.contains(word));
    if source.starts_with("\u{7f}ELF") {
        "it is machine code: `nvcc -ptx` writes the PTX that is judged, `cuobjdump -ptx` takes it from a file that holds it"
    } else if has(&["__global__", "__device__", "#include <cuda"]) {
        "it is CUDA C++: `nvcc -ptx -lineinfo` writes the PTX that is judged"
    } else if has(&["import triton", "import torch", "import cutlass", "import cuda"]) {
        "it is Python: `moire record` keeps the kernels that a program launches"
    } else {
        "a native program starts with `moire \"name\"`"
    }
}

/// Reads one file.
pub fn parse(source: &str) -> Result<Program, ParseError> {
    let mut scan = Scan::new(source, Comments::C);
    if !scan.keyword("moire") {
        return Err(scan.error("this does not look like a program".into(), Some(instead(source).to_owned())));
    }
    let name = string(&mut scan)?;
    let mut builder = Builder::new(&name);
    while scan.peek(".") {
        declaration(&mut scan, &mut builder)?;
    }
    let mut clusters = false;
    while !(scan.done() || condition_word(&mut scan)) {
        let thread = thread(&mut scan, &builder, &mut clusters)?;
        builder.thread(&mut scan, thread)?;
    }
    let program = &mut builder.program;
    program.one_cluster = clusters && program.threads.iter().all(|t| t.place.cluster == 0);
    while !scan.done() {
        condition(&mut scan, &mut builder)?;
    }
    Ok(builder.program)
}

fn condition_word(scan: &mut Scan<'_>) -> bool {
    ["exists", "forall", "filter"].iter().any(|w| scan.clone().keyword(w)) || scan.peek("~")
}

fn string(scan: &mut Scan<'_>) -> Parsed<String> {
    scan.expect("\"")?;
    let rest = &scan.source[scan.at..];
    let Some(end) = rest.find(['"', '\n']).filter(|e| rest[*e..].starts_with('"')) else {
        return Err(scan.error("this name is never closed".into(), Some("add `\"`".into())));
    };
    scan.at += end + 1;
    Ok(rest[..end].to_owned())
}

/// Reads a thread; `clusters` becomes true if it names its cluster.
fn thread(scan: &mut Scan<'_>, builder: &Builder, clusters: &mut bool) -> Parsed<Thread> {
    let name = scan.name("a thread such as `P0 (gpu 0, cta 0) { .. }`")?.to_owned();
    let place = placement(scan, clusters)?;
    let mut thread = ThreadBuilder::new(&name, place);
    scan.expect("{")?;
    let mut loops = 0;
    loop {
        let spot = scan.spot();
        if !scan.take("}") {
            loops += usize::from(statement(scan, builder, &mut thread)?);
        } else if loops > 0 {
            thread.push(scan, spot, None, Op::Control(Control::EndRepeat))?;
            loops -= 1;
        } else {
            return thread.finish(scan.source);
        }
    }
}

/// `repeat 3 {`, `repeat N {`, `repeat N >= 1 {`, `repeat N - 1 {`, `repeat N - 1 >= 1 {`
fn repeat(scan: &mut Scan<'_>, thread: &mut ThreadBuilder, spot: Spot) -> Parsed<()> {
    let least = |scan: &mut Scan<'_>| {
        let at = scan.at;
        let number = scan.number()?;
        let hint = Some(format!("it is at most {REPEATS}"));
        let fits = u32::try_from(number).ok().filter(|n| *n <= REPEATS);
        fits.ok_or_else(|| scan.error_at(at, format!("a loop cannot be repeated {number} times"), hint))
    };
    let trips = if scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        Trips::Number(least(scan)?)
    } else {
        let name = scan.name("a number, or the name of one")?.to_owned();
        let less = if scan.take("-") { least(scan)? } else { 0 };
        let more = if scan.take(">=") { least(scan)? } else { 0 };
        Trips::Free { name, least: less + more, less }
    };
    thread.push(scan, spot, None, Op::Control(Control::Repeat(trips)))?;
    scan.expect("{")
}

fn placement(scan: &mut Scan<'_>, clusters: &mut bool) -> Parsed<Placement> {
    let mut place = Placement::default();
    scan.expect("(")?;
    while !scan.take(")") {
        let at = scan.at;
        let word = scan.word("gpu, stream, grid, cluster, cta, warp, lane, lanes or host", "")?;
        if word == "host" {
            place.host = true;
        } else {
            let n = scan.number()?;
            *clusters |= word == "cluster";
            let field = match word {
                "gpu" => &mut place.gpu,
                "stream" => &mut place.stream,
                "grid" => &mut place.grid,
                "cluster" => &mut place.cluster,
                "cta" => &mut place.cta,
                "warp" => &mut place.warp,
                "lane" => {
                    let lane = u8::try_from(n).ok().filter(|l| *l < 32);
                    let lane = lane.ok_or_else(|| scan.error_at(at, "a lane is 0 to 31".into(), None))?;
                    (place.mask, place.joined) = (1 << lane, false);
                    scan.take(",");
                    continue;
                }
                "lanes" => {
                    place.mask = lanes(scan, at, n)?;
                    place.joined = scan.keyword("joined") && place.several();
                    scan.take(",");
                    continue;
                }
                other => {
                    let known = ["gpu", "stream", "grid", "cluster", "cta", "warp", "lane", "lanes", "host"];
                    let hint = closest(other, &known).map(|k| format!("did you mean `{k}`?"));
                    return Err(scan.error_at(at, format!("`{other}` is not a part of a placement"), hint));
                }
            };
            *field = u16::try_from(n)
                .map_err(|_| scan.error_at(at, format!("{word} {n} is out of range"), None))?;
        }
        scan.take(",");
    }
    if place.host && place != (Placement { host: true, ..Placement::default() }) {
        return Err(scan.error("a host thread is on no GPU".into(), Some("write just `(host)`".into())));
    }
    Ok(place)
}

/// `0-31`, `0,2-5`: the lanes of a warp, a bit a lane, behind their first number, which stands at `at`.
fn lanes(scan: &mut Scan<'_>, at: usize, mut first: i128) -> Parsed<u32> {
    let mut mask = 0u32;
    loop {
        let last = if scan.take("-") { scan.number()? } else { first };
        let span = u32::try_from(first).ok().zip(u32::try_from(last).ok());
        let span = span.filter(|(first, last)| first <= last && *last < 32 && mask >> first == 0);
        let (from, to) = span.ok_or_else(|| {
            let hint = Some("a warp is `lanes 0-31`".to_owned());
            scan.error_at(at, "lanes are ascending ranges inside 0 to 31".into(), hint)
        })?;
        mask |= u32::MAX >> (31 - (to - from)) << from;
        let mut ahead = scan.clone();
        if !ahead.take(",") || !ahead.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(mask);
        }
        *scan = ahead;
        first = scan.number()?;
    }
}

/// Reads a statement. Returns whether it opens a loop.
fn statement(scan: &mut Scan<'_>, builder: &Builder, thread: &mut ThreadBuilder) -> Parsed<bool> {
    if scan.keyword(".reg") {
        return registers(scan, builder, thread).map(|()| false);
    }
    let spot = scan.spot();
    let mut ahead = scan.clone();
    if ahead.keyword("repeat") && !ahead.peek(":") {
        *scan = ahead;
        return repeat(scan, thread, spot).map(|()| true);
    }
    let guard = if scan.take("@") {
        let negated = scan.take("!");
        Some(Guard { reg: register(scan, builder, thread)?, negated })
    } else {
        None
    };
    scan.rest();
    let at = scan.at;
    let word = scan.word("an instruction, a label or `}`", ".")?;
    if guard.is_none() && !scan.peek("::") && scan.take(":") {
        return thread.label(scan, word).map(|()| false);
    }
    // `.shared::cta` contains colons; a label cannot.
    let mut text = word.to_owned();
    while scan.source[scan.at..].starts_with("::") {
        scan.at += 2;
        text.push_str("::");
        text.push_str(scan.word("cta or cluster", ".")?);
    }
    instruction(scan, builder, thread, (at, spot), guard, &text)?;
    scan.expect(";").map(|()| false)
}

/// `.reg r0, r1 = 5, r2 = x;` and PTX's own `.reg .b32 r0;`
fn registers(scan: &mut Scan<'_>, builder: &Builder, thread: &mut ThreadBuilder) -> Parsed<()> {
    if scan.take(".") {
        scan.word("a type", "")?;
    }
    loop {
        let reg = register(scan, builder, thread)?;
        if scan.take("=") {
            let numeric = scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-');
            let init = if scan.take("%laneid") {
                RegInit::Lane
            } else if numeric {
                RegInit::Value(super::dat3m::pattern(scan.number()?))
            } else {
                RegInit::Address(named(scan, builder)?)
            };
            thread.thread.regs[reg.index()].init = init;
        }
        if !scan.take(",") {
            return scan.expect(";");
        }
    }
}
