//! Translates a program of the lab to native litmus text.
//!
//! - An agent becomes one thread that stands for all its lanes. It arrives at an mbarrier with the number of its lanes.
//! - At a named barrier it arrives once, and the count is the number of agents that meet. They all block there, so the
//!   barrier completes exactly when it does in the lab.
//! - Agents that access tensor memory as warps become warps of the same quarter of its lanes, because the lab does not
//!   distinguish lanes.
//! - A location becomes as many cells as it has parts. A generic access touches one word of each cell, an asynchronous
//!   access touches all bytes.
//! - Each byte of a bulk copy becomes 16 bytes.

use super::read::{LabAgent, LabOp, LabProgram};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The name of something that has no translation.
pub(crate) type Missing = String;

pub(super) const CELL: u32 = 16;
/// Bytes of a tensor map.
pub(super) const MAP: u32 = 128;
pub(super) const END: u32 = 1 << 30;

/// A location as the lab writes it: `g:`, name, CTA, part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    global: bool,
    pub(super) name: String,
    pub(super) cta: u16,
    pub(super) part: (u32, u32),
}

pub(super) fn place(text: &str, cta: u16) -> Place {
    let (text, global) = text.strip_prefix("g:").map_or((text, false), |t| (t, true));
    let (base, range) = text.split_once('.').unwrap_or((text, ""));
    let (name, own) = base.split_once('@').unwrap_or((base, ""));
    let (range, other) = range.split_once('@').unwrap_or((range, ""));
    let owner = [own, other].iter().find_map(|c| c.parse().ok()).unwrap_or(cta);
    let part = range.split_once('-').and_then(|(l, h)| Some((l.parse().ok()?, h.parse().ok()?)));
    Place { global, name: name.to_owned(), cta: owner, part: part.unwrap_or((0, END)) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Shared,
    Global,
    Tensor,
    Flag,
    Slot,
    Mbarrier,
}

/// An object of the program: the starts of its parts, and its least size.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    kind: Kind,
    cuts: BTreeSet<u32>,
    bytes: u32,
}

impl Thing {
    pub(super) fn cells(&self) -> u32 {
        u32::try_from(self.cuts.len()).expect("few parts")
    }

    pub(super) fn size(&self) -> u32 {
        let each = self.bytes.div_ceil(self.cells()).next_multiple_of(CELL).max(CELL);
        each * self.cells()
    }

    /// Lists the cells of a part.
    pub(super) fn of(&self, part: (u32, u32)) -> Vec<u32> {
        let inside = |c: &(usize, &u32)| part.0 <= *c.1 && *c.1 < part.1;
        self.cuts.iter().enumerate().filter(inside).map(|c| u32::try_from(c.0).unwrap_or(0)).collect()
    }

    pub(super) fn offset(&self, cell: u32) -> String {
        let at = cell * self.size() / self.cells();
        if at == 0 { String::new() } else { format!("+{at}") }
    }
}

pub(super) struct Translator<'a> {
    pub(super) program: &'a LabProgram,
    pub(super) things: BTreeMap<String, Thing>,
    /// Objects that copies into tensor memory fill: scale factors of products.
    pub(super) scales: BTreeSet<String>,
    several: bool,
}

/// Writes the native text of a program.
pub(crate) fn translate(program: &LabProgram) -> Result<String, Missing> {
    let ctas: BTreeSet<(u16, u16)> = program.agents.iter().map(|a| (a.gpu, a.cta)).collect();
    let mut t =
        Translator { program, things: BTreeMap::new(), scales: BTreeSet::new(), several: ctas.len() > 1 };
    t.collect()?;
    t.print()
}

fn thread_name(agent: &LabAgent) -> String {
    agent.name.replace('@', "_")
}

impl Translator<'_> {
    fn key(&self, p: &Place, kind: Kind) -> String {
        let tensor = kind == Kind::Tensor;
        let clash = |k: &Thing| (k.kind == Kind::Tensor) != tensor;
        let clash = self.things.get(&p.name).is_some_and(clash);
        let plain = p.name.clone();
        if clash { format!("{plain}{}", if tensor { "t" } else { "s" }) } else { plain }
    }

    fn note(&mut self, text: &str, cta: u16, kind: Kind, bytes: u32) {
        let p = place(text, cta);
        let kind = if p.global && kind == Kind::Shared { Kind::Global } else { kind };
        let key = self.key(&p, kind);
        let cuts = BTreeSet::from([0]);
        let thing = self.things.entry(key).or_insert(Thing { kind, cuts, bytes: 0 });
        thing.bytes = thing.bytes.max(bytes);
        for cut in [p.part.0, p.part.1] {
            if cut != END && cut != 0 {
                thing.cuts.insert(cut);
            }
        }
    }

    /// Collects every object with its parts.
    fn collect(&mut self) -> Result<(), Missing> {
        for (name, _, _) in &self.program.mbarriers {
            self.note(name, 0, Kind::Mbarrier, 8);
        }
        for agent in &self.program.agents {
            for op in &agent.ops {
                self.note_op(op, agent.cta)?;
            }
        }
        self.trim();
        Ok(())
    }

    /// Removes the last cut, which is the end of the object. No part lies behind it.
    fn trim(&mut self) {
        for thing in self.things.values_mut() {
            if thing.cuts.len() > 1 {
                thing.cuts.pop_last();
            }
        }
    }

    fn note_op(&mut self, op: &LabOp, cta: u16) -> Result<(), Missing> {
        let first = |t: &mut Self, kind: Kind, bytes: u32| {
            for x in op.arg(0).split(',') {
                t.note(x, cta, kind, bytes);
            }
        };
        match op.verb.as_str() {
            "ld" | "st" if op.arg(0).starts_with("mb:") => {}
            "ld" | "st" if op.arg(0).starts_with("r:") => {}
            "ld" | "st" | "cpa" => first(self, Kind::Shared, 0),
            "stas" => first(self, Kind::Shared, 0),
            "tma" => {
                first(self, Kind::Shared, CELL * op.number(2));
                for x in op.list("src") {
                    self.note(x, cta, Kind::Shared, CELL * op.number(2));
                }
                for x in op.list("tmap") {
                    self.note(x, cta, Kind::Shared, MAP);
                }
            }
            "tmast" => {
                first(self, Kind::Shared, 0);
                for x in op.arg(1).split(',').filter(|x| !x.is_empty()) {
                    self.note(x, cta, Kind::Shared, 0);
                }
            }
            "mma" | "cp" | "tld" | "tst" | "shift" | "dealloc" | "alloc" => {
                first(self, Kind::Tensor, 0);
                for x in op.list("t") {
                    self.note(x, cta, Kind::Tensor, 0);
                }
                for x in op.list("s") {
                    self.note(x, cta, Kind::Shared, 64);
                }
                if op.verb == "alloc" {
                    self.note(if op.args.len() > 1 { op.arg(1) } else { "slot" }, cta, Kind::Slot, 4);
                }
                if op.verb == "cp" {
                    self.scales.insert(place(op.arg(0), cta).name);
                }
            }
            "wgmma" => {
                for x in op.list("s") {
                    self.note(x, cta, Kind::Shared, 64);
                }
            }
            "stf" | "red" | "atom" | "await" => first(self, Kind::Flag, 4),
            _ => {}
        }
        Ok(())
    }

    /// Finds the address and columns of the tensor memory that a CTA allocates under a name. The register of that name
    /// holds the address.
    pub(super) fn allocation(&self, name: &str, cta: u16) -> Result<Option<(u32, u32)>, Missing> {
        let mut found: BTreeMap<u16, (u32, u32)> = BTreeMap::new();
        let allocates = |a: &&LabAgent| a.ops.iter().any(|o| o.verb == "alloc");
        for agent in self.program.agents.iter().filter(allocates) {
            let fellows: Vec<&LabAgent> =
                self.program.agents.iter().filter(allocates).filter(|a| a.cta == agent.cta).collect();
            let rank = fellows.iter().position(|a| a.name == agent.name).unwrap_or(0);
            for (nth, op) in agent.ops.iter().filter(|o| o.verb == "alloc").enumerate() {
                let slot = if op.pair() { nth } else { nth * fellows.len() + rank };
                let address = 1_024 * u32::try_from(slot + 1).expect("few allocations");
                let columns = op.key("n").map_or(512, |n| n.parse().unwrap_or(512));
                let p = place(op.arg(0), agent.cta);
                if self.key(&p, Kind::Tensor) == name && found.insert(agent.cta, (address, columns)).is_some()
                {
                    return Err("one name allocated twice".into());
                }
            }
        }
        let any = found.get(&cta).or(found.values().next()).copied();
        let cells = self.things.get(name).map_or(0, Thing::cells);
        if any.is_some_and(|(_, columns)| columns < CELL * cells) {
            return Err("an allocation with many parts".into());
        }
        Ok(any)
    }

    fn declare(&self, out: &mut String) {
        // The source of a bulk store fits into each of these.
        let shared = self.things.values().filter(|t| t.kind == Kind::Shared);
        let largest = shared.map(Thing::size).max().unwrap_or(0);
        for (name, thing) in &self.things {
            if thing.kind == Kind::Tensor && self.allocation(name, 0) != Ok(None) {
                continue;
            }
            let _ = match thing.kind {
                Kind::Tensor => {
                    writeln!(out, ".tmem {name}[{}];", (CELL * thing.cells()).next_multiple_of(32))
                }
                Kind::Shared => writeln!(out, ".shared .b8 {name}[{}];", thing.size()),
                Kind::Global => writeln!(out, ".global .b8 {name}[{}];", thing.size().max(largest)),
                Kind::Flag => writeln!(out, ".global .b32 {name};"),
                Kind::Slot => writeln!(out, ".shared .b32 {name};"),
                Kind::Mbarrier => writeln!(out, ".shared .b64 {name};"),
            };
        }
        let plain = |v: &str| self.program.agents.iter().any(|a| a.ops.iter().any(|o| o.verb == v));
        if self.copies_from_nowhere() {
            out.push_str(".global .b8 source[1024];\n");
        }
        if plain("mma") || plain("cp") || plain("wgmma") {
            out.push_str(".shared .b8 operand[64];\n");
        }
    }

    fn copies_from_nowhere(&self) -> bool {
        let bare = |o: &LabOp| (o.verb == "tma" && o.key("src").is_none()) || o.verb == "cpa";
        self.program.agents.iter().any(|a| a.ops.iter().any(bare))
    }

    /// Places each agent: its warp and lane.
    fn places(&self) -> Result<Vec<(u16, Option<u16>)>, Missing> {
        let agents = &self.program.agents;
        let mut out: Vec<Option<(u16, Option<u16>)>> = vec![None; agents.len()];
        let mut next: BTreeMap<(u16, u16), u16> = BTreeMap::new();
        for g in self.program.groups.iter().filter(|g| g.warp) {
            let mut warp = None;
            for (lane, name) in (0u16..).zip(&g.members) {
                let at = agents.iter().position(|a| a.name == *name).ok_or("a group without its agent")?;
                if out[at].is_some() {
                    continue;
                }
                let free = next.entry((agents[at].gpu, agents[at].cta)).or_default();
                let warp = *warp.get_or_insert_with(|| std::mem::replace(free, *free + 4));
                out[at] = Some((warp, Some(lane)));
            }
        }
        for (at, a) in agents.iter().enumerate() {
            if out[at].is_none() {
                let free = next.entry((a.gpu, a.cta)).or_default();
                let lanes = a.ops.iter().any(|o| o.key("lane").is_some());
                let warp = if lanes { a.warp } else { std::mem::replace(free, *free + 4) };
                out[at] = Some((warp, None));
            }
        }
        Ok(out.into_iter().flatten().collect())
    }

    fn print(&self) -> Result<String, Missing> {
        let p = self.program;
        let mut out = format!(
            "moire \"{}\"\n",
            [p.name.as_str(), &p.half].join("-").replace(['"', '/', ' ', ','], "-")
        );
        if !p.meta.is_empty() {
            out.push_str(".launch;\n");
        }
        self.declare(&mut out);
        let started = |v: &str| p.meta.iter().any(|m| m == v);
        let valid: Vec<_> = p.mbarriers.iter().filter(|b| b.1).collect();
        let meets = if self.several { !valid.is_empty() || !started("starts") } else { !valid.is_empty() };
        let meets = meets && p.agents.len() > 1;
        let mut first = BTreeSet::new();
        for (agent, (warp, lane)) in p.agents.iter().zip(self.places()?) {
            let lane = lane.map_or(String::new(), |l| format!(", lane {l}"));
            let place = format!("gpu {}, cta {}, warp {warp}{lane}", agent.gpu, agent.cta);
            let _ = writeln!(out, "{} ({place}) {{", thread_name(agent));
            let mut body =
                Body { out: String::new(), labels: 0, registers: 0, loaded: Vec::new(), ends: Vec::new() };
            for (name, _) in self.things.iter().filter(|t| t.1.kind == Kind::Tensor) {
                if let Some((address, _)) = self.allocation(name, agent.cta)? {
                    body.line(&format!("mov.u32 {name}, {address}"));
                }
            }
            if first.insert((agent.gpu, agent.cta)) {
                let own = |b: &&&(String, bool, u32)| b.0.ends_with(&format!("@{}", agent.cta));
                for b in valid.iter().filter(own) {
                    body.line(&format!("mbarrier.init.shared::cta.b64 [{}], {}", place_name(&b.0), b.2));
                }
                // The init is published to every proxy, so that the reading of asynchronous arrivals does not matter.
                if !valid.is_empty() {
                    body.line("fence.mbarrier_init.release.cluster");
                }
            }
            if meets && self.several {
                body.line("barrier.cluster.arrive.relaxed");
                body.line("barrier.cluster.wait");
            } else if meets {
                body.line("bar.sync 15");
            }
            for (i, op) in agent.ops.iter().enumerate() {
                body.label(i);
                self.op(agent, op, i, &mut body)?;
            }
            body.label(agent.ops.len());
            if !p.meta.is_empty() && !started("exits") {
                body.line("barrier.cluster.arrive");
                body.line("barrier.cluster.wait");
            }
            out.push_str(&body.out);
            out.push_str("}\n");
        }
        Ok(out)
    }
}

fn place_name(text: &str) -> String {
    place(text, 0).name
}

/// Lines of a thread.
pub(super) struct Body {
    out: String,
    labels: usize,
    registers: usize,
    /// Registers loaded from tensor memory and not read yet.
    pub(super) loaded: Vec<String>,
    /// Labels to set before an operation.
    ends: Vec<(usize, String)>,
}

impl Body {
    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text};");
    }

    fn label(&mut self, at: usize) {
        for (_, name) in self.ends.iter().filter(|e| e.0 == at) {
            let _ = writeln!(self.out, "{name}:");
        }
    }

    /// Declares a new register to load into.
    pub(super) fn register(&mut self) -> String {
        self.registers += 1;
        format!("d{}", self.registers)
    }

    fn fresh(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }
}

fn scope(op: &LabOp, default: &'static str) -> &'static str {
    ["cta", "cluster", "gpu", "sys"].into_iter().find(|s| op.has(s)).unwrap_or(default)
}

impl Translator<'_> {
    fn op(&self, agent: &LabAgent, op: &LabOp, at: usize, body: &mut Body) -> Result<(), Missing> {
        match op.verb.as_str() {
            "init" => {
                body.line(&format!("mbarrier.init.shared::cta.b64 [{}], {}", self.own(agent, op)?, op.arg(1)))
            }
            "inval" => body.line(&format!("mbarrier.inval.shared::cta.b64 [{}]", self.own(agent, op)?)),
            "minit" => body.line("fence.mbarrier_init.release.cluster"),
            "arrive" | "expect" => self.arrive(agent, op, body),
            "wait" => {
                let order = if op.has("rlx") { "relaxed" } else { "acquire" };
                let label = body.fresh();
                let _ = writeln!(body.out, "{label}:");
                let scope = scope(op, "cta");
                let name = self.own(agent, op)?;
                body.line(&format!(
                    "mbarrier.try_wait.parity.{order}.{scope}.shared::cta.b64 p, [{name}], {}",
                    op.arg(1)
                ));
                body.line(&format!("@!p bra {label}"));
            }
            "bar" | "bara" | "wsync" => self.barrier(agent, op, body)?,
            "csync" => {
                body.line(if op.has("rlx") {
                    "barrier.cluster.arrive.relaxed"
                } else {
                    "barrier.cluster.arrive"
                });
                body.line("barrier.cluster.wait");
            }
            "fb" => body.line("tcgen05.fence::before_thread_sync"),
            "fa" => body.line("tcgen05.fence::after_thread_sync"),
            "wld" => body.line("tcgen05.wait::ld.sync.aligned"),
            "wst" => body.line("tcgen05.wait::st.sync.aligned"),
            "pfence" => body.line("fence.proxy.async"),
            "fence" => body.line(&format!("fence.acq_rel.{}", scope(op, "gpu"))),
            "ld" | "st" => self.generic(agent, op, body)?,
            "stf" | "red" | "atom" | "await" => self.flag(op, body),
            "skip" => {
                let label = format!("S{at}");
                body.line(&format!("setp.ne.u32 p, {}, {}", op.arg(0), op.arg(1)));
                body.line(&format!("@p bra {label}"));
                body.ends.push((at + 1 + op.number(2) as usize, label));
            }
            "tma" | "tmast" | "stas" | "cpa" | "cpac" | "cpaw" | "bcommit" | "bwait" | "tmfence" => {
                self.copy(agent, op, body)?
            }
            "wgmma" | "wgc" | "wgw" => self.warpgroup(agent, op, body)?,
            _ => self.tensor(agent, op, body)?,
        }
        Ok(())
    }

    /// Names an mbarrier of the agent's own CTA.
    fn own(&self, agent: &LabAgent, op: &LabOp) -> Result<String, Missing> {
        let p = place(op.arg(0), agent.cta);
        if p.cta == agent.cta { Ok(p.name) } else { Err("a wait at a remote mbarrier".into()) }
    }

    fn arrive(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) {
        let p = place(op.arg(0), agent.cta);
        let order = if op.has("rlx") { "relaxed" } else { "release" };
        let order = format!("{order}.{}", scope(op, "cta"));
        let count =
            if op.has("one") { 1 } else { op.key("n").map_or(agent.size, |n| n.parse().unwrap_or(1)) };
        let expects = op.verb == "expect";
        let count = if expects && op.key("n").is_none() { 1 } else { count };
        let (space, name) = if p.cta == agent.cta {
            ("shared::cta", p.name.clone())
        } else {
            body.line(&format!("mapa.shared::cluster.u32 ra, {}, {}", p.name, p.cta));
            (if op.key("local").is_some() { "shared::cta" } else { "shared::cluster" }, "ra".to_owned())
        };
        let tail = match (expects, count) {
            (true, _) => format!(", {}", op.number(1) * self.unit(&p)),
            (false, 1) => String::new(),
            (false, n) => format!(", {n}"),
        };
        let form = if expects { "arrive.expect_tx" } else { "arrive" };
        body.line(&format!("mbarrier.{form}.{order}.{space}.b64 _, [{name}]{tail}"));
    }

    /// Returns the number of transaction bytes for one byte of the lab. Bulk copies need multiples of 16.
    pub(super) fn unit(&self, p: &Place) -> u32 {
        let remote =
            |o: &LabOp| o.verb == "stas" && o.arg(1).split(',').any(|b| place(b, p.cta).name == p.name);
        if self.program.agents.iter().any(|a| a.ops.iter().any(remote)) { 1 } else { CELL }
    }

    fn barrier(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) -> Result<(), Missing> {
        let warp = op.verb == "wsync";
        let meets = |g: &&super::read::Group| {
            g.warp == warp && g.cta == agent.cta && g.id == op.arg(0) && g.total == op.number(1)
        };
        let group = self.program.groups.iter().find(meets).ok_or("a barrier without its group")?;
        if group.total != group.size || op.verb == "bara" {
            return Err("a barrier whose count is not that of its members".into());
        }
        let members = group.members.len();
        if warp {
            body.line(&format!("bar.warp.sync {}", (1u32 << members) - 1));
        } else {
            body.line(&format!("bar.sync {}, {members}", op.arg(0)));
        }
        Ok(())
    }

    fn generic(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) -> Result<(), Missing> {
        let arg = op.arg(0);
        if let Some(name) = arg.strip_prefix("r:") {
            body.line(&match op.verb.as_str() {
                "st" => format!("mov.b32 {name}_0, 1"),
                _ => format!("mov.b32 r0, {name}_0"),
            });
            return Ok(());
        }
        if let Some(b) = arg.strip_prefix("mb:") {
            let name = place_name(b);
            body.line(&match op.verb.as_str() {
                "st" => format!("st.weak.shared::cta.b64 [{name}], 1"),
                _ => format!("ld.weak.shared::cta.b64 r0, [{name}]"),
            });
            return Ok(());
        }
        let p = place(arg, agent.cta);
        let thing = self.things.get(&self.name(&p, Kind::Shared)).ok_or("an unknown location")?;
        let name = self.name(&p, Kind::Shared);
        let (space, base) = if thing.kind == Kind::Global {
            ("global", name)
        } else if p.cta == agent.cta {
            ("shared::cta", name)
        } else {
            body.line(&format!("mapa.shared::cluster.u32 ra, {name}, {}", p.cta));
            ("shared::cluster", "ra".into())
        };
        for cell in thing.of(p.part) {
            let at = format!("[{base}{}]", thing.offset(cell));
            body.line(&match op.verb.as_str() {
                "st" => format!("st.weak.{space}.b32 {at}, 1"),
                _ => format!("ld.weak.{space}.b32 r0, {at}"),
            });
        }
        Ok(())
    }

    /// Returns the name of an object.
    pub(super) fn name(&self, p: &Place, kind: Kind) -> String {
        self.key(p, kind)
    }

    fn flag(&self, op: &LabOp, body: &mut Body) {
        let (name, scope) = (op.arg(0), scope(op, "gpu"));
        let (release, acquire) = (
            if op.has("rel") { "release" } else { "relaxed" },
            if op.has("acq") { "acquire" } else { "relaxed" },
        );
        match op.verb.as_str() {
            "stf" => body.line(&format!("st.{release}.{scope}.global.u32 [{name}], {}", op.arg(1))),
            "red" => body.line(&format!("red.{release}.{scope}.global.add.u32 [{name}], {}", op.arg(1))),
            "atom" => {
                let order = match (op.has("rel"), op.has("acq")) {
                    (true, true) => "acq_rel",
                    (true, false) => "release",
                    (false, true) => "acquire",
                    (false, false) => "relaxed",
                };
                body.line(&format!("atom.{order}.{scope}.global.add.u32 r, [{name}], {}", op.arg(1)));
            }
            _ => {
                let label = body.fresh();
                let _ = writeln!(body.out, "{label}:");
                body.line(&format!("ld.{acquire}.{scope}.global.u32 r1, [{name}]"));
                let opposite = match op.arg(1) {
                    "eq" => "ne",
                    "ge" => "lt",
                    _ => "eq",
                };
                body.line(&format!("setp.{opposite}.u32 p, r1, {}", op.arg(2)));
                body.line(&format!("@p bra {label}"));
            }
        }
    }
}
