//! What the assembler does to memory instructions: those of the PTX of a kernel beside those of its machine code.
//!
//! Both texts become *steps*: accesses to global and shared memory with their scope and width, fences, barriers of the CTA.
//! An order of PTX is steps around the access, as the machine has them: release a fence before it, acquire an
//! invalidation of the cache behind it. The longest common subsequence stays as it was; what is left on one side is
//! lost, added, merged into a wider one, or stands elsewhere. Steps are compared in the order of the texts: code that the
//! assembler places elsewhere looks moved, and loops that it unrolls look added. So these are observations and no verdicts.
//! Synchronisation of warps has no instruction where the machine keeps them together, and is not compared.

use std::collections::BTreeMap;
use std::fmt;

/// Steps of one kernel that are compared; the work grows with the product of both sides.
const STEPS: usize = 2_048;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic, with or without a result.
    Update,
    /// What is before comes before what is behind.
    Fence,
    /// What was read before is not believed any more.
    Invalidate,
    /// All threads of the CTA meet.
    Barrier,
}

/// A memory instruction, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// What it does.
    pub what: What,
    /// In the memory of the CTA.
    pub shared: bool,
    /// Whom it reaches; none for weak accesses.
    pub scope: Option<&'static str>,
    /// Width; 0 where there is none, or where it is not compared.
    pub bits: u32,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// It is in the PTX only.
    Lost(Step),
    /// It is in the machine code only.
    Added(Step),
    /// The machine has a wider one for several of the PTX.
    Merged(Step),
    /// It is in both, in another place among the others.
    Moved(Step),
}

impl fmt::Display for Step {
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
pub fn of_ptx(text: &str) -> Vec<Step> {
    text.lines().flat_map(|line| ptx_line(line.trim())).collect()
}

/// The first word, a predicate in front of it left out.
fn opcode(line: &str) -> &str {
    let rest = match line.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start()),
        None => line,
    };
    rest.split([' ', '\t', ';']).next().unwrap_or_default()
}

fn ptx_line(line: &str) -> Vec<Step> {
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
            return vec![Step { what: What::Fence, shared: false, scope, bits: 0 }];
        }
        "bar" | "barrier" if has("sync") && !has("warp") && !has("cluster") => {
            return vec![Step { what: What::Barrier, shared: false, scope: None, bits: 0 }];
        }
        _ => return Vec::new(),
    };
    // Atomics are relaxed and reach the device where they do not say otherwise.
    let scope = if atomic { scope.or(Some("GPU")) } else { scope.filter(|_| strong) };
    // The memory of the CTA is nobody else's: the machine has no words for its strength.
    let scope = if shared { None } else { scope };
    let vector = words.iter().find_map(|w| w.strip_prefix('v').and_then(|n| n.parse::<u32>().ok()));
    let element = words.last().and_then(|w| w.get(1..)?.parse::<u32>().ok()).unwrap_or(0);
    let bits = if atomic { 0 } else { element.saturating_mul(vector.unwrap_or(1)) };
    let around = |what| Step { what, shared: false, scope, bits: 0 };
    let far = scope.is_some_and(|s| s != "SM");
    let mut out = Vec::new();
    if (has("release") || has("acq_rel")) && scope.is_some() {
        out.push(Step { scope: scope.map(fence_scope), ..around(What::Fence) });
    }
    out.push(Step { what, shared, scope, bits });
    if (has("acquire") || has("acq_rel")) && far {
        out.push(Step { scope: None, ..around(What::Invalidate) });
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
pub fn of_machine(instructions: &[String]) -> Vec<Step> {
    instructions.iter().filter_map(|line| machine_line(line)).collect()
}

fn machine_line(line: &str) -> Option<Step> {
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
    Some(Step { what, shared, scope, bits })
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

/// What became of the steps of the PTX; none where either side has more than are compared.
pub fn changes(ptx: &[Step], machine: &[Step]) -> Option<Vec<Change>> {
    if ptx.len() > STEPS || machine.len() > STEPS {
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
        let narrow = |s: &Step| Step { bits: 0, ..*s } == Step { bits: 0, ..step } && s.bits < step.bits;
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

/// What is left of both sides without a longest common subsequence.
fn apart(a: &[Step], b: &[Step]) -> (Vec<Step>, Vec<Step>) {
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

    fn machine(lines: &[&str]) -> Vec<Step> {
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
        let many = vec![Step { what: What::Barrier, shared: false, scope: None, bits: 0 }; STEPS + 1];
        assert_eq!(changes(&many, &many), None);
    }
}
