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

use super::ParseError;
use super::build::{Builder, ThreadBuilder, constant, expr};
use super::print::{ALU_OPS, ATOM_OPS, CMP_OPS};
use super::scan::{Comments, Parsed, Scan, Spot, closest};
use crate::ir::*;
use crate::limits::OBJECT_BYTES;

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

fn declaration(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    scan.expect(".")?;
    let at = scan.at;
    let word = scan.word("global, shared, alias, texture, surface, constant or multimem", ":")?;
    match word {
        "global" => object(scan, builder, Space::Global)?,
        "shared" | "shared::cta" => object(scan, builder, Space::SharedCta)?,
        "alias" => alias(scan, builder, Proxy::Generic)?,
        "texture" => alias(scan, builder, Proxy::Texture)?,
        "surface" => alias(scan, builder, Proxy::Surface)?,
        "constant" => alias(scan, builder, Proxy::Constant)?,
        "multimem" => multimem(scan, builder)?,
        other => {
            let known = ["global", "shared", "alias", "texture", "surface", "constant", "multimem"];
            let hint = closest(other, &known).map_or_else(
                || format!("known are {}", known.join(", ")),
                |k| format!("did you mean `.{k}`?"),
            );
            return Err(scan.error_at(at, format!("`.{other}` declares nothing known"), Some(hint)));
        }
    }
    scan.expect(";")
}

fn object(scan: &mut Scan<'_>, builder: &mut Builder, space: Space) -> Parsed<()> {
    let at = scan.at;
    scan.expect(".")?;
    let word = scan.word("a type such as b32", "")?;
    let element = parse_type(word).filter(|t| t.bytes() <= 8).ok_or_else(|| {
        scan.error_at(
            at,
            format!("`.{word}` is not a type of memory"),
            Some("use .b8, .b16, .b32 or .b64".into()),
        )
    })?;
    let name = scan.name("a name")?.to_owned();
    if builder.symbol(&name).is_some() {
        return Err(scan.error(format!("`{name}` is declared twice"), None));
    }
    let count = if scan.take("[") {
        let n = scan.number()?;
        scan.expect("]")?;
        u32::try_from(n).ok().filter(|n| *n > 0)
    } else {
        Some(1)
    };
    let bytes = count.and_then(|c| c.checked_mul(element.bytes())).filter(|b| *b <= OBJECT_BYTES);
    let bytes = bytes.ok_or_else(|| {
        scan.error_at(at, format!("an object has between 1 and {OBJECT_BYTES} bytes"), None)
    })?;
    let mut init = Vec::new();
    if scan.take("=") {
        let mut values = Vec::new();
        if scan.take("{") {
            while !scan.take("}") {
                values.push(scan.number()?);
                scan.take(",");
            }
        } else {
            values.push(scan.number()?);
        }
        for value in values {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one byte is wanted")]
            init.extend((0..element.bytes()).map(|i| (value >> (8 * i)) as u8));
        }
        if init.len() > bytes as usize {
            return Err(scan.error_at(at, "more initial values than the object has room for".into(), None));
        }
    }
    builder.object(scan, &name, space, bytes, init)?;
    Ok(())
}

fn named(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<SymbolId> {
    let at = scan.at;
    let name = scan.name("a declared name")?;
    builder.symbol(name).ok_or_else(|| {
        let known: Vec<&str> = builder.program.symbols.iter().map(|s| s.name.as_str()).collect();
        let hint = closest(name, &known).map(|k| format!("did you mean `{k}`?"));
        scan.error_at(at, format!("`{name}` is not declared before this"), hint)
    })
}

fn alias(scan: &mut Scan<'_>, builder: &mut Builder, proxy: Proxy) -> Parsed<()> {
    let name = scan.name("a name")?.to_owned();
    scan.expect("=")?;
    let of = named(scan, builder)?;
    builder.alias(scan, &name, of, proxy)?;
    Ok(())
}

fn multimem(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    let name = scan.name("a name")?.to_owned();
    scan.expect("=")?;
    let first = named(scan, builder)?;
    let mut more = Vec::new();
    while scan.take(",") {
        more.push(named(scan, builder)?);
    }
    let id = builder.alias(scan, &name, first, Proxy::Generic)?;
    let objects: Vec<ObjectId> = more.iter().map(|s| builder.program.symbols[s.index()].object).collect();
    if objects.is_empty() {
        return Err(scan.error("a multimem name names at least two objects".into(), None));
    }
    builder.program.symbols[id.index()].multimem = objects;
    Ok(())
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
        let word = scan.word("gpu, stream, grid, cluster, cta, warp, lane or host", "")?;
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
                other => {
                    let known = ["gpu", "stream", "grid", "cluster", "cta", "warp", "lane", "host"];
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
            let init = if numeric {
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

struct Reader<'r, 's> {
    scan: &'r mut Scan<'s>,
    builder: &'r Builder,
    thread: &'r mut ThreadBuilder,
    at: usize,
    spot: Spot,
    guard: Option<Guard>,
}

/// What the dotted words of an access say.
#[derive(Default)]
struct Qualifiers<'w> {
    order: Option<&'w str>,
    mmio: bool,
    scope: Option<Scope>,
    space: Option<Space>,
    vector: Option<usize>,
    ty: Option<Ty>,
    op: Option<AtomOp>,
    lo: bool,
}

/// Groups of qualifiers an instruction takes; a type always.
#[derive(Clone, Copy, Default)]
struct Takes {
    /// Order, scope and state space.
    access: bool,
    mmio: bool,
    vector: bool,
    op: bool,
    lo: bool,
}

const ACCESS: Takes = Takes { access: true, mmio: true, vector: true, op: false, lo: false };
const UPDATE: Takes = Takes { access: true, mmio: false, vector: false, op: true, lo: false };
const PLAIN: Takes = Takes { access: false, mmio: false, vector: false, op: false, lo: false };

const ORDERS: [&str; 6] = ["weak", "relaxed", "acquire", "release", "acq_rel", "volatile"];

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
            "st" => self.store(Proxy::Generic, quals),
            "sust" => self.store(Proxy::Surface, quals),
            "atom" => self.update(Proxy::Generic, false, quals),
            "suatom" => self.update(Proxy::Surface, false, quals),
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
        let mut known = vec![
            "ld", "st", "atom", "red", "fence", "membar", "bar", "barrier", "bra", "exit", "mov", "setp",
            "selp", "multimem", "tld", "suld", "sust", "ldc",
        ];
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

    fn qualifiers<'w>(&self, words: &[&'w str], takes: Takes) -> Parsed<Qualifiers<'w>> {
        let mut q = Qualifiers::default();
        for word in words {
            let space = match *word {
                "global" => Some(Space::Global),
                "shared" | "shared::cta" => Some(Space::SharedCta),
                "shared::cluster" => Some(Space::SharedCluster),
                _ => None,
            };
            let vector =
                word.strip_prefix('v').and_then(|n| n.parse().ok()).filter(|n| [2, 4, 8].contains(n));
            // Each kind of qualifier stands once; the answer is whether this one is new.
            let new = if ORDERS.contains(word) && takes.access {
                q.order.replace(word).is_none()
            } else if *word == "mmio" && takes.mmio {
                !std::mem::replace(&mut q.mmio, true)
            } else if let Some(scope) = scope_of(word).filter(|_| takes.access) {
                q.scope.replace(scope).is_none()
            } else if let Some(space) = space.filter(|_| takes.access) {
                q.space.replace(space).is_none()
            } else if let Some(vector) = vector.filter(|_| takes.vector) {
                q.vector.replace(vector).is_none()
            } else if let Some(ty) = parse_type(word) {
                q.ty.replace(ty).is_none()
            } else if let Some((_, op)) = ATOM_OPS.iter().find(|(w, _)| w == word && takes.op) {
                q.op.replace(*op).is_none()
            } else if *word == "lo" && takes.lo {
                !std::mem::replace(&mut q.lo, true)
            } else if matches!(*word, "uni" | "noftz") {
                true
            } else {
                return self.stranger(word);
            };
            if !new {
                return self.fail(format!("`.{word}` comes on top of another of its kind"), None);
            }
        }
        Ok(q)
    }

    fn stranger<T>(&self, word: &str) -> Parsed<T> {
        let mut known = vec![
            "cta",
            "cluster",
            "gpu",
            "sys",
            "global",
            "shared::cta",
            "shared::cluster",
            "mmio",
            "b32",
            "u32",
            "s32",
            "b64",
        ];
        known.extend(ORDERS);
        let hint = closest(word, &known).filter(|k| *k != word).map(|k| format!("did you mean `.{k}`?"));
        self.fail(format!("`.{word}` is not a qualifier of this instruction"), hint)
    }

    fn ty(&self, q: &Qualifiers<'_>) -> Parsed<Ty> {
        match q.ty {
            Some(ty) => Ok(ty),
            None => self.fail("this instruction needs a type".into(), Some("for example `.u32`".into())),
        }
    }

    fn scope(&self, q: &Qualifiers<'_>) -> Parsed<Scope> {
        match q.scope {
            Some(scope) => Ok(scope),
            None => {
                self.fail("this order needs a scope".into(), Some("add .cta, .cluster, .gpu or .sys".into()))
            }
        }
    }

    fn load_order(&self, q: &Qualifiers<'_>) -> Parsed<LoadOrder> {
        let no_scope = q.scope.is_none();
        if q.mmio && q.scope != Some(Scope::Sys) {
            return self.fail("mmio is for the system scope".into(), Some("write .sys".into()));
        }
        Ok(match (q.order, q.mmio) {
            (Some("relaxed"), true) => LoadOrder::MmioRelaxed,
            (Some("acquire"), true) => LoadOrder::MmioAcquire,
            (Some("relaxed"), false) => LoadOrder::Relaxed(self.scope(q)?),
            (Some("acquire"), false) => LoadOrder::Acquire(self.scope(q)?),
            (Some("volatile"), false) if no_scope => LoadOrder::Volatile,
            (None | Some("weak"), false) if no_scope => LoadOrder::Weak,
            (None | Some("weak" | "volatile"), false) => {
                return self.fail("a weak or volatile access takes no scope".into(), None);
            }
            _ => {
                return self.fail(
                    "this is not an order of a load".into(),
                    Some("use .weak, .relaxed, .acquire or .volatile".into()),
                );
            }
        })
    }

    fn store_order(&self, q: &Qualifiers<'_>) -> Parsed<StoreOrder> {
        let no_scope = q.scope.is_none();
        if q.mmio && q.scope != Some(Scope::Sys) {
            return self.fail("mmio is for the system scope".into(), Some("write .sys".into()));
        }
        Ok(match (q.order, q.mmio) {
            (Some("relaxed"), true) => StoreOrder::MmioRelaxed,
            (Some("release"), true) => StoreOrder::MmioRelease,
            (Some("relaxed"), false) => StoreOrder::Relaxed(self.scope(q)?),
            (Some("release"), false) => StoreOrder::Release(self.scope(q)?),
            (Some("volatile"), false) if no_scope => StoreOrder::Volatile,
            (None | Some("weak"), false) if no_scope => StoreOrder::Weak,
            (None | Some("weak" | "volatile"), false) => {
                return self.fail("a weak or volatile access takes no scope".into(), None);
            }
            _ => {
                return self.fail(
                    "this is not an order of a store".into(),
                    Some("use .weak, .relaxed, .release or .volatile".into()),
                );
            }
        })
    }

    fn rmw_order(&self, q: &Qualifiers<'_>, red: bool) -> Parsed<RmwOrder> {
        Ok(match q.order {
            None | Some("relaxed") => RmwOrder::Relaxed,
            Some("release") => RmwOrder::Release,
            Some("acquire") if !red => RmwOrder::Acquire,
            Some("acq_rel") if !red => RmwOrder::AcqRel,
            _ if red => {
                return self.fail("red is relaxed or release".into(), Some("use atom for an acquire".into()));
            }
            _ => return self.fail("this is not an order of atom".into(), None),
        })
    }

    fn check_vector(&self, q: &Qualifiers<'_>, count: usize) -> Parsed<()> {
        if q.vector.unwrap_or(1) != count {
            return self.fail(format!("{count} operands do not match the vector qualifier"), None);
        }
        Ok(())
    }

    fn load(&mut self, proxy: Proxy, words: &[&str]) -> Parsed<()> {
        let q = self.qualifiers(words, ACCESS)?;
        let (order, ty, space) = (self.load_order(&q)?, self.ty(&q)?, q.space.unwrap_or(Space::Generic));
        let dst = self.list(Self::reg)?;
        self.check_vector(&q, dst.len())?;
        self.scan.expect(",")?;
        let addr = self.address()?;
        self.push(Op::Load { order, proxy, space, ty, dst, addr })
    }

    fn store(&mut self, proxy: Proxy, words: &[&str]) -> Parsed<()> {
        let q = self.qualifiers(words, ACCESS)?;
        let (order, ty, space) = (self.store_order(&q)?, self.ty(&q)?, q.space.unwrap_or(Space::Generic));
        let addr = self.address()?;
        self.scan.expect(",")?;
        let src = self.list(Self::operand)?;
        self.check_vector(&q, src.len())?;
        self.push(Op::Store { order, proxy, space, ty, addr, src })
    }

    fn update(&mut self, proxy: Proxy, red: bool, words: &[&str]) -> Parsed<()> {
        let q = self.qualifiers(words, UPDATE)?;
        let (order, ty, space) = (
            self.rmw_order(&q, red && q.order != Some("acquire") && q.order != Some("acq_rel"))?,
            self.ty(&q)?,
            q.space.unwrap_or(Space::Generic),
        );
        let Some(op) = q.op else {
            return self.fail("this instruction needs an operation such as `.add`".into(), None);
        };
        let dst = if red {
            None
        } else {
            let dst = if self.scan.keyword("_") { None } else { Some(self.reg()?) };
            self.scan.expect(",")?;
            dst
        };
        let addr = self.address()?;
        self.scan.expect(",")?;
        let a = self.operand()?;
        let b = if op == AtomOp::Cas {
            self.scan.expect(",")?;
            Some(self.operand()?)
        } else {
            None
        };
        let scope = q.scope.unwrap_or(Scope::Gpu);
        self.push(Op::Rmw { red, order, scope, proxy, space, op, ty, dst, addr, a, b })
    }

    fn multimem(&mut self, words: &[&str]) -> Parsed<()> {
        let (Some(kind), rest) = (words.first(), words.get(1..).unwrap_or_default()) else {
            return self.fail("expected multimem.ld_reduce, multimem.st or multimem.red".into(), None);
        };
        let takes = if *kind == "st" { Takes { access: true, ..PLAIN } } else { UPDATE };
        let q = self.qualifiers(rest, takes)?;
        let ty = self.ty(&q)?;
        match *kind {
            "ld_reduce" => {
                let order = self.load_order(&q)?;
                let Some(op) = q.op else {
                    return self.fail("ld_reduce needs an operation such as `.add`".into(), None);
                };
                let dst = self.reg()?;
                self.scan.expect(",")?;
                let addr = self.address()?;
                self.push(Op::MultimemLoad { order, op, ty, dst, addr })
            }
            "st" => {
                let order = self.store_order(&q)?;
                let addr = self.address()?;
                self.scan.expect(",")?;
                let src = self.operand()?;
                self.push(Op::MultimemStore { order, ty, addr, src })
            }
            "red" => {
                let order = self.rmw_order(&q, true)?;
                let Some(op) = q.op else {
                    return self.fail("red needs an operation such as `.add`".into(), None);
                };
                let scope = q.scope.unwrap_or(Scope::Gpu);
                let addr = self.address()?;
                self.scan.expect(",")?;
                let src = self.operand()?;
                self.push(Op::MultimemRed { order, scope, op, ty, addr, src })
            }
            other => self.fail(format!("`multimem.{other}` is not known"), None),
        }
    }

    fn fence(&mut self, words: &[&str]) -> Parsed<()> {
        if let ["proxy", kinds @ ..] = words {
            let mut out = Vec::new();
            for kind in kinds {
                out.push(match *kind {
                    "alias" => ProxyFence::Alias,
                    "texture" => ProxyFence::Of(Proxy::Texture),
                    "surface" => ProxyFence::Of(Proxy::Surface),
                    "constant" => ProxyFence::Of(Proxy::Constant),
                    "generic" => ProxyFence::Of(Proxy::Generic),
                    "async" => ProxyFence::Of(Proxy::Async),
                    "tensormap" => ProxyFence::Of(Proxy::Tensormap),
                    other => {
                        return self.fail(
                            format!("`fence.proxy.{other}` is not known"),
                            Some("known are alias, async, texture, surface, constant, generic".into()),
                        );
                    }
                });
            }
            if out.is_empty() {
                return self.fail(
                    "fence.proxy needs a proxy".into(),
                    Some("for example `fence.proxy.alias`".into()),
                );
            }
            return self.push(Op::ProxyFence(out));
        }
        let (mut order, mut scope) = (None, None);
        for word in words {
            let old = match (*word, scope_of(word)) {
                (_, Some(s)) => scope.replace(s).is_some(),
                ("sc", _) => order.replace(FenceOrder::Sc).is_some(),
                ("acq_rel", _) => order.replace(FenceOrder::AcqRel).is_some(),
                ("acquire", _) => order.replace(FenceOrder::Acquire).is_some(),
                ("release", _) => order.replace(FenceOrder::Release).is_some(),
                (other, _) => {
                    let known =
                        ["sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys", "proxy"];
                    let hint = closest(other, &known).map(|k| format!("did you mean `.{k}`?"));
                    return self.fail(format!("`.{other}` is not a qualifier of fence"), hint);
                }
            };
            if old {
                return self.fail(format!("`.{word}` comes on top of another of its kind"), None);
            }
        }
        let order = order.unwrap_or(FenceOrder::AcqRel);
        match scope {
            Some(scope) => self.push(Op::Fence { order, scope }),
            None => {
                self.fail("a fence needs a scope".into(), Some("add .cta, .cluster, .gpu or .sys".into()))
            }
        }
    }

    fn membar(&mut self, words: &[&str]) -> Parsed<()> {
        let scope = match words {
            ["cta"] => Scope::Cta,
            ["gl"] => Scope::Gpu,
            ["sys"] => Scope::Sys,
            _ => return self.fail("expected membar.cta, membar.gl or membar.sys".into(), None),
        };
        self.push(Op::Fence { order: FenceOrder::Sc, scope })
    }

    fn barrier(&mut self, words: &[&str]) -> Parsed<()> {
        let words: Vec<&str> = words.iter().copied().filter(|w| *w != "cta").collect();
        let instance = words.first().and_then(|w| w.strip_prefix("instance")).and_then(|n| n.parse().ok());
        let words = if instance.is_some() { &words[1..] } else { &words[..] };
        match words {
            ["cluster", "arrive"] | ["cluster", "arrive", "release"] => self.push(Op::ClusterArrive { relaxed: false }),
            ["cluster", "arrive", "relaxed"] => self.push(Op::ClusterArrive { relaxed: true }),
            ["cluster", "wait"] | ["cluster", "wait", "acquire"] => self.push(Op::ClusterWait),
            ["warp", "sync"] => {
                let mask = self.operand()?;
                self.push(Op::WarpSync { mask })
            }
            ["sync"] | ["arrive"] => {
                let id = self.operand()?;
                let count = if self.scan.take(",") { Some(self.operand()?) } else { None };
                let kind = if words[0] == "sync" { BarKind::Sync } else { BarKind::Arrive };
                self.push(Op::Bar { kind, id, count, instance })
            }
            ["red", op, ty] => {
                let op = match (*op, *ty) {
                    ("popc", "u32") => BarRed::Popc,
                    ("and", "pred") => BarRed::And,
                    ("or", "pred") => BarRed::Or,
                    _ => {
                        let hint = "it is .popc.u32, .and.pred or .or.pred".to_owned();
                        return self.fail("bar.red has no such form".into(), Some(hint));
                    }
                };
                self.reduction(op, instance)
            }
            _ => self.fail("this is not a barrier instruction".into(), Some("known are bar.sync, bar.arrive, bar.red, bar.warp.sync, barrier.cluster.arrive, barrier.cluster.wait".into())),
        }
    }

    fn reduction(&mut self, op: BarRed, instance: Option<u32>) -> Parsed<()> {
        let dst = self.reg()?;
        self.scan.expect(",")?;
        let id = self.operand()?;
        self.scan.expect(",")?;
        let mut negated = self.scan.take("!");
        let mut second = self.operand()?;
        let mut count = None;
        if self.scan.take(",") {
            count = Some(second);
            negated = self.scan.take("!");
            second = self.operand()?;
        }
        let Operand::Reg(reg) = second else {
            return self.fail("the last operand of bar.red is a predicate".into(), None);
        };
        let kind = BarKind::Red { op, dst, pred: Guard { reg, negated } };
        self.push(Op::Bar { kind, id, count, instance })
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

fn scope_of(word: &str) -> Option<Scope> {
    match word {
        "cta" => Some(Scope::Cta),
        "cluster" => Some(Scope::Cluster),
        "gpu" => Some(Scope::Gpu),
        "sys" => Some(Scope::Sys),
        _ => None,
    }
}

fn condition(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    if scan.keyword("filter") {
        builder.program.filter = Some(asked(scan, builder)?);
        return Ok(());
    }
    let negated = scan.take("~");
    let quantifier = if scan.keyword("exists") {
        if negated { Quantifier::NotExists } else { Quantifier::Exists }
    } else if !negated && scan.keyword("forall") {
        Quantifier::ForAll
    } else {
        return Err(scan.expected("`exists`, `~exists`, `forall` or `filter`"));
    };
    let expr = asked(scan, builder)?;
    let name = if scan.keyword("as") { scan.name("a name")?.to_owned() } else { String::new() };
    builder.condition(scan, Condition { name, quantifier, expr })
}

fn asked<'a>(scan: &mut Scan<'a>, builder: &mut Builder) -> Parsed<Expr> {
    expr(scan, &mut |scan: &mut Scan<'a>| term(scan, builder))
}

fn term(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<Term> {
    if scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return constant(scan);
    }
    let at = scan.at;
    let bracket = scan.take("[");
    let mut name = scan.name("a register `P0:r1`, memory `[x]` or a number")?;
    let mut owner = None;
    if scan.take(":") {
        let found = builder.program.threads.iter().position(|t| t.name == name);
        let Some(t) = found else {
            return Err(scan.error_at(at, format!("there is no thread `{name}`"), None));
        };
        owner = Some(ThreadId(u16::try_from(t).unwrap_or(u16::MAX)));
        name = scan.name("a register or a name")?;
        if !bracket {
            let regs = &builder.program.threads[t].regs;
            let Some(r) = regs.iter().position(|r| r.name == name) else {
                let known: Vec<&str> = regs.iter().map(|r| r.name.as_str()).collect();
                let hint = closest(name, &known).map(|k| format!("did you mean `{k}`?"));
                return Err(scan.error_at(at, format!("this thread has no register `{name}`"), hint));
            };
            return Ok(Term::Reg(
                ThreadId(u16::try_from(t).unwrap_or(u16::MAX)),
                Reg(u16::try_from(r).unwrap_or(u16::MAX)),
            ));
        }
    }
    let Some(symbol) = builder.symbol(name) else {
        return Err(scan.error_at(
            at,
            format!("`{name}` is not declared"),
            Some("registers are written `P0:r1`".into()),
        ));
    };
    let object = &builder.program.objects[builder.program.symbols[symbol.index()].object.index()];
    let offset =
        if bracket && scan.take("+") { u32::try_from(scan.number()?).unwrap_or(u32::MAX) } else { 0 };
    // As much as can be compared at once: 1, 2, 4 or 8 bytes.
    let mut bytes = 1u8 << object.bytes.clamp(1, 8).ilog2();
    if bracket {
        scan.expect("]")?;
        if scan.take(".b") {
            bytes = match scan.number()? {
                8 => 1,
                16 => 2,
                32 => 4,
                64 => 8,
                n => {
                    return Err(
                        scan.error(format!("memory is compared in 8, 16, 32 or 64 bits, not {n}"), None)
                    );
                }
            };
        }
    }
    if u64::from(offset) + u64::from(bytes) > u64::from(object.bytes) {
        return Err(scan.error_at(at, format!("`{name}` has only {} bytes", object.bytes), None));
    }
    Ok(Term::Mem { symbol, offset, bytes, thread: owner })
}
