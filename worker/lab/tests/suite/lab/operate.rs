//! Translates copies and tensor-core operations of the lab to lines of native text; part of [`super::translate`].

use super::read::{LabAgent, LabOp};
use super::translate::{Body, CELL, END, Kind, MAP, Missing, Place, Thing, Translator, place};
use std::collections::BTreeSet;

impl Translator<'_> {
    pub(super) fn copy(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) -> Result<(), Missing> {
        match op.verb.as_str() {
            "bcommit" => body.line("cp.async.bulk.commit_group"),
            "bwait" => {
                let read = if op.has("read") { ".read" } else { "" };
                body.line(&format!("cp.async.bulk.wait_group{read} {}", op.number(0)));
            }
            "tmfence" => {
                body.line("fence.proxy.tensormap::generic.release.gpu");
                for map in self.maps(agent) {
                    body.line(&format!("fence.proxy.tensormap::generic.acquire.gpu [{map}], {MAP}"));
                }
            }
            "cpac" => body.line("cp.async.commit_group"),
            "cpaw" if op.args.is_empty() => body.line("cp.async.wait_all"),
            "cpaw" => body.line(&format!("cp.async.wait_group {}", op.number(0))),
            "cpa" => {
                let p = place(op.arg(0), agent.cta);
                let name = self.name(&p, Kind::Shared);
                let thing = self.things.get(&name).ok_or("an unknown location")?;
                for cell in thing.of(p.part) {
                    body.line(&format!(
                        "cp.async.ca.shared::cta.global [{name}{}], [source], 4",
                        thing.offset(cell)
                    ));
                }
            }
            "tmast" => {
                let p = place(op.arg(0), agent.cta);
                let name = self.name(&p, Kind::Shared);
                let bytes = self.things.get(&name).ok_or("an unknown location")?.size();
                if p.part != (0, END) {
                    return Err("a bulk store of a part".into());
                }
                let to = if op.args.len() > 1 {
                    self.name(&place(op.arg(1), agent.cta), Kind::Shared)
                } else {
                    "sink".into()
                };
                body.line(&format!("cp.async.bulk.global.shared::cta.bulk_group [{to}], [{name}], {bytes}"));
            }
            "stas" => {
                let (p, b) = (place(op.arg(0), agent.cta), place(op.arg(1), agent.cta));
                let name = self.name(&p, Kind::Shared);
                body.line(&format!("mapa.shared::cluster.u32 ra, {name}, {}", p.cta));
                body.line(&format!("mapa.shared::cluster.u32 rb, {}, {}", b.name, b.cta));
                body.line("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [ra], 1, [rb]");
            }
            _ => self.load(agent, op, body)?,
        }
        Ok(())
    }

    /// Writes a bulk copy that completes on mbarriers.
    fn load(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) -> Result<(), Missing> {
        let to: Vec<Place> = op.arg(0).split(',').map(|x| place(x, agent.cta)).collect();
        let bars: Vec<Place> = op.arg(1).split(',').map(|x| place(x, agent.cta)).collect();
        let name = self.name(&to[0], Kind::Shared);
        let thing = self.things.get(&name).ok_or("an unknown location")?;
        let bytes = op.number(2) * CELL;
        if to[0].part != (0, END) || thing.size() != bytes || self.unit(&bars[0]) != CELL {
            return Err("a bulk copy of another size than its object".into());
        }
        let source = op
            .list("src")
            .first()
            .map_or("source".to_owned(), |s| self.name(&place(s, agent.cta), Kind::Shared));
        let mask: u32 = to.iter().map(|p| 1 << p.cta).sum();
        if let Some(map) = op.list("tmap").first() {
            let map = self.name(&place(map, agent.cta), Kind::Shared);
            let bar = &bars[0].name;
            body.line(&format!(
                "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [{name}], [{map} as tile({source}, {bytes}), {{0}}], [{bar}]"
            ));
        } else if to.len() == 1 && bars.len() == 1 && to[0].cta == bars[0].cta && to[0].cta != agent.cta {
            body.line(&format!("mapa.shared::cluster.u32 ra, {name}, {}", to[0].cta));
            body.line(&format!("mapa.shared::cluster.u32 rb, {}, {}", bars[0].name, bars[0].cta));
            body.line(&format!(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [ra], [{source}], {bytes}, [rb]"
            ));
        } else if to.len() == 1 && bars.len() == 1 && to[0].cta == agent.cta && bars[0].cta != agent.cta {
            body.line(&format!("mapa.shared::cluster.u32 rb, {}, {}", bars[0].name, bars[0].cta));
            body.line(&format!(
                "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [{name}], [tile({source}, {bytes}), {{0}}], [rb]"
            ));
        } else if to.len() > 1 && to.len() == bars.len() {
            body.line(&format!(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [{name}], [{source}], {bytes}, [{}], {mask}",
                bars[0].name
            ));
        } else if to.len() == 1 && bars.len() == 1 && to[0].cta == agent.cta && bars[0].cta == agent.cta {
            body.line(&format!(
                "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [{name}], [{source}], {bytes}, [{}]",
                bars[0].name
            ));
        } else {
            return Err("a bulk copy that reports to another CTA".into());
        }
        Ok(())
    }

    /// Lists every tensor map of the program.
    fn maps(&self, agent: &LabAgent) -> Vec<String> {
        let ops = self.program.agents.iter().flat_map(|a| &a.ops);
        let named: BTreeSet<String> = ops
            .flat_map(|o| o.list("tmap").into_iter().map(|m| self.name(&place(m, agent.cta), Kind::Shared)))
            .collect();
        named.into_iter().collect()
    }

    /// Writes warpgroup products. The lab has no `wgmma.fence` and assumes one before each product.
    pub(super) fn warpgroup(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) -> Result<(), Missing> {
        let shared = |s: &&str| self.name(&place(s, agent.cta), Kind::Shared);
        match op.verb.as_str() {
            "wgc" => body.line("wgmma.commit_group.sync.aligned"),
            "wgw" => body.line(&format!("wgmma.wait_group.sync.aligned {}", op.number(0))),
            _ => {
                let matrices: Vec<String> = op.list("s").iter().map(shared).collect();
                let (Some(b), true) = (matrices.last(), matrices.len() < 3) else {
                    return Err("a product without one or two matrices".into());
                };
                let bytes = |name: &str| self.things.get(name).map_or(64, Thing::size);
                let desc = |name: &str| format!("desc({name}, {})", bytes(name));
                let a = match op.list("r").first() {
                    Some(r) => {
                        let r = r.strip_prefix("r:").unwrap_or(r);
                        format!("{{{r}_0, {r}_1, {r}_2, {r}_3}}, {}, 1, 1, 1, 0", desc(b))
                    }
                    None => format!("{}, {}, 1, 1, 1, 0, 0", desc(&matrices[0]), desc(b)),
                };
                body.line("wgmma.fence.sync.aligned");
                let stem = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16";
                body.line(&format!("{stem} {{wd0, wd1, wd2, wd3}}, {a}"));
            }
        }
        Ok(())
    }

    pub(super) fn tensor(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) -> Result<(), Missing> {
        let group = if op.pair() { 2 } else { 1 };
        if op.key("n").is_some_and(|n| n != "1") && !matches!(op.verb.as_str(), "alloc" | "dealloc") {
            return Err("an instruction issued by several threads".into());
        }
        match op.verb.as_str() {
            "tld" | "tst" => self.moved(agent, op, body)?,
            "mma" => self.product(agent, op, group, body)?,
            "cp" => {
                let shape = op.key("shape").unwrap_or("128x256b");
                let p = place(op.arg(0), agent.cta);
                let source = op
                    .list("s")
                    .first()
                    .map_or("operand".into(), |s| self.name(&place(s, agent.cta), Kind::Shared));
                let bytes = self.things.get(&source).map_or(64, Thing::size);
                body.line(&format!(
                    "tcgen05.cp.cta_group::{group}.{shape} [{}], desc({source}, {bytes})",
                    self.name(&p, Kind::Tensor)
                ));
            }
            "shift" => body.line(&format!(
                "tcgen05.shift.cta_group::{group}.down [{}]",
                self.name(&place(op.arg(0), agent.cta), Kind::Tensor)
            )),
            "commit" => {
                let to: Vec<Place> = op.arg(0).split(',').map(|x| place(x, agent.cta)).collect();
                let mask: u32 = to.iter().map(|p| 1 << p.cta).sum();
                let stem = format!("tcgen05.commit.cta_group::{group}.mbarrier::arrive::one");
                if to.len() == 1 && to[0].cta == agent.cta {
                    body.line(&format!("{stem}.shared::cluster.b64 [{}]", to[0].name));
                } else {
                    body.line(&format!(
                        "{stem}.shared::cluster.multicast::cluster.b64 [{}], {mask}",
                        to[0].name
                    ));
                }
            }
            "alloc" => {
                let slot = if op.args.len() > 1 { op.arg(1) } else { "slot" };
                let n = op.key("n").unwrap_or("512");
                body.line(&format!(
                    "tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [{slot}], {n}"
                ));
            }
            "dealloc" => {
                let name = self.name(&place(op.arg(0), agent.cta), Kind::Tensor);
                let (_, columns) =
                    self.allocation(&name, agent.cta)?.ok_or("memory that is never allocated")?;
                body.line(&format!("tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 {name}, {columns}"));
            }
            "use" => {
                for reg in std::mem::take(&mut body.loaded) {
                    body.line(&format!("mov.b32 r4, {reg}"));
                }
            }
            "relinq" => {
                body.line(&format!("tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned"))
            }
            other => return Err(format!("the operation {other}")),
        }
        Ok(())
    }

    fn moved(&self, agent: &LabAgent, op: &LabOp, body: &mut Body) -> Result<(), Missing> {
        let p = place(op.arg(0), agent.cta);
        let name = self.name(&p, Kind::Tensor);
        let thing = self.things.get(&name).ok_or("unknown tensor memory")?;
        let lane = op.key("lane").map_or(String::new(), |l| format!("+lane {l}"));
        let cells = thing.of(p.part);
        for cell in cells {
            let column = if cell == 0 { String::new() } else { format!("+{}", CELL * cell) };
            if op.verb == "tst" {
                body.line(&format!("tcgen05.st.sync.aligned.32x32b.x1.b32 [{name}{lane}{column}], {{r2}}"));
                continue;
            }
            let reg = body.register();
            body.line(&format!("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{{reg}}}, [{name}{lane}{column}]"));
            body.loaded.push(reg);
        }
        Ok(())
    }

    fn product(&self, agent: &LabAgent, op: &LabOp, group: u32, body: &mut Body) -> Result<(), Missing> {
        let d = place(op.arg(0), agent.cta);
        let name = self.name(&d, Kind::Tensor);
        let columns = CELL * self.things.get(&name).ok_or("unknown tensor memory")?.cells();
        let m = 128 * group;
        let mut shared: Vec<String> = Vec::new();
        for s in op.list("s") {
            let name = self.name(&place(s, agent.cta), Kind::Shared);
            let bytes = self.things.get(&name).map_or(64, Thing::size);
            let desc = format!("desc({name}, {bytes})");
            if !shared.contains(&desc) {
                shared.push(desc);
            }
        }
        let mut tensor: Vec<(String, bool)> = Vec::new();
        for t in op.list("t") {
            let p = place(t, agent.cta);
            let name = self.name(&p, Kind::Tensor);
            let thing = self.things.get(&name).ok_or("unknown tensor memory")?;
            let at = thing.of(p.part).first().map_or(0, |c| c * CELL);
            let text = format!("{name}{}", if at == 0 { String::new() } else { format!("+{at}") });
            if !tensor.iter().any(|x| x.0 == text) {
                tensor.push((text, self.scales.contains(&p.name)));
            }
        }
        if shared.len() > 2 {
            return Err("a product of three operands in shared memory".into());
        }
        let spare = || "desc(operand, 64)".to_owned();
        let scaled = tensor.first().is_some_and(|t| t.1);
        let kind = op.key("kind").unwrap_or("f16");
        if scaled {
            let (a, b) = (
                shared.first().cloned().unwrap_or_else(spare),
                shared.get(1).or(shared.first()).cloned().unwrap_or_else(spare),
            );
            let (sa, sb) = (&tensor[0].0, &tensor.get(1).unwrap_or(&tensor[0]).0);
            body.line(&format!(
                "tcgen05.mma.cta_group::{group}.kind::mxf8f6f4.block_scale.block32 [{name}], {a}, {b}, idesc({m}, {columns}), [{sa}], [{sb}], 1"
            ));
            return Ok(());
        }
        let a = match tensor.first() {
            Some((t, _)) => format!("[{t}]"),
            None => shared.first().cloned().unwrap_or_else(spare),
        };
        let b = if tensor.is_empty() { shared.get(1).or(shared.first()) } else { shared.first() };
        let b = b.cloned().unwrap_or_else(spare);
        body.line(&format!(
            "tcgen05.mma.cta_group::{group}.kind::{kind} [{name}], {a}, {b}, idesc({m}, {columns}), 1"
        ));
        Ok(())
    }
}
