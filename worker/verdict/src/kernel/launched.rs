//! The launch that a verdict is about: its shape and parameters with the origin of each, what is taken for granted, and how
//! much of the kernel it runs.

use crate::verdicts::Verdicts;
use moire_kernel::specialise::{Class, Coverage, Goals, Loop, placed};
use schemars::JsonSchema;
use serde::Serialize;

/// Where a part of a launch comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
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

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.word()
    }
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

    /// Whether it is assumed: nobody says it.
    pub fn is_assumed(&self) -> bool {
        matches!(self, Origin::Most(_) | Origin::Assumed)
    }
}

/// A size along three axes, and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Size {
    /// Along x, y, z.
    pub size: [u32; 3],
    /// Who says so.
    pub origin: Origin,
}

impl Size {
    /// `8,4 (given)`
    pub fn text(&self) -> String {
        format!("{} ({})", shape(self.size), self.origin.word())
    }
}

/// The value of a parameter, and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Argument {
    /// Its place in the list of parameters.
    pub index: u16,
    /// First byte of the field, of a structure.
    pub at: Option<u32>,
    /// Whether the value is that of words of global memory behind it.
    pub behind: bool,
    /// The first byte of the one word behind it; all that have no value of their own, if there is none.
    pub word: Option<u64>,
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
    pub fn place(&self) -> String {
        let word = self.word.map_or(String::new(), |at| at.to_string());
        let behind = if self.behind { format!("[{word}]") } else { String::new() };
        self.pointer() + &behind
    }

    /// The parameter, or the field of one.
    fn pointer(&self) -> String {
        self.at.map_or(self.index.to_string(), |at| format!("{}+{at}", self.index))
    }

    /// `parameter 3`, `words behind parameter 3`
    pub fn what(&self) -> String {
        let word = match (self.behind, self.word) {
            (false, _) => String::new(),
            (true, None) => "words behind ".to_owned(),
            (true, Some(at)) => format!("word {at} behind "),
        };
        format!("{word}parameter {}", self.pointer())
    }

    /// `parameter 3 (n) = 8 (given)`
    pub fn text(&self) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" ({})", tail(&self.name)) };
        format!("{}{name} = {} ({})", self.what(), self.value, self.origin.word())
    }
}

/// Something that the verdict takes for granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Taken {
    /// 1-based; 0 when it is about no single line.
    pub line: u32,
    /// One sentence.
    pub text: String,
}

/// A program that explores both ways of every decision that depends on data. It has every run on any data, and perhaps
/// runs that no data leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnyData {
    /// The first thing that depends on data, with its line.
    #[serde(rename = "depends")]
    pub why: String,
    /// Verdicts of that program that are not reported as findings, because perhaps no data leads to them.
    pub possible: Vec<String>,
}

impl AnyData {
    pub(super) fn new(why: String) -> Self {
        AnyData { why, possible: Vec::new() }
    }
}

/// A launch, and what is known about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Launched {
    /// The file.
    #[serde(skip)]
    pub file: String,
    /// The kernel.
    pub entry: String,
    /// The command has to name the kernel, because the module has several.
    #[serde(skip)]
    pub several: bool,
    /// The name of the file of a record that has the launch.
    #[serde(skip)]
    pub recorded: Option<String>,
    /// CTAs or tile blocks of the grid.
    pub grid: Size,
    /// CTAs of a cluster; a tile block has no clusters.
    pub cluster: Option<Size>,
    /// Threads of a CTA; a tile block has none.
    pub block: Option<Size>,
    /// Values of parameters, by their places in the list.
    #[serde(rename = "parameters")]
    pub params: Vec<Argument>,
    /// Whether something about it is assumed.
    pub assumed: bool,
    /// The command that repeats the verdict with nothing assumed.
    pub command: String,
    /// The reason that no second cluster is assumed.
    #[serde(rename = "one_cluster")]
    pub alone: Option<String>,
    /// Smaller launches that were judged before.
    pub smaller: Vec<Smaller>,
    /// Launches that were judged because they run more of the kernel.
    pub more: Vec<Smaller>,
    /// What is taken for granted, by line.
    #[serde(skip)]
    pub taken: Vec<Taken>,
    /// Clusters by program. Clusters that run one program together are a group; groups that run the same program are a list.
    pub parts: Vec<Vec<Vec<u32>>>,
    /// How much of the kernel it runs. None where the kernel is not run ahead.
    pub coverage: Option<Covered>,
    /// What could happen for any data, where the launch was run ahead for any.
    pub any_data: Option<AnyData>,
    /// The parameters that decide how often loops run, with a proof for every value, or why there is none.
    pub every: Vec<Every>,
    /// Its number among the launches of one stream.
    #[serde(skip)]
    pub number: usize,
    /// The parameters that are one of a kernel ahead of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<Shared>,
    /// The launches behind it on its stream.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Launched>,
}

/// A parameter that is one of a kernel ahead: the same pointer, or the same tensor map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Shared {
    /// Its place in the list of parameters.
    pub index: u16,
    /// The number of the other kernel, from 0 on.
    pub grid: usize,
    /// The parameter of that kernel.
    pub of: u16,
}

/// A parameter that decides how often loops run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Every {
    /// As the option takes it.
    pub parameter: String,
    /// The proof is about its multiples. 0 where no loop was told.
    pub grain: u64,
    /// The least value that it is about.
    pub least: u64,
    /// The largest value that it is about: with a larger one a number may overflow its register.
    pub most: u64,
    /// First and last line of each loop.
    pub loops: Vec<[u32; 2]>,
    /// Whether nothing is wrong for any multiple of the grain.
    pub proved: bool,
    /// Why there is no proof, or what is wrong.
    pub why: Option<String>,
    /// Programs with loops that the operational engine was asked about, and programs of single values.
    pub programs: [usize; 2],
    /// States that were stored.
    pub states: usize,
    /// Instructions that were executed.
    pub steps: u64,
    /// The values that the explorer was asked about, and what it says.
    pub confirmations: Vec<EveryConfirmed>,
    /// The value that is asked for, where the launch with it is too long to be run ahead: the proof stands for it.
    pub asked: Option<u64>,
    /// What a proof takes for granted: the launch names it.
    #[serde(skip)]
    pub(crate) taken: Vec<Taken>,
}

impl Every {
    pub(crate) fn new(place: (u16, u32)) -> Self {
        Every {
            parameter: placed(place),
            grain: 0,
            least: 1,
            most: 0,
            loops: Vec::new(),
            proved: false,
            why: None,
            programs: [0, 0],
            states: 0,
            steps: 0,
            confirmations: Vec::new(),
            asked: None,
            taken: Vec::new(),
        }
    }

    /// Notes which loops these are.
    pub(crate) fn about(&mut self, found: &moire_kernel::specialise::Every) {
        (self.grain, self.most) = (found.grain, found.most);
        self.least =
            found.singles.iter().chain(found.classes.iter().map(|c| &c.0)).copied().min().unwrap_or(0);
        self.loops = found.loops.iter().map(|(first, last)| [*first, *last]).collect();
    }

    /// `proved for every multiple of 64 of parameter 17 from 64 up to 2147483264 (loops in lines 603 to 646): ..`
    pub fn text(&self) -> String {
        let lines: Vec<String> =
            self.loops.iter().map(|[first, last]| format!("{first} to {last}")).collect();
        let loops =
            if lines.is_empty() { String::new() } else { format!(" (loops in lines {})", lines.join(", ")) };
        let values = match self.grain {
            0 | 1 => format!("every value of parameter {}", self.parameter),
            grain => format!("every multiple of {grain} of parameter {}", self.parameter),
        };
        match &self.why {
            Some(why) => format!("not proved for {values}{loops}: {why}"),
            None => format!(
                "proved for {values} from {} up to {}{loops}: {} programs with loops, {} states; {} single values{}",
                self.least,
                self.most,
                self.programs[0],
                self.states,
                self.programs[1],
                self.asked_text()
            ),
        }
    }

    fn asked_text(&self) -> String {
        let one = |value| {
            format!("; the launch with {value} is too long to be run ahead, and the proof stands for it")
        };
        self.asked.map_or(String::new(), one)
    }

    /// Notes that a value is asked for, if the proof is about it.
    pub(crate) fn stands_for(&mut self, (index, at): (u16, u32), value: u64) -> bool {
        let about = self.proved && (self.least..=self.most).contains(&value);
        let same = self.parameter == Every::new((index, at)).parameter;
        let stands = about && same && value.is_multiple_of(self.grain.max(1));
        self.asked = stands.then_some(value).or(self.asked);
        stands
    }
}

/// What the explorer says of one value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EveryConfirmed {
    /// The value.
    pub value: u64,
    /// Its verdicts.
    pub verdicts: Verdicts,
}

/// Another launch that was judged.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Smaller {
    /// The command that judges it.
    pub command: String,
    /// Its verdicts.
    pub verdicts: Verdicts,
}

/// How much of a kernel a launch runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Covered {
    /// The command of the smaller launch that was covered, if the launch of the answer could not be run ahead.
    pub of: Option<String>,
    /// What synchronises.
    pub synchronising: Reached,
    /// Stores.
    pub stores: Reached,
    /// Branches on a condition.
    pub branches: Reached,
    /// The loops that some warp enters.
    pub loops: Vec<Looped>,
    /// Mbarriers that some warp waits for.
    pub awaited: usize,
    /// Those of them that some warp waits for in a second phase, as for the stages of a ring.
    pub wrapped: usize,
    /// What bounds the answer: what runs neither in this launch nor in another one that is clean.
    pub uncovered: Vec<Uncovered>,
}

/// What no launch does that is clean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Uncovered {
    /// The line.
    pub line: u32,
    /// What stands there.
    pub text: String,
    /// What it does not do: `never runs`, `is never taken`, `never runs twice`, ..
    pub misses: String,
    /// The options of a launch that does it, if one was found.
    pub options: Option<String>,
}

/// Statements of one class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Reached {
    /// Those that run.
    pub reached: usize,
    /// All.
    pub all: usize,
    /// Those that do not run, by line.
    pub missed: Vec<Statement>,
}

/// A statement of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Statement {
    /// Its line.
    pub line: u32,
    /// Its mnemonic with qualifiers.
    pub text: String,
}

/// A loop that some warp enters.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Looped {
    /// The line of its first statement.
    pub first: u32,
    /// The line of the last branch back.
    pub last: u32,
    /// The passes of the warp that makes the fewest and of the one that makes the most.
    pub passes: [u32; 2],
    /// It waits: it also comes back in the same state, any number of times.
    pub waits: bool,
    /// A statement of it synchronises.
    pub synchronises: bool,
    /// It goes round as often in every launch.
    pub steady: bool,
}

impl Looped {
    /// Whether its trip count matters: it synchronises, and does not only wait.
    pub fn counts(&self) -> bool {
        self.synchronises && !self.waits
    }
}

impl Covered {
    /// Leaves out what no launch runs.
    pub(crate) fn leave_out(&mut self, never: &[Taken]) {
        for class in [&mut self.synchronising, &mut self.stores] {
            class.missed.retain(|one| never.iter().all(|taken| taken.line != one.line));
        }
    }

    pub(super) fn new(coverage: &Coverage, goals: &Goals) -> Self {
        let class = |class: Class| {
            let (reached, all) = coverage.counts.get(&class).copied().unwrap_or_default();
            let missed = coverage.missed.iter().filter(|m| m.class == class);
            let missed = missed.map(|m| Statement { line: m.line, text: m.text.clone() }).collect();
            Reached { reached, all, missed }
        };
        let one = |l: &Loop| Looped {
            first: l.first,
            last: l.last,
            passes: l.passes.into(),
            waits: l.waits,
            synchronises: l.synchronises,
            steady: goals.is_steady(l.first),
        };
        Covered {
            of: None,
            synchronising: class(Class::Synchronises),
            stores: class(Class::Stores),
            branches: class(Class::Branches),
            loops: coverage.loops.iter().map(one).collect(),
            awaited: coverage.awaited,
            wrapped: coverage.wrapped,
            uncovered: Vec::new(),
        }
    }
}

impl Launched {
    /// It and those behind it.
    pub fn all(&self) -> impl Iterator<Item = &Launched> {
        std::iter::once(self).chain(&self.then)
    }

    /// One of them, by its number.
    pub(crate) fn grid_mut(&mut self, number: usize) -> &mut Launched {
        match number.checked_sub(1) {
            Some(n) if n < self.then.len() => &mut self.then[n],
            _ => self,
        }
    }

    /// Whether another launch has the same parameters and more CTAs.
    pub(crate) fn is_part_of(&self, other: &Launched) -> bool {
        let values = |l: &Launched| {
            let of = |l: &Launched| l.params.iter().map(|p| (p.place(), p.value)).collect::<Vec<_>>();
            l.all().map(of).collect::<Vec<_>>()
        };
        let sizes = |l: &Launched| l.all().flat_map(|l| l.grid.size).collect::<Vec<u32>>();
        let (own, more) = (sizes(self), sizes(other));
        own != more && own.iter().zip(more).all(|(own, more)| *own <= more) && values(self) == values(other)
    }

    /// The options by which another launch of the kernel differs from this one.
    pub(crate) fn differs(&self, other: &Launched) -> String {
        let of = self.prefix();
        let grid =
            (self.grid.size != other.grid.size).then(|| format!("--grid {of}{}", shape(other.grid.size)));
        let block =
            self.block.as_ref().zip(other.block.as_ref()).filter(|(own, other)| own.size != other.size);
        let block = block.map(|(_, other)| format!("--block {of}{}", shape(other.size)));
        let known =
            |p: &&Argument| !self.params.iter().any(|own| (own.place(), own.value) == (p.place(), p.value));
        let says = |p: &Argument| format!("--param {}={}", quoted(&(of.clone() + &p.place())), p.value);
        let params = other.params.iter().filter(known).map(says);
        grid.into_iter().chain(block).chain(params).collect::<Vec<_>>().join(" ")
    }

    /// What stands before a size or a parameter of a launch behind others.
    fn prefix(&self) -> String {
        if self.number == 0 { String::new() } else { format!("{}:", self.number) }
    }

    /// The command that repeats the verdict with nothing assumed. `more` stands behind the file.
    pub(crate) fn command(&self, more: &str) -> String {
        let mut out = format!("moire check {}", quoted(&self.file));
        if self.several {
            out += &format!(" --entry {}", quoted(&self.entry));
        }
        self.sizes(&mut out);
        for one in &self.then {
            let entry = if one.several { format!(":{}", one.entry) } else { String::new() };
            out += &format!(" --then {}", quoted(&(one.file.clone() + &entry)));
            one.sizes(&mut out);
        }
        out + more
    }

    /// Its sizes and parameters, as options.
    fn sizes(&self, out: &mut String) {
        let of = self.prefix();
        if !matches!(self.grid.origin, Origin::File(_)) {
            *out += &format!(" --grid {of}{}", shape(self.grid.size));
        }
        for (name, size) in [("cluster", &self.cluster), ("block", &self.block)] {
            if let Some(size) = size.as_ref().filter(|s| !matches!(s.origin, Origin::File(_))) {
                *out += &format!(" --{name} {of}{}", shape(size.size));
            }
        }
        for Shared { index, grid, of: param } in &self.same {
            *out += &format!(" --param {of}{index}={grid}:{param}");
        }
        for param in self.params.iter().filter(|p| !matches!(p.origin, Origin::File(_))) {
            let place = quoted(&(of.clone() + &param.place()));
            *out += &format!(" --param {place}={}", param.value);
        }
    }

    /// Whether something about it is assumed.
    fn assumes(&self) -> bool {
        let sizes = [Some(&self.grid), self.cluster.as_ref(), self.block.as_ref()];
        let origins = sizes.into_iter().flatten().map(|s| &s.origin);
        let own = origins.chain(self.params.iter().map(|p| &p.origin)).any(Origin::is_assumed);
        own || self.then.iter().any(Launched::assumes)
    }

    /// Says what follows from it. `more` stands behind the file in the command.
    pub fn complete(&mut self, more: &str) {
        (self.assumed, self.command) = (self.assumes(), self.command(more));
    }

    /// Takes over the coverage of a smaller launch, if this one could not be run ahead.
    pub(crate) fn covers(&mut self, smaller: Option<&Launched>, more: &str) {
        if let Some(smaller) = smaller {
            let of = Some(smaller.command(more));
            self.coverage = smaller.coverage.clone().map(|coverage| Covered { of, ..coverage });
        }
    }
}

/// `8`, `8,4` or `8,4,1`, as the options take it.
fn shape(size: [u32; 3]) -> String {
    let length = size.iter().rposition(|n| *n != 1).map_or(1, |last| last + 1);
    size[..length].iter().map(u32::to_string).collect::<Vec<_>>().join(",")
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
    }
}
