//! The native litmus format: declarations, one block of PTX a thread, conditions.
//!
//! ```text
//! moire "mp"
//! .global .b32 x;
//! .global .b32 f;
//! P0 (gpu 0, cta 0) { st.weak.u32 [x], 1; fence.acq_rel.gpu; st.relaxed.gpu.u32 [f], 1; }
//! P1 (gpu 0, cta 1) { ld.relaxed.gpu.u32 r0, [f]; fence.acq_rel.gpu; ld.weak.u32 r1, [x]; }
//! ~exists (P1:r0 == 1 /\ P1:r1 == 0)
//! ```

mod access;
mod condition;
mod control;
mod copy;
mod declare;
mod mbarrier;
mod product;
mod proxy;
mod qualifiers;
mod sync;
mod tensor;
mod tile;
mod words;

use super::ParseError;
use super::build::{Builder, ThreadBuilder, constant, expr};
use super::print::{ALU_OPS, ATOM_OPS, CMP_OPS};
use super::scan::{Comments, Parsed, Scan, Spot, closest};
use crate::ir::*;
use crate::limits::OBJECT_BYTES;
use condition::condition;
use declare::{declaration, named};
use qualifiers::{ACCESS, PLAIN, Qualifiers, Takes, UPDATE, scope_of};

/// Mnemonics that litmus texts and modules have in common.
pub const CORE: [&str; 26] = [
    "ld",
    "st",
    "atom",
    "red",
    "multimem",
    "fence",
    "membar",
    "bar",
    "barrier",
    "mbarrier",
    "mapa",
    "tcgen05",
    "cp",
    "wgmma",
    "tensormap",
    "elect",
    "griddepcontrol",
    "clusterlaunchcontrol",
    "setmaxnreg",
    "nanosleep",
    "pmevent",
    "prefetch",
    "prefetchu",
    "bra",
    "ret",
    "exit",
];

/// Reads one file.
pub fn parse(source: &str) -> Result<Program, ParseError> {
    let mut scan = Scan::new(source, Comments::C);
    if !scan.keyword("moire") {
        let hint = "a native program starts with `moire \"name\"`".to_owned();
        return Err(scan.error("this does not look like a program".into(), Some(hint)));
    }
    let name = string(&mut scan)?;
    let mut builder = Builder::new(&name);
    while scan.peek(".") {
        declaration(&mut scan, &mut builder)?;
    }
    while !(scan.done() || condition_word(&mut scan)) {
        let thread = thread(&mut scan, &builder)?;
        builder.thread(&mut scan, thread)?;
    }
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

fn thread(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<Thread> {
    let name = scan.name("a thread such as `P0 (gpu 0, cta 0) { .. }`")?.to_owned();
    let place = placement(scan)?;
    let mut thread = ThreadBuilder::new(&name, place);
    scan.expect("{")?;
    while !scan.take("}") {
        statement(scan, builder, &mut thread)?;
    }
    thread.finish(scan.source)
}

fn placement(scan: &mut Scan<'_>) -> Parsed<Placement> {
    let mut place = Placement::default();
    scan.expect("(")?;
    while !scan.take(")") {
        let at = scan.at;
        let word = scan.word("gpu, stream, grid, cluster, cta, warp, lane, lanes or host", "")?;
        if word == "host" {
            place.host = true;
        } else {
            let n = scan.number()?;
            let field = match word {
                "gpu" => &mut place.gpu,
                "stream" => &mut place.stream,
                "grid" => &mut place.grid,
                "cluster" => &mut place.cluster,
                "cta" => &mut place.cta,
                "warp" => &mut place.warp,
                "lane" => {
                    let lane = u8::try_from(n).ok().filter(|l| *l < 32);
                    place.lane =
                        Some(lane.ok_or_else(|| scan.error_at(at, "a lane is 0 to 31".into(), None))?);
                    scan.take(",");
                    continue;
                }
                "lanes" => {
                    let last = if scan.take("-") { scan.number()? } else { n };
                    let span = u8::try_from(n).ok().zip(u8::try_from(last).ok());
                    let span = span.filter(|(first, last)| first <= last && *last < 32);
                    let (first, last) = span.ok_or_else(|| {
                        let hint = Some("a warp is `lanes 0-31`".to_owned());
                        scan.error_at(at, "lanes are an ascending range inside 0 to 31".into(), hint)
                    })?;
                    (place.lane, place.more_lanes) = (Some(first), last - first);
                    scan.take(",");
                    continue;
                }
                other => {
                    let known = ["gpu", "stream", "grid", "cluster", "cta", "warp", "lane", "lanes", "host"];
                    let hint = closest(other, &known).map(|k| format!("did you mean `{k}`?"));
                    return Err(scan.error_at(at, format!("`{other}` is no part of a placement"), hint));
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

fn statement(scan: &mut Scan<'_>, builder: &Builder, thread: &mut ThreadBuilder) -> Parsed<()> {
    if scan.keyword(".reg") {
        return registers(scan, builder, thread);
    }
    let spot = scan.spot();
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
        return thread.label(scan, word);
    }
    // `.shared::cta` holds colons, which no label can.
    let mut text = word.to_owned();
    while scan.source[scan.at..].starts_with("::") {
        scan.at += 2;
        text.push_str("::");
        text.push_str(scan.word("cta or cluster", ".")?);
    }
    let mut reader = Reader { scan, builder, thread, at, spot, guard };
    reader.instruction(&text)?;
    scan.expect(";")
}

/// A register; memory has the same name space.
fn register(scan: &mut Scan<'_>, builder: &Builder, thread: &mut ThreadBuilder) -> Parsed<Reg> {
    scan.rest();
    let at = scan.at;
    let name = scan.name("a register")?.to_owned();
    if builder.symbol(&name).is_some() {
        return Err(scan.error_at(at, format!("`{name}` is memory, a register is wanted here"), None));
    }
    thread.reg(scan, &name)
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

fn parse_type(word: &str) -> Option<Ty> {
    let number = |rest: &str, widths: &[u8]| rest.parse::<u8>().ok().filter(|n| widths.contains(n));
    match word {
        "pred" => return Some(Ty::Pred),
        "f16x2" => return Some(Ty::F16x2),
        "bf16x2" => return Some(Ty::Bf16x2),
        _ => {}
    }
    let (kind, rest) = word.split_at_checked(1)?;
    match kind {
        "b" => number(rest, &[8, 16, 32, 64, 128]).map(Ty::B),
        "u" => number(rest, &[8, 16, 32, 64]).map(Ty::U),
        "s" => number(rest, &[8, 16, 32, 64]).map(Ty::S),
        "f" => number(rest, &[16, 32, 64]).map(Ty::F),
        _ => None,
    }
}

/// One instruction without its guard and its semicolon, for readers of other texts with the same instructions. `text`
/// are its dotted words, which end where `scan` stands; `at` is where they start.
pub fn instruction(
    scan: &mut Scan<'_>,
    builder: &Builder,
    thread: &mut ThreadBuilder,
    (at, spot): (usize, Spot),
    guard: Option<Guard>,
    text: &str,
) -> Parsed<()> {
    Reader { scan, builder, thread, at, spot, guard }.instruction(text)
}

struct Reader<'r, 's> {
    scan: &'r mut Scan<'s>,
    builder: &'r Builder,
    thread: &'r mut ThreadBuilder,
    at: usize,
    spot: Spot,
    guard: Option<Guard>,
}

impl Reader<'_, '_> {
    fn fail<T>(&self, message: String, hint: Option<String>) -> Parsed<T> {
        Err(self.scan.error_at(self.at, message, hint))
    }

    fn push(&mut self, op: Op) -> Parsed<()> {
        self.thread.push(self.scan, self.spot, self.guard, op)
    }

    fn instruction(&mut self, text: &str) -> Parsed<()> {
        let parts: Vec<&str> = text.split('.').collect();
        let quals = &parts[1..];
        match parts[0] {
            "ld" => self.load(Proxy::Generic, quals),
            "tld" => self.load(Proxy::Texture, quals),
            "suld" => self.load(Proxy::Surface, quals),
            "ldc" | "cold" => self.load(Proxy::Constant, quals),
            "st" if quals.first() == Some(&"async") => self.remote(false, &quals[1..]),
            "st" => self.store(Proxy::Generic, quals),
            "sust" => self.store(Proxy::Surface, quals),
            "atom" => self.update(Proxy::Generic, false, quals),
            "suatom" => self.update(Proxy::Surface, false, quals),
            "red" if quals.first() == Some(&"async") => self.remote(true, &quals[1..]),
            "red" => self.update(Proxy::Generic, true, quals),
            "sured" => self.update(Proxy::Surface, true, quals),
            "multimem" => self.multimem(quals),
            "fence" => self.fence(quals),
            "membar" => self.membar(quals),
            "bar" => self.barrier(quals),
            "barrier" => {
                let quals: Vec<&str> = quals.iter().copied().filter(|w| *w != "aligned").collect();
                self.barrier(&quals)
            }
            "mbarrier" => self.mbarrier(quals),
            "mapa" => self.mapa(quals),
            "tcgen05" => self.tcgen05(quals),
            "cp" => self.copy(quals),
            "wgmma" => self.wgmma(quals),
            "tensormap" => self.tensormap(quals),
            "tile" => self.tile_block(quals),
            "elect" => self.elect(quals),
            "griddepcontrol" => self.grid_dependency(quals),
            "clusterlaunchcontrol" => self.cluster_launch(quals),
            name @ ("setmaxnreg" | "nanosleep" | "pmevent" | "prefetch" | "prefetchu") => {
                self.ignored(name, quals)
            }
            "bra" => self.branch(),
            "exit" | "ret" => self.push(Op::Exit),
            "mov" => {
                let ty = self.only_type(quals)?;
                let dst = self.reg()?;
                self.scan.expect(",")?;
                let src = self.operand()?;
                self.push(Op::Mov { ty, dst, src })
            }
            "setp" => self.setp(quals),
            "selp" => self.selp(quals),
            word => match ALU_OPS.iter().find(|(w, _)| *w == word) {
                Some((_, op)) => self.arithmetic(*op, quals),
                None => self.unknown(word),
            },
        }
    }

    fn unknown(&self, word: &str) -> Parsed<()> {
        let mut known = CORE.to_vec();
        known.extend(["mov", "setp", "selp", "tld", "suld", "sust", "ldc", "tile"]);
        known.extend(ALU_OPS.iter().map(|(w, _)| *w));
        let hint = closest(word, &known)
            .map_or_else(|| format!("known are {}", known.join(", ")), |k| format!("did you mean `{k}`?"));
        self.fail(format!("`{word}` is not an instruction this reader knows"), Some(hint))
    }

    fn reg(&mut self) -> Parsed<Reg> {
        register(self.scan, self.builder, self.thread)
    }

    fn operand(&mut self) -> Parsed<Operand> {
        if self.scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Ok(Operand::Imm(self.scan.number()?));
        }
        let name = self.scan.name("a register, a number or a name")?.to_owned();
        if let Some(symbol) = self.builder.symbol(&name) {
            return Ok(Operand::Address(symbol));
        }
        Ok(Operand::Reg(self.thread.reg(self.scan, &name)?))
    }

    fn address(&mut self) -> Parsed<Address> {
        self.scan.expect("[")?;
        let base = self.operand()?;
        let signed = self.scan.peek("-");
        let offset = if self.scan.take("+") || signed { self.scan.number()? } else { 0 };
        self.scan.expect("]")?;
        match i32::try_from(offset) {
            Ok(offset) => Ok(Address { base, offset }),
            Err(_) => self.fail(format!("the offset {offset} does not fit 32 bits"), None),
        }
    }

    fn list<T>(&mut self, one: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if !self.scan.take("{") {
            return Ok(vec![one(self)?]);
        }
        let mut out = vec![one(self)?];
        while self.scan.take(",") {
            out.push(one(self)?);
        }
        self.scan.expect("}")?;
        Ok(out)
    }

    fn branch(&mut self) -> Parsed<()> {
        self.scan.rest();
        let at = self.scan.at;
        let label = self.scan.word("a label", "")?.to_owned();
        self.thread.jumps.push((self.thread.thread.body.len(), label, at));
        self.push(Op::Bra { target: 0 })
    }

    fn only_type(&self, words: &[&str]) -> Parsed<Ty> {
        let q = self.qualifiers(words, PLAIN)?;
        self.ty(&q)
    }

    fn arithmetic(&mut self, op: AluOp, words: &[&str]) -> Parsed<()> {
        let q = self.qualifiers(words, Takes { lo: op == AluOp::Mul, ..PLAIN })?;
        if op == AluOp::Mul && !q.lo {
            return self
                .fail("only the low half of a product is modelled".into(), Some("write `mul.lo`".into()));
        }
        let ty = self.ty(&q)?;
        let dst = self.reg()?;
        self.scan.expect(",")?;
        let a = self.operand()?;
        self.scan.expect(",")?;
        let b = self.operand()?;
        self.push(Op::Alu { op, ty, dst, a, b })
    }

    fn setp(&mut self, words: &[&str]) -> Parsed<()> {
        let op = words.first().and_then(|w| CMP_OPS.iter().find(|(name, _)| name == w));
        let Some((_, op)) = op else {
            return self.fail("setp needs a comparison".into(), Some("one of eq, ne, lt, le, gt, ge".into()));
        };
        let ty = self.only_type(&words[1..])?;
        let dst = self.reg()?;
        self.scan.expect(",")?;
        let a = self.operand()?;
        self.scan.expect(",")?;
        let b = self.operand()?;
        self.push(Op::Setp { op: *op, ty, dst, a, b })
    }

    fn selp(&mut self, words: &[&str]) -> Parsed<()> {
        let ty = self.only_type(words)?;
        let dst = self.reg()?;
        self.scan.expect(",")?;
        let a = self.operand()?;
        self.scan.expect(",")?;
        let b = self.operand()?;
        self.scan.expect(",")?;
        let p = self.reg()?;
        self.push(Op::Selp { ty, dst, a, b, p })
    }
}
