//! The launch that a verdict is about: its shape and parameters with the origin of each, what is taken for granted, and how
//! much of the kernel it runs. In words and as JSON.

use moire_kernel::specialise::{Class, Coverage, Loop, Missed};
use serde_json::{Value, json};

/// Most lines of one kind in text; JSON has all.
const LISTED: usize = 12;
/// Behind what only a smaller launch reaches.
const BUT: &str = " but by a smaller launch that is clean";

/// Where a part of a launch comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Given,
    /// A directive or a comment of the file.
    File(&'static str),
    /// Assumed as large as this directive of the file allows.
    Most(&'static str),
    /// Assumed; nothing says it.
    Assumed,
}

impl Origin {
    fn word(&self) -> String {
        match self {
            Origin::Given => "given".to_owned(),
            Origin::File(what) => (*what).to_owned(),
            Origin::Most(what) => format!("assumed: all that {what} allows"),
            Origin::Assumed => "assumed".to_owned(),
        }
    }

    fn is_assumed(&self) -> bool {
        matches!(self, Origin::Most(_) | Origin::Assumed)
    }
}

/// A size along three axes, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Along x, y, z.
    pub size: [u32; 3],
    /// Who says so.
    pub origin: Origin,
}

impl Size {
    fn text(&self) -> String {
        format!("{} ({})", shape(self.size), self.origin.word())
    }

    fn json(&self) -> Value {
        json!({"size": self.size, "origin": self.origin.word()})
    }
}

/// The value of a parameter, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its place in the list of parameters.
    pub index: u16,
    /// First byte of the field, of a structure.
    pub at: Option<u32>,
    /// Its name in the module.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// Who says so.
    pub origin: Origin,
    /// What its value decides first, if it was chosen.
    pub decides: Option<String>,
}

impl Argument {
    /// As the option takes it.
    fn place(&self) -> String {
        self.at.map_or(self.index.to_string(), |at| format!("{}+{at}", self.index))
    }

    fn text(&self) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" ({})", tail(&self.name)) };
        format!("parameter {}{name} = {} ({})", self.place(), self.value, self.origin.word())
    }
}

/// Something that the verdict takes for granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// 1-based; 0 when it is about no single line.
    pub line: u32,
    /// One sentence.
    pub text: String,
}

/// A program that explores both ways of every decision that depends on data. It has every run on any data, and perhaps
/// runs that no data leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyData {
    /// The first thing that depends on data, with its line.
    pub why: String,
    /// Verdicts of that program that are not reported as findings, because perhaps no data leads to them.
    pub possible: Vec<String>,
}

impl AnyData {
    pub(super) fn new(why: String) -> Self {
        AnyData { why, possible: Vec::new() }
    }

    fn text(&self) -> String {
        match self.possible.as_slice() {
            [] => format!("    for any data: {}; both ways are explored\n", self.why),
            all => format!(
                "    could happen, if data decides so: {}; both ways are explored, also those to which no data leads\n",
                all.join(", ")
            ),
        }
    }

    fn json(&self) -> Value {
        json!({"depends": self.why, "possible": self.possible})
    }
}

/// A launch, and what is known about it.
#[derive(Clone, Debug)]
pub struct Launched {
    /// The file.
    pub file: String,
    /// The kernel.
    pub entry: String,
    /// The command has to name the kernel, because the module has several.
    pub several: bool,
    /// CTAs or tile blocks of the grid.
    pub grid: Size,
    /// CTAs of a cluster; a tile block has no clusters.
    pub cluster: Option<Size>,
    /// Threads of a CTA; a tile block has none.
    pub block: Option<Size>,
    /// Values of parameters, by their places in the list.
    pub params: Vec<Argument>,
    /// The reason that no second cluster is assumed.
    pub alone: Option<String>,
    /// Smaller launches that were judged before, by their commands, and their verdicts.
    pub smaller: Vec<(String, Vec<String>)>,
    /// By line.
    pub taken: Vec<Taken>,
    /// Clusters by program: those that run one together stand together, those that run the same apart stand in one list.
    pub parts: Vec<Vec<Vec<u32>>>,
    /// Nothing where the kernel is not run ahead.
    pub coverage: Option<Coverage>,
    /// The command of the smaller launch that the coverage is of, where this one could not be run ahead.
    pub coverage_of: Option<String>,
    /// What synchronises and runs neither in the launch of the coverage nor in a smaller one that is clean.
    pub uncovered: Vec<Missed>,
    /// The launch was run ahead for any data.
    pub any_data: Option<AnyData>,
}

impl Launched {
    /// The command that repeats the verdict with nothing assumed. `more` stands behind the file.
    pub fn command(&self, more: &str) -> String {
        let mut out = format!("moire check {}", quoted(&self.file));
        if self.several {
            out += &format!(" --entry {}", quoted(&self.entry));
        }
        out += &format!(" --grid {}", shape(self.grid.size));
        for (name, size) in [("cluster", &self.cluster), ("block", &self.block)] {
            if let Some(size) = size.as_ref().filter(|s| !matches!(s.origin, Origin::File(_))) {
                out += &format!(" --{name} {}", shape(size.size));
            }
        }
        for param in &self.params {
            out += &format!(" --param {}={}", param.place(), param.value);
        }
        out + more
    }

    /// Whether something about it is assumed.
    fn assumes(&self) -> bool {
        let sizes = [Some(&self.grid), self.cluster.as_ref(), self.block.as_ref()];
        let origins = sizes.into_iter().flatten().map(|s| &s.origin);
        origins.chain(self.params.iter().map(|p| &p.origin)).any(Origin::is_assumed)
    }

    /// The launch as text.
    pub fn text(&self, more: &str) -> String {
        let mut words = vec![format!("grid {}", self.grid.text())];
        words.extend(self.cluster.iter().map(|s| format!("cluster {}", s.text())));
        words.extend(self.block.iter().map(|s| format!("block {}", s.text())));
        words.extend(self.params.iter().map(Argument::text));
        let mut out = format!("  launch of {}: {}\n", self.entry, words.join(", "));
        if self.assumes() {
            out += &format!("    repeat with: {}\n", self.command(more));
        }
        let one = if self.cluster.is_some() { "one cluster" } else { "one tile block" };
        out.extend(self.alone.iter().map(|why| format!("    {one} only: {why}\n")));
        let chosen = self.params.iter().filter(|p| p.origin == Origin::Assumed);
        for (param, decides) in chosen.filter_map(|p| Some((p, p.decides.as_ref()?))) {
            out += &format!(
                "    assumed: parameter {} = {}, which decides {decides}\n",
                param.place(),
                param.value
            );
        }
        for (command, verdicts) in &self.smaller {
            out += &format!("    {}: {command}\n", verdicts.join(", "));
        }
        let loops = self.coverage.iter().flat_map(|c| &c.loops).filter(|l| l.synchronises && !l.waits);
        let loops: Vec<String> = loops.map(trips).collect();
        if !loops.is_empty() {
            out += &format!("    trip counts: {}\n", brief(&loops));
        }
        for clusters in self.parts.iter().filter(|p| p.len() > 1) {
            out += &format!("    {}\n", alike(clusters));
        }
        out.extend(self.any_data.iter().map(AnyData::text));
        for Taken { line, text } in self.taken.iter().take(LISTED) {
            let place = if *line > 0 { format!("line {line}: ") } else { String::new() };
            out += &format!("    taken for granted: {place}{text}\n");
        }
        let more = self.taken.len().saturating_sub(LISTED);
        if more > 0 {
            out += &format!("    taken for granted: {more} more, see --format json\n");
        }
        out
    }

    /// Takes over the coverage of a smaller launch, if this one could not be run ahead.
    pub fn covers(&mut self, smaller: Option<&Launched>, more: &str) {
        if let Some(smaller) = smaller {
            (self.coverage, self.coverage_of) = (smaller.coverage.clone(), Some(smaller.command(more)));
        }
    }

    /// What synchronises and does not run, in a sentence with the line of the first.
    pub fn left_out(&self) -> Option<(String, u32)> {
        let line = self.uncovered.first()?.line;
        let all: Vec<String> =
            self.uncovered.iter().map(|m| format!("{} (line {})", m.text, m.line)).collect();
        let what = Class::Synchronises.plural();
        Some((format!("{} {what} run in no launch that was judged: {}", all.len(), brief(&all)), line))
    }

    /// What of the kernel the launch does not run, as text.
    pub fn uncovered(&self) -> String {
        let Some(coverage) = &self.coverage else { return String::new() };
        let counts = Class::ALL.into_iter().filter_map(|class| {
            let (reached, all) = coverage.counts.get(&class)?;
            Some(format!("{reached} of {all} {}", class.plural()))
        });
        let counts: Vec<String> = counts.collect();
        if counts.is_empty() {
            return String::new();
        }
        let of = self.coverage_of.as_ref().map_or(String::new(), |command| format!(" by {command}"));
        let mut out = format!("  coverage: {} reached{of}\n", counts.join(", "));
        for class in Class::ALL {
            let missed = coverage.missed.iter().filter(|m| m.class == class);
            let missed: Vec<String> = missed.map(|m| format!("{} (line {})", m.text, m.line)).collect();
            if !missed.is_empty() {
                let but = if class == Class::Synchronises && self.uncovered.is_empty() { BUT } else { "" };
                out += &format!("    {} never reached{but}: {}\n", class.plural(), brief(&missed));
            }
        }
        let once: Vec<String> = coverage.once().map(|l| format!("lines {} to {}", l.first, l.last)).collect();
        if !once.is_empty() {
            out += &format!("    loops around synchronisation that no warp runs twice: {}\n", brief(&once));
        }
        if coverage.awaited > 0 && coverage.wrapped == 0 {
            out += "    no ring wraps: no mbarrier is waited for in a second phase\n";
        }
        out
    }

    /// The launch as JSON.
    pub fn json(&self, more: &str) -> Value {
        let param = |p: &Argument| {
            json!({"index": p.index, "at": p.at, "name": p.name, "value": p.value,
                "origin": p.origin.word(), "decides": p.decides})
        };
        let one = |l: &Loop| {
            json!({"first": l.first, "last": l.last, "passes": [l.passes.0, l.passes.1], "waits": l.waits,
                "synchronises": l.synchronises})
        };
        let loops: Vec<Value> = self.coverage.iter().flat_map(|c| &c.loops).map(one).collect();
        let taken: Vec<Value> = self.taken.iter().map(|t| json!({"line": t.line, "text": t.text})).collect();
        json!({
            "entry": self.entry,
            "grid": self.grid.json(),
            "cluster": self.cluster.as_ref().map(Size::json),
            "block": self.block.as_ref().map(Size::json),
            "parameters": self.params.iter().map(param).collect::<Vec<_>>(),
            "assumed": self.assumes(),
            "one_cluster": self.alone,
            "smaller": self.smaller.iter().map(|(c, v)| json!({"command": c, "verdicts": v})).collect::<Vec<_>>(),
            "command": self.command(more),
            "loops": loops,
            "taken": taken,
            "parts": self.parts,
            "any_data": self.any_data.as_ref().map(AnyData::json),
        })
    }

    /// The coverage as JSON.
    pub fn coverage(&self) -> Value {
        let Some(coverage) = &self.coverage else { return Value::Null };
        let count = |class: Class| {
            let (reached, all) = coverage.counts.get(&class).copied().unwrap_or_default();
            let missed = coverage.missed.iter().filter(|m| m.class == class);
            let missed: Vec<Value> = missed.map(|m| json!({"line": m.line, "text": m.text})).collect();
            json!({"reached": reached, "all": all, "missed": missed})
        };
        let once: Vec<Value> = coverage.once().map(|l| json!({"first": l.first, "last": l.last})).collect();
        json!({
            "synchronising": count(Class::Synchronises),
            "stores": count(Class::Stores),
            "branches": count(Class::Branches),
            "loops_run_once": once,
            "mbarriers": {"awaited": coverage.awaited, "in_a_second_phase": coverage.wrapped},
            "full": coverage.full(),
            "of": self.coverage_of,
            "uncovered": self.uncovered.iter().map(|m| json!({"line": m.line, "text": m.text})).collect::<Vec<_>>(),
        })
    }
}

/// `8`, `8,4` or `8,4,1`, as the options take it.
fn shape(size: [u32; 3]) -> String {
    let length = size.iter().rposition(|n| *n != 1).map_or(1, |last| last + 1);
    size[..length].iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// `lines 12 to 30: 2`, `lines 12 to 30: 0 to 3`
fn trips(l: &Loop) -> String {
    let (fewest, most) = l.passes;
    let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    format!("lines {} to {}: {count}", l.first, l.last)
}

/// Clusters that are explored as one.
fn alike(clusters: &[Vec<u32>]) -> String {
    let one = |c: &Vec<u32>| c.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
    let all: Vec<String> = clusters.iter().map(one).collect();
    format!("clusters {} touch nothing in common and run the same program: it is explored once", brief(&all))
}

/// The first few, and how many more.
fn brief(all: &[String]) -> String {
    let more = all.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    all[..all.len().min(LISTED)].join(", ") + &more
}

/// The end of a long name: compilers put the name of the kernel before that of the parameter.
fn tail(name: &str) -> &str {
    let start = name.char_indices().rev().nth(39).map_or(0, |(at, _)| at);
    &name[start..]
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_words() {
        assert_eq!(shape([1, 1, 1]), "1");
        assert_eq!(shape([4, 1, 1]), "4");
        assert_eq!(shape([4, 1, 2]), "4,1,2");
        assert_eq!(quoted("a/b.ptx"), "a/b.ptx");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        let many: Vec<String> = (0..15).map(|n| n.to_string()).collect();
        assert!(brief(&many).ends_with("11 and 3 more"));
    }
}
