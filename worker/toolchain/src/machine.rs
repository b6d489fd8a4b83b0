//! The assembler's changes to memory instructions: the PTX of a kernel against its machine code.
//!
//! Both texts become lists of [`MemoryStep`]s: accesses to global and shared memory with their scope and width, fences, and
//! barriers of the CTA. An order of PTX becomes steps around the access, as in machine code: a release is a fence before it,
//! an acquire is an invalidation of the cache after it. Steps in the longest common subsequence are unchanged. Each other
//! step is lost, added, merged into a wider one, or moved.
//!
//! These are observations and no verdicts, because steps are compared in the order of the texts: code that the assembler
//! places elsewhere looks moved, and unrolled loops look added. Synchronisation of warps is not compared, because it has no
//! instruction where the machine keeps warps together.

use std::collections::BTreeMap;
use std::fmt;

/// Most steps of a kernel that are compared. The work grows with the product of both sides.
const MAX_STEPS: usize = 2_048;

/// Kinds of memory instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic, with or without a result.
    Update,
    /// Orders the steps before it and the steps after it.
    Fence,
    /// Invalidates the cache: later reads see no old values.
    Invalidate,
    /// All threads of the CTA meet.
    Barrier,
}

/// A memory instruction, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryStep {
    /// What it does.
    pub what: What,
    /// Whether it is in the memory of the CTA.
    pub shared: bool,
    /// Its scope; `None` for weak accesses.
    pub scope: Option<&'static str>,
    /// Its width; 0 if it has none, or if the width is not compared.
    pub bits: u32,
}

/// A change of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// It is in the PTX only.
    Lost(MemoryStep),
    /// It is in the machine code only.
    Added(MemoryStep),
    /// The machine has a wider one for several of the PTX.
    Merged(MemoryStep),
    /// It is in both, at another place among the other steps.
    Moved(MemoryStep),
}

impl fmt::Display for MemoryStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::Read => "load",
            What::Write => "store",
            What::Update => "atomic",
            What::Fence => "fence",
            What::Invalidate => "invalidation",
            What::Barrier => "barrier",
        };
        let access = matches!(self.what, What::Read | What::Write | What::Update);
        match (self.scope, access) {
            (Some(scope), _) => write!(f, "{what}.{scope}")?,
            (None, true) => write!(f, "weak {what}")?,
            (None, false) => write!(f, "{what}")?,
        }
        if self.shared {
            write!(f, " in shared memory")?;
        }
        if self.bits > 0 { write!(f, " of {} bits", self.bits) } else { Ok(()) }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Lost(step) => write!(f, "lost: {step}"),
            Change::Added(step) => write!(f, "added: {step}"),
            Change::Merged(step) => write!(f, "merged: {step}"),
            Change::Moved(step) => write!(f, "moved: {step}"),
        }
    }
}

/// Steps of the PTX of one kernel, in the order of its text.
pub fn of_ptx(text: &str) -> Vec<MemoryStep> {
    text.lines().flat_map(|line| ptx_line(line.trim())).collect()
}

/// The first word of a line after its predicate.
fn opcode(line: &str) -> &str {
    let rest = match line.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start()),
        None => line,
    };
    rest.split([' ', '\t', ';']).next().unwrap_or_default()
}

fn ptx_line(line: &str) -> Vec<MemoryStep> {
    let words: Vec<&str> = opcode(line).split('.').collect();
    let has = |word: &str| words.contains(&word);
    let shared = words.iter().any(|w| w.starts_with("shared"));
    let scope = ["cta", "cluster", "gpu", "sys"].into_iter().find(|s| has(s)).map(machine_scope);
    let strong = ["relaxed", "acquire", "release", "acq_rel", "volatile"].iter().any(|w| has(w));
    let atomic = matches!(words[0], "atom" | "red");
    let what = match words[0] {
        "ld" if !has("param") && !has("const") && !has("local") => What::Read,
        "st" if !has("param") && !has("local") => What::Write,
        _ if atomic => What::Update,
        "fence" | "membar" => {
            let scope = scope.or_else(|| has("gl").then_some("GPU"));
            return vec![MemoryStep { what: What::Fence, shared: false, scope, bits: 0 }];
        }
        "bar" | "barrier" if has("sync") && !has("warp") && !has("cluster") => {
            return vec![MemoryStep { what: What::Barrier, shared: false, scope: None, bits: 0 }];
        }
        _ => return Vec::new(),
    };
    // An atomic without words is relaxed and has the scope of the device.
    let scope = if atomic { scope.or(Some("GPU")) } else { scope.filter(|_| strong) };
    // Only the CTA reaches its shared memory: the machine has no words for the strength of such accesses.
    let scope = if shared { None } else { scope };
    let vector = words.iter().find_map(|w| w.strip_prefix('v').and_then(|n| n.parse::<u32>().ok()));
    let element = words.last().and_then(|w| w.get(1..)?.parse::<u32>().ok()).unwrap_or(0);
    let bits = if atomic { 0 } else { element.saturating_mul(vector.unwrap_or(1)) };
    let around = |what| MemoryStep { what, shared: false, scope, bits: 0 };
    let far = scope.is_some_and(|s| s != "SM");
    let mut out = Vec::new();
    if (has("release") || has("acq_rel")) && scope.is_some() {
        out.push(MemoryStep { scope: scope.map(fence_scope), ..around(What::Fence) });
    }
    out.push(MemoryStep { what, shared, scope, bits });
    if (has("acquire") || has("acq_rel")) && far {
        out.push(MemoryStep { scope: None, ..around(What::Invalidate) });
    }
    out
}

/// Words of the machine for scopes of PTX; a cluster has none of its own.
fn machine_scope(scope: &str) -> &'static str {
    match scope {
        "cta" => "SM",
        "sys" => "SYS",
        _ => "GPU",
    }
}

/// Fences have another word for the CTA.
fn fence_scope(scope: &str) -> &'static str {
    match scope {
        "SM" => "CTA",
        "SYS" => "SYS",
        _ => "GPU",
    }
}

/// Steps of machine code, in the order of its listing.
pub fn of_machine(instructions: &[String]) -> Vec<MemoryStep> {
    instructions.iter().filter_map(|line| machine_line(line)).collect()
}

fn machine_line(line: &str) -> Option<MemoryStep> {
    let words: Vec<&str> = opcode(line).split('.').collect();
    let has = |word: &str| words.contains(&word);
    let (what, shared) = match words[0] {
        "LDG" | "LD" => (What::Read, false),
        "STG" | "ST" => (What::Write, false),
        "ATOMG" | "ATOM" | "REDG" | "RED" => (What::Update, false),
        "LDS" | "LDSM" => (What::Read, true),
        "STS" | "STSM" => (What::Write, true),
        "ATOMS" => (What::Update, true),
        "MEMBAR" => (What::Fence, false),
        "CCTL" if has("IVALL") => (What::Invalidate, false),
        "BAR" if has("SYNC") => (What::Barrier, false),
        _ => return None,
    };
    let scope = ["SM", "CTA", "GPU", "SYS"].into_iter().find(|s| has(s));
    let access = matches!(what, What::Read | What::Write);
    let scope = if shared || matches!(what, What::Invalidate | What::Barrier) { None } else { scope };
    let bits = match (access, words.iter().find_map(|w| width(w))) {
        (false, _) => 0,
        (true, width) => width.unwrap_or(32),
    };
    Some(MemoryStep { what, shared, scope, bits })
}

fn width(word: &str) -> Option<u32> {
    Some(match word {
        "U8" | "S8" => 8,
        "U16" | "S16" => 16,
        "64" => 64,
        "128" => 128,
        "256" => 256,
        _ => return None,
    })
}

/// The changes of the steps of the PTX; `None` if either side has more than `MAX_STEPS`.
pub fn changes(ptx: &[MemoryStep], machine: &[MemoryStep]) -> Option<Vec<Change>> {
    if ptx.len() > MAX_STEPS || machine.len() > MAX_STEPS {
        return None;
    }
    let (mut left, mut right) = apart(ptx, machine);
    let mut out = Vec::new();
    left.retain(|step| match right.iter().position(|r| r == step) {
        Some(at) => {
            right.remove(at);
            out.push(Change::Moved(*step));
            false
        }
        None => true,
    });
    for step in right {
        // A wider access stands for as many narrower ones as it is wide.
        let narrow = |s: &MemoryStep| {
            MemoryStep { bits: 0, ..*s } == MemoryStep { bits: 0, ..step } && s.bits < step.bits
        };
        let mut missing = step.bits;
        let mut parts = Vec::new();
        for (at, s) in left.iter().enumerate().filter(|(_, s)| narrow(s)) {
            if s.bits > 0 && s.bits <= missing {
                missing -= s.bits;
                parts.push(at);
            }
        }
        if missing == 0 && parts.len() > 1 {
            for at in parts.into_iter().rev() {
                left.remove(at);
            }
            out.push(Change::Merged(step));
        } else {
            out.push(Change::Added(step));
        }
    }
    out.extend(left.into_iter().map(Change::Lost));
    out.sort_unstable();
    Some(out)
}

/// The steps of both sides that are outside of a longest common subsequence.
fn apart(a: &[MemoryStep], b: &[MemoryStep]) -> (Vec<MemoryStep>, Vec<MemoryStep>) {
    let (rows, columns) = (a.len() + 1, b.len() + 1);
    let mut longest = vec![0u16; rows * columns];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * columns + j] = if a[i] == b[j] {
                longest[(i + 1) * columns + j + 1] + 1
            } else {
                longest[(i + 1) * columns + j].max(longest[i * columns + j + 1])
            };
        }
    }
    let (mut i, mut j, mut left, mut right) = (0, 0, Vec::new(), Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * columns + j] >= longest[i * columns + j + 1] {
            left.push(a[i]);
            i += 1;
        } else {
            right.push(b[j]);
            j += 1;
        }
    }
    left.extend(&a[i..]);
    right.extend(&b[j..]);
    (left, right)
}

/// How often each change occurs, in words.
pub fn tally(changes: &[Change]) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for change in changes {
        *out.entry(change.to_string()).or_default() += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "
	ld.param.b64 	%rd1, [k_param_0];
	st.global.b32 [%rd1], %r7;
	bar.warp.sync 	-1;
	@%p1 st.release.gpu.global.b32 [%rd2], %r8;
	ld.acquire.gpu.global.b32 %r2, [%rd2];
	bar.sync 	0;
	atom.global.acq_rel.add.u32 	%r2, [%rd1], 1;
	st.shared.v2.b32 	[m], {%r2, %r3};
	ld.relaxed.cta.global.b16 	%rs1, [%rd1];
";
    const MACHINE: [&str; 11] = [
        "STG.E desc[UR4][R2.64], R5",
        "@!P0 MEMBAR.ALL.GPU",
        "STG.E.STRONG.GPU desc[UR4][R2.64], R5",
        "LDG.E.STRONG.GPU R7, desc[UR4][R2.64]",
        "CCTL.IVALL",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "MEMBAR.ALL.GPU",
        "ATOMG.E.ADD.STRONG.GPU PT, R2, desc[UR6][R2.64], R5",
        "CCTL.IVALL",
        "STS.64 [UR4], R2",
        "LDG.E.U16.STRONG.SM R7, desc[UR4][R2.64]",
    ];

    fn machine(lines: &[&str]) -> Vec<MemoryStep> {
        of_machine(&lines.iter().map(|l| (*l).to_owned()).collect::<Vec<String>>())
    }

    #[test]
    fn what_is_kept_is_no_change() {
        assert_eq!(of_ptx(PTX), machine(&MACHINE));
        assert_eq!(changes(&of_ptx(PTX), &machine(&MACHINE)).unwrap(), []);
    }

    #[test]
    fn each_change_has_its_word() {
        let words = |ptx: &str, lines: &[&str]| {
            let found = changes(&of_ptx(ptx), &machine(lines)).unwrap();
            found.iter().map(Change::to_string).collect::<Vec<String>>()
        };
        let twice = "ld.relaxed.gpu.global.b32 %r1, [%rd1];\nld.relaxed.gpu.global.b32 %r1, [%rd1];";
        let strong = "LDG.E.STRONG.GPU R0, desc[UR4][R2.64]";
        assert_eq!(words(twice, &[strong]), ["lost: load.GPU of 32 bits"]);
        assert_eq!(words("", &[strong]), ["added: load.GPU of 32 bits"]);
        let weak = "ld.global.b32 %r1, [%rd1];\nld.global.b32 %r2, [%rd1+4];";
        assert_eq!(words(weak, &["LDG.E.64 R0, desc[UR4][R2.64]"]), ["merged: weak load of 64 bits"]);
        let order = "st.relaxed.gpu.global.b32 [%rd1], %r1;\nld.global.b32 %r1, [%rd1];";
        let swapped = ["LDG.E R0, desc[UR4][R2.64]", "STG.E.STRONG.GPU desc[UR4][R2.64], R5"];
        assert_eq!(words(order, &swapped).len(), 1);
        assert!(words(order, &swapped)[0].starts_with("moved: "));
        let narrower = "st.relaxed.sys.global.b32 [%rd1], %r1;";
        let found = words(narrower, &["STG.E.STRONG.GPU desc[UR4][R2.64], R5"]);
        assert_eq!(found, ["lost: store.SYS of 32 bits", "added: store.GPU of 32 bits"]);
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let many =
            vec![MemoryStep { what: What::Barrier, shared: false, scope: None, bits: 0 }; MAX_STEPS + 1];
        assert_eq!(changes(&many, &many), None);
    }
}
