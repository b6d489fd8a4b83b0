//! Mistakes in the synchronisation of a kernel: texts of a PTX module that differ from a given one in one instruction.
//!
//! Contract: every instruction that orders, publishes or waits is deleted, weakened, narrowed, moved behind the next one that
//! touches memory or synchronises, and given another parity, count, number of bytes or barrier; a copy into shared memory is
//! given another buffer. Each as far as the line can be edited alone: what it writes is still written. Edits come in the
//! order of the text. A line is left alone if it holds more than one instruction. The assembler may refuse the result.

use moire_program::mutate::Mistake;

/// A module with one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// Its kind.
    pub(super) mistake: Mistake,
    /// Line, from 1 on.
    pub(super) line: usize,
    /// The instruction before the change.
    pub(super) was: String,
    /// The instruction after it; empty: it is gone or elsewhere.
    pub(super) now: String,
    /// The result.
    pub(super) text: String,
}

/// An instruction alone on its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextLine<'t> {
    guard: &'t str,
    name: &'t str,
    operands: Vec<&'t str>,
}

impl<'t> TextLine<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let code = line.split("//").next()?.trim().strip_suffix(';')?;
        let starts = code.starts_with(['@', '_']) || code.starts_with(|c: char| c.is_ascii_lowercase());
        if !starts || code.contains([';', ':']) && !code.contains("::") || code.starts_with("call") {
            return None;
        }
        let (guard, rest) = match code.starts_with('@') {
            true => code.split_once(char::is_whitespace)?,
            false => ("", code),
        };
        let rest = rest.trim_start();
        let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Some(Self { guard, name, operands: split(operands) })
    }

    fn print(&self) -> String {
        let guard = if self.guard.is_empty() { String::new() } else { format!("{} ", self.guard) };
        let operands = self.operands.join(", ");
        format!("{guard}{} {operands}", self.name).trim_end().to_owned() + ";"
    }

    /// With another name.
    fn named(&self, name: &str) -> String {
        TextLine { name, ..self.clone() }.print()
    }

    /// With another operand.
    fn with(&self, at: usize, operand: &str) -> String {
        let mut next = self.clone();
        next.operands[at] = operand;
        next.print()
    }

    fn words(&self) -> Vec<&'t str> {
        self.name.split('.').collect()
    }

    fn is(&self, starts: &[&str]) -> bool {
        starts
            .iter()
            .any(|s| self.name.strip_prefix(s).is_some_and(|r| r.is_empty() || r.starts_with(['.', ':'])))
    }

    /// Whether it orders, publishes or waits.
    fn synchronises(&self) -> bool {
        self.is(&[
            "bar",
            "barrier",
            "mbarrier",
            "fence",
            "membar",
            "cp.async.wait_group",
            "cp.async.wait_all",
            "cp.async.commit_group",
            "cp.async.mbarrier",
            "cp.async.bulk.commit_group",
            "cp.async.bulk.wait_group",
            "tcgen05.wait",
            "tcgen05.fence",
            "tcgen05.commit",
            "tcgen05.dealloc",
            "tcgen05.relinquish_alloc_permit",
            "wgmma.fence",
            "wgmma.commit_group",
            "wgmma.wait_group",
            "griddepcontrol.wait",
            "atom",
            "red",
            "st.async",
            "red.async",
            "tensormap.cp_fenceproxy",
        ]) || self.is(&["ld", "st", "multimem"]) && self.words().iter().any(|w| STRONG.contains(w))
    }

    /// Whether it synchronises or touches memory that threads share.
    fn matters(&self) -> bool {
        let private = ["param", "local", "const"].iter().any(|w| self.words().contains(w));
        self.synchronises()
            || !private
                && self.is(&["ld", "st", "cp", "tcgen05", "wgmma", "stmatrix", "ldmatrix", "multimem"])
    }

    /// Registers that it may write: those of its first operand, unless that is an address.
    fn writes(&self) -> Vec<&'t str> {
        let answers = self.is(&["bar.red", "barrier.red", "barrier.cta.red"]);
        let to_memory =
            !answers && self.is(&["st", "red", "cp", "fence", "membar", "bar", "barrier", "stmatrix"]);
        let first = self.operands.first().filter(|o| !o.starts_with('[') && !to_memory);
        first.map_or_else(Vec::new, |o| registers(o))
    }

    /// Registers that it names.
    fn names(&self) -> Vec<&'t str> {
        self.operands.iter().chain([&self.guard]).flat_map(|o| registers(o)).collect()
    }

    /// The place of a number among its operands, from `first` on.
    fn number(&self, first: usize) -> Option<(usize, i64)> {
        let numbers = self.operands.iter().enumerate().skip(first);
        numbers.filter_map(|(at, o)| Some((at, o.parse().ok()?))).next()
    }
}

/// Words of an access that is more than weak.
const STRONG: [&str; 5] = ["acquire", "release", "relaxed", "volatile", "mmio"];

/// The operands of a list, at its outer commas.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    out.push(text[from..].trim());
    out.retain(|o| !o.is_empty());
    out
}

fn registers(operand: &str) -> Vec<&str> {
    let words = operand.split(|c: char| !(c.is_ascii_alphanumeric() || "%_$.".contains(c)));
    words
        .filter(|w| w.starts_with(['%', '_', '$']) || w.starts_with(|c: char| c.is_ascii_alphabetic()))
        .collect()
}

/// Every edit of a module.
pub(super) fn edits(module: &str) -> Vec<Edit> {
    let lines: Vec<&str> = module.lines().collect();
    let mut out = Vec::new();
    for (at, text) in lines.iter().enumerate() {
        let Some(line) = TextLine::read(text) else { continue };
        let mut add = |mistake, now: String, changed: Vec<String>| {
            let (line, was) = (at + 1, text.trim().to_owned());
            out.push(Edit { mistake, line, was, now, text: changed.join("\n") + "\n" });
        };
        for (mistake, now) in changed(&line) {
            let mut next: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            next[at].clone_from(&now);
            add(mistake, now, next);
        }
        if let Some(to) = behind(&lines, at, &line) {
            let mut next: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            let moved = next.remove(at);
            next.insert(to, moved);
            add(Mistake::Move, format!("behind line {}", to + 1), next);
        }
    }
    out
}

/// The next line that matters, if the instruction can move behind it: nothing but instructions between them, of which none
/// jumps and none concerns its registers.
fn behind(lines: &[&str], at: usize, line: &TextLine<'_>) -> Option<usize> {
    if !line.synchronises() {
        return None;
    }
    for (to, text) in lines.iter().enumerate().skip(at + 1) {
        if text.trim().is_empty() || text.trim().starts_with("//") {
            continue;
        }
        let next = TextLine::read(text).filter(|l| !l.is(&["bra", "ret", "exit", "brx"]))?;
        let clash = next.writes().iter().any(|r| line.names().contains(r))
            || line.writes().iter().any(|r| next.names().contains(r));
        if clash {
            return None;
        }
        if next.matters() {
            return Some(to);
        }
    }
    None
}

/// Every other form of the line.
fn changed(line: &TextLine<'_>) -> Vec<(Mistake, String)> {
    let mut out = Vec::new();
    if line.synchronises() {
        out.extend(deleted(line).map(|now| (Mistake::Delete, now)));
        out.extend(weaker(line).into_iter().map(|now| (Mistake::Weaken, now)));
        out.extend(narrower(line).map(|now| (Mistake::Narrow, now)));
        out.extend(parity(line).map(|now| (Mistake::Parity, now)));
        out.extend(recounted(line));
        out.extend(barrier(line).map(|now| (Mistake::Barrier, now)));
    }
    out.extend(buffer(line).map(|now| (Mistake::Buffer, now)));
    out
}

/// Nothing, or for a wait an answer that was never waited for.
fn deleted(line: &TextLine<'_>) -> Option<String> {
    let written = line.operands.first().filter(|o| **o != "_" && !line.writes().is_empty());
    match written {
        None if line.is(&["st", "red", "atom", "ld", "multimem"]) => None,
        None => Some(String::new()),
        Some(p) if line.is(&["mbarrier.try_wait", "mbarrier.test_wait"]) => {
            let guard = if line.guard.is_empty() { String::new() } else { format!("{} ", line.guard) };
            Some(format!("{guard}setp.eq.u32 {p}, 0, 0;"))
        }
        Some(_) => None,
    }
}

/// The next weaker orders.
fn weaker(line: &TextLine<'_>) -> Vec<String> {
    let words = line.words();
    let swap = |from: &str, to: &[&str]| -> Vec<String> {
        let with = |to: &&str| line.named(&line.name.replacen(&format!(".{from}"), to, 1));
        to.iter().map(with).collect()
    };
    let scope =
        || words.iter().copied().find(|w| SCOPES.contains(w)).map(|s| format!(".{s}")).unwrap_or_default();
    if words.contains(&"acq_rel") {
        return if line.is(&["fence"]) {
            swap("acq_rel", &[".acquire", ".release"])
        } else {
            swap("acq_rel", &[".acquire", ".release", ".relaxed"])
        };
    }
    if line.is(&["fence.sc"]) {
        return swap("sc", &[".acq_rel"]);
    }
    if line.is(&["fence"]) {
        return Vec::new();
    }
    if let Some(order) = words.iter().copied().find(|w| ["acquire", "release"].contains(w)) {
        return swap(order, &[".relaxed"]);
    }
    if line.is(&["ld", "st"]) && words.contains(&"relaxed") {
        return vec![line.named(&line.name.replacen(&format!(".relaxed{}", scope()), ".weak", 1))];
    }
    if words.contains(&"volatile") {
        return swap("volatile", &[""]);
    }
    if words.contains(&"relaxed") {
        return Vec::new();
    }
    implied(line)
}

/// The relaxed form of an instruction that acquires or releases if its name says nothing.
fn implied(line: &TextLine<'_>) -> Vec<String> {
    let relaxed = |head: &str| vec![line.named(&line.name.replacen(head, &format!("{head}.relaxed.cta"), 1))];
    let heads = [
        "mbarrier.try_wait.parity",
        "mbarrier.test_wait.parity",
        "mbarrier.arrive.expect_tx",
        "mbarrier.arrive",
    ];
    if let Some(head) = heads.iter().find(|h| line.is(&[h])) {
        return relaxed(head);
    }
    if line.is(&["barrier.cluster.arrive"]) {
        return vec![line.named(&line.name.replacen("arrive", "arrive.relaxed", 1))];
    }
    if line.is(&["cp.async.bulk.wait_group"]) && !line.name.ends_with("read") {
        return vec![line.named(&format!("{}.read", line.name))];
    }
    if line.is(&["bar.sync", "barrier.sync", "barrier.cta.sync"]) && line.operands.len() == 2 {
        return vec![line.named(&line.name.replacen("sync", "arrive", 1))];
    }
    Vec::new()
}

const SCOPES: [&str; 4] = ["sys", "gpu", "cluster", "cta"];

/// The next narrower scope.
fn narrower(line: &TextLine<'_>) -> Option<String> {
    let membar = [("membar.sys", "membar.gl"), ("membar.gl", "membar.cta")];
    if let Some((_, to)) = membar.iter().find(|(from, _)| line.name == *from) {
        return Some(line.named(to));
    }
    let scoped = line.is(&["ld", "st", "atom", "red", "fence", "mbarrier", "multimem", "tensormap"]);
    let words = line.words();
    let at = words.iter().rposition(|w| SCOPES[..3].contains(w)).filter(|_| scoped)?;
    let step = SCOPES.iter().position(|s| *s == words[at])?;
    let mut next = words.clone();
    next[at] = SCOPES[step + 1];
    Some(line.named(&next.join(".")))
}

/// The other parity: of a register, computed in a block of its own.
fn parity(line: &TextLine<'_>) -> Option<String> {
    if !line.words().contains(&"parity") {
        return None;
    }
    let operand = *line.operands.get(2)?;
    if let Ok(number) = operand.parse::<u32>() {
        return Some(line.with(2, &(number ^ 1).to_string()));
    }
    let with = line.with(2, "%other_parity");
    Some(format!("{{ .reg .b32 %other_parity; xor.b32 %other_parity, {operand}, 1; {with} }}"))
}

/// One arrival, warp, group or 16 bytes less or more.
fn recounted(line: &TextLine<'_>) -> Vec<(Mistake, String)> {
    let place = match line {
        l if l.is(&["mbarrier.init"]) => l.number(1).map(|n| (Mistake::Count, n, 1)),
        l if l.is(&["mbarrier.arrive.expect_tx", "mbarrier.expect_tx", "mbarrier.complete_tx"]) => {
            l.number(1).map(|n| (Mistake::Bytes, n, 16))
        }
        l if l.is(&["mbarrier.arrive", "mbarrier.arrive_drop"]) => {
            l.number(1).map(|n| (Mistake::Count, n, 1))
        }
        l if l.is(&["bar.warp", "barrier.cluster"]) => None,
        l if l.name.contains(".red.") => l.number(2).map(|n| (Mistake::Count, n, 32)),
        l if l.is(&["bar", "barrier"]) => l.number(1).map(|n| (Mistake::Count, n, 32)),
        l if l.name.contains("wait_group") => l.number(0).map(|n| (Mistake::Count, n, 1)),
        _ => None,
    };
    let Some((mistake, (at, number), step)) = place else { return Vec::new() };
    let more = [number - step, number + step].into_iter().filter(|n| *n >= 0);
    more.map(|n| (mistake, line.with(at, &n.to_string()))).collect()
}

/// The barrier of the next number, or of the next eight bytes. Where all threads meet at one line, its number says nothing.
fn barrier(line: &TextLine<'_>) -> Option<String> {
    if line.is(&["bar", "barrier"]) && line.guard.is_empty() && line.operands.len() < 2 {
        return None;
    }
    if line.is(&["bar.sync", "bar.arrive", "bar.red", "barrier.sync", "barrier.arrive", "barrier.cta"]) {
        let (at, number) = line.number(0).filter(|(at, _)| *at <= 1)?;
        return Some(line.with(at, &((number + 1) % 16).to_string()));
    }
    let named = line.is(&["mbarrier", "cp.async.mbarrier", "tcgen05.commit"]);
    let at = line.operands.iter().position(|o| o.starts_with('[')).filter(|_| named)?;
    Some(line.with(at, &shifted(line.operands[at], 8)?))
}

/// A copy into the next buffer: as far behind as it copies, 128 bytes where it does not say.
fn buffer(line: &TextLine<'_>) -> Option<String> {
    let copy = line.is(&[
        "cp.async.ca",
        "cp.async.cg",
        "cp.async.bulk.shared::cluster",
        "cp.async.bulk.shared::cta",
        "cp.async.bulk.tensor",
    ]);
    let first = *line.operands.first().filter(|o| copy && o.starts_with('['))?;
    if line.name.contains(".global.shared") {
        return None;
    }
    let size = line.operands.get(2).and_then(|o| o.parse().ok()).unwrap_or(128);
    Some(line.with(0, &shifted(first, size)?))
}

/// An address further behind.
fn shifted(address: &str, by: i64) -> Option<String> {
    let inner = address.strip_prefix('[')?.strip_suffix(']')?;
    let (base, offset) = inner.rsplit_once('+').unwrap_or((inner, "0"));
    let offset: i64 = offset.trim().parse().ok()?;
    Some(format!("[{base}+{}]", offset + by))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Vec<String> {
        let all = edits(&format!("{line}\nst.shared.u32 [%r9], %r8;\n"));
        all.iter().filter(|e| e.line == 1).map(|e| format!("{}: {}", e.mistake.name(), e.now)).collect()
    }

    #[test]
    fn lines_are_changed_in_every_way_they_can_be() {
        for (line, forms) in [
            ("bar.sync 0;", "delete: |move: behind line 2"),
            ("@%p1 barrier.sync 3;", "delete: |barrier: @%p1 barrier.sync 4;|move: behind line 2"),
            (
                "@%p1 bar.sync 1, 64;",
                "delete: |weaken: @%p1 bar.arrive 1, 64;|count: @%p1 bar.sync 1, 32;|count: @%p1 bar.sync 1, 96;|\
                 barrier: @%p1 bar.sync 2, 64;|move: behind line 2",
            ),
            ("bar.warp.sync -1;", "delete: |move: behind line 2"),
            (
                "mbarrier.try_wait.parity.shared::cta.b64 p, [mb], %r3;",
                "delete: setp.eq.u32 p, 0, 0;|weaken: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [mb], %r3;|\
                 parity: { .reg .b32 %other_parity; xor.b32 %other_parity, %r3, 1; \
                 mbarrier.try_wait.parity.shared::cta.b64 p, [mb], %other_parity; }|\
                 barrier: mbarrier.try_wait.parity.shared::cta.b64 p, [mb+8], %r3;|move: behind line 2",
            ),
            (
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], 64;",
                "delete: |weaken: mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r1+8], 64;|\
                 bytes: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], 48;|\
                 bytes: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], 80;|\
                 barrier: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+16], 64;|move: behind line 2",
            ),
            (
                "ld.acquire.gpu.global.u32 %r4, [%rd1];",
                "weaken: ld.relaxed.gpu.global.u32 %r4, [%rd1];|narrow: ld.acquire.cluster.global.u32 %r4, [%rd1];|\
                 move: behind line 2",
            ),
            (
                "ld.acquire.gpu.global.u32 %r9, [%rd1];",
                "weaken: ld.relaxed.gpu.global.u32 %r9, [%rd1];|narrow: ld.acquire.cluster.global.u32 %r9, [%rd1];",
            ),
            ("st.volatile.global.u32 [%rd1], 1;", "weaken: st.global.u32 [%rd1], 1;|move: behind line 2"),
            (
                "cp.async.bulk.wait_group 1;",
                "delete: |weaken: cp.async.bulk.wait_group.read 1;|count: cp.async.bulk.wait_group 0;|\
                 count: cp.async.bulk.wait_group 2;|move: behind line 2",
            ),
            (
                "cp.async.ca.shared.global [%r1], [%rd1], 16;",
                "buffer: cp.async.ca.shared.global [%r1+16], [%rd1], 16;",
            ),
            (
                "fence.acq_rel.gpu;",
                "delete: |weaken: fence.acquire.gpu;|weaken: fence.release.gpu;|narrow: fence.acq_rel.cluster;|move: behind line 2",
            ),
            (
                "bar.red.popc.u32 %r6, 1, 64, p;",
                "count: bar.red.popc.u32 %r6, 1, 32, p;|count: bar.red.popc.u32 %r6, 1, 96, p;|\
                 barrier: bar.red.popc.u32 %r6, 2, 64, p;|move: behind line 2",
            ),
            ("membar.gl;", "delete: |narrow: membar.cta;|move: behind line 2"),
            ("add.u32 %r1, %r2, %r3;", ""),
            ("$L__BB0_1:", ""),
        ] {
            assert_eq!(told(line).join("|"), forms, "{line}");
        }
    }

    #[test]
    fn nothing_moves_behind_a_jump_or_a_label() {
        for next in ["bra $L;", "$L:", "}", "@%p bra $L;"] {
            let all = edits(&format!("bar.sync 0;\n{next}\nst.shared.u32 [%r1], 0;\n"));
            assert!(all.iter().all(|e| e.mistake != Mistake::Move), "{next}: {all:?}");
        }
    }
}
