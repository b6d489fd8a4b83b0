//! Notes beside a verdict: the instructions that each finding is about, the edits that mend it, and whether it also exists
//! under the readings that shipped kernels rely on (`contested(profile)`).

use crate::exit;
use crate::input::Source;
use crate::kernel::{SourcePlace, source_place};
use crate::mending::{self, Mended, Mistake, Spare, Told};
use crate::naming::accesses;
use crate::question::Question;
use crate::stale::Stale;
use crate::verdicts::words;
use moire_cat::{LETTER, Model, PROFILE, Variants};
use moire_execution::leaf::Finding;
use moire_explore::judge::{Judgement, Verdict, flag_verdict};
use moire_mend::Why;
use moire_program::ir::Program;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Most groups of findings listed as text.
const LISTED: usize = 12;
/// Characters of a source line that are shown.
const SHOWN: usize = 100;

/// The profile of a model that stands against its letter. No other model is loaded before a program needs it.
pub(crate) struct Profiles {
    other: Option<Other>,
}

struct Other {
    name: String,
    /// The switches of all its models.
    own: Variants,
    settings: Vec<Setting>,
    /// The profile is in use, and the letter is asked beside it.
    in_use: bool,
}

struct Setting {
    switch: (String, String),
    doc: String,
}

/// Findings under the letter only that rely on the same readings.
pub(crate) struct Unwritten {
    /// For example `TQ30=B`. None where the readings were not told apart.
    settings: Vec<String>,
    doc: Vec<String>,
    findings: Vec<Finding>,
}

/// The answer under the other profile.
struct Beside {
    /// The profile that stands against the letter.
    profile: String,
    /// Its name is `letter` where the profile is in use.
    name: String,
    verdicts: Vec<String>,
    /// There is a finding under the letter, or a hang, that the profile does not have.
    letter_only: bool,
    unwritten: Vec<Unwritten>,
}

/// See the module.
#[derive(Default)]
pub struct Notes {
    /// Reads of a kernel without a finding that may be stale.
    pub stale: Vec<Stale>,
    /// Edits that make the program clean.
    pub(crate) mended: Option<Told>,
    /// Synchronisation that can go, if the command line asks for it.
    pub(crate) spare: Option<Result<Spare, Why>>,
    beside: Option<Beside>,
}

impl Profiles {
    /// The first profile of the model, when the letter is in use, or when `both` are asked and the model has it in use.
    pub(crate) fn new(question: &Question, model: &Model, both: bool) -> Self {
        let letter = question.profile.as_deref().unwrap_or(LETTER) == LETTER;
        let Some(profile) = model.profiles().first().filter(|_| letter) else {
            return Profiles { other: None };
        };
        let mut own = question.switches.clone();
        own.remove(PROFILE);
        let doc = |name: &str| {
            model.switches().iter().find(|s| s.name == name).map_or(String::new(), |s| s.doc.clone())
        };
        let setting = |s: &(String, String)| Setting { switch: s.clone(), doc: doc(&s.0) };
        let settings = profile.settings.iter().map(setting).collect();
        Profiles { other: Some(Other { name: profile.name.clone(), own, settings, in_use: both }) }
    }
}

impl Other {
    /// The switches with those settings of the profile.
    fn with(&self, wanted: impl Fn(usize) -> bool) -> Variants {
        let some = self.settings.iter().enumerate().filter(|(i, _)| wanted(*i));
        self.own.clone().into_iter().chain(some.map(|(_, s)| s.switch.clone())).collect()
    }

    /// The answer under the profile that is not in use, if it is worth asking.
    fn beside(&self, judgement: &Judgement, asking: &Asking<'_>) -> Option<Beside> {
        let incomplete = judgement.verdicts.iter().any(|v| v.exit_code() == exit::INCOMPLETE);
        if if self.in_use { incomplete } else { judgement.findings.is_empty() } {
            return None;
        }
        let there = (asking.under)(&self.with(|_| !self.in_use));
        let (letter, practice) = if self.in_use { (&there, judgement) } else { (judgement, &there) };
        let wrong = |j: &Judgement| -> BTreeSet<Verdict> {
            j.verdicts.iter().filter(|v| v.exit_code() == exit::FINDING).cloned().collect()
        };
        let letter_only = letter.findings.difference(&practice.findings).next().is_some()
            || wrong(letter).difference(&wrong(practice)).next().is_some();
        Some(Beside {
            profile: self.name.clone(),
            name: if self.in_use { LETTER.to_owned() } else { self.name.clone() },
            verdicts: words(&there),
            letter_only,
            unwritten: unwritten(letter, practice, self, asking),
        })
    }
}

/// How explanations are found.
pub(crate) struct Asking<'a> {
    /// Judges the program under the model with other switches.
    pub(crate) under: &'a dyn Fn(&Variants) -> Judgement,
    /// Whether there is time for one more trial.
    pub(crate) more: &'a dyn Fn() -> bool,
}

impl Notes {
    /// The notes on the judgement of a program.
    pub(crate) fn of(profiles: &Profiles, judgement: &Judgement, asking: &Asking<'_>) -> Self {
        let beside = profiles.other.as_ref().and_then(|other| other.beside(judgement, asking));
        Notes { beside, ..Notes::default() }
    }

    /// The patch of the file, if there is advice.
    pub fn diff(&self, source: &Source) -> Option<String> {
        self.mended()?.diff(source)
    }

    /// Why there is none.
    pub fn unpatched(&self) -> String {
        mending::unpatched(self.mended.as_ref())
    }

    /// Whether both profiles were asked, and something is wrong by the letter only.
    pub fn letter_only(&self) -> bool {
        self.beside.as_ref().is_some_and(|b| b.name == LETTER && b.letter_only)
    }

    /// The findings as text.
    pub fn text(&self, source: &Source, judgement: &Judgement) -> String {
        let program = &source.program;
        let mut out = String::new();
        match &self.mended {
            Some(Ok(mended)) => {
                for mistake in &mended.mistakes {
                    out += &self::mistake(source, mistake);
                }
                out += &mending::text(mended);
            }
            told => {
                let groups = grouped(&judgement.findings);
                groups.iter().take(LISTED).for_each(|g| out += &shown(source, g));
                let more = groups.len().saturating_sub(LISTED);
                if more > 0 {
                    out += &format!("  and {more} more\n");
                }
                if let Some(Err(why)) = told {
                    out += &format!("  no advice: {why}\n");
                    groups
                        .iter()
                        .filter_map(|g| missing(g[0]))
                        .take(LISTED)
                        .for_each(|m| out += &format!("    {m}\n"));
                }
            }
        }
        out.extend(self.spare.iter().map(mending::spare_text));
        for stale in self.stale.iter().take(LISTED) {
            out += &format!("  note: {}\n", stale.text());
        }
        match &self.beside {
            Some(beside) if beside.name == LETTER => out + &beside.grouped(),
            Some(beside) => out + &beside.listed(program),
            None => out,
        }
    }

    /// The notes as JSON.
    pub fn json(&self, source: &Source, judgement: &Judgement) -> (Value, Value) {
        let program = &source.program;
        let findings = judgement.findings.iter().map(|f| {
            let mut one = finding(program, f);
            one["sources"] = f.places.iter().map(|p| place_json(source, p.line)).collect();
            let order = || missing(f).filter(|_| self.mended.is_some());
            let text = self.mended().map(Mended::edits).or_else(order);
            one["missing"] = json!(text.map(|text| json!({"text": text})));
            one
        });
        let profile = self.beside.as_ref().map(|b| {
            let one = |u: &Unwritten| {
                let findings: Vec<Value> = u.findings.iter().map(|f| finding(program, f)).collect();
                json!({"verdict": "contested(profile)", "relies": u.settings, "readings": u.doc, "findings": findings})
            };
            let contested: Vec<Value> = b.unwritten.iter().map(one).collect();
            json!({"name": b.name, "verdicts": b.verdicts, "letter_only": b.letter_only, "contested": contested})
        });
        (findings.collect(), json!(profile))
    }

    /// Sentences about the findings that exist under the letter only.
    pub fn sentences(&self, program: &Program) -> Vec<(String, u32)> {
        let Some(beside) = &self.beside else { return Vec::new() };
        let one = |u: &Unwritten| {
            let places: Vec<String> = u.findings.iter().map(|f| self::places(program, f)).collect();
            let line = u.findings.iter().flat_map(|f| &f.places).map(|p| p.line).find(|l| *l > 0);
            let text = format!(
                "under the letter only, {} relies on {}: {}",
                beside.profile,
                u.named(),
                places.join("; ")
            );
            (text, line.unwrap_or(0))
        };
        beside.unwritten.iter().map(one).collect()
    }

    /// The edits that mend the program.
    fn mended(&self) -> Option<&Mended> {
        self.mended.as_ref()?.as_ref().ok()
    }

    /// A sentence about them.
    pub fn mends(&self) -> Option<String> {
        self.mended().map(|m| format!("mend: {}", m.edits()))
    }

    /// The advice, and what could go, as JSON.
    pub fn mended_json(&self, source: &Source) -> (Value, Value) {
        (mending::json(self.mended.as_ref(), source), mending::spare_json(self.spare.as_ref()))
    }
}

impl Unwritten {
    fn named(&self) -> String {
        if self.settings.is_empty() { "readings not told apart".to_owned() } else { self.settings.join(", ") }
    }

    fn kinds(&self) -> BTreeSet<&'static str> {
        self.findings.iter().map(flag_word).collect()
    }
}

impl Beside {
    /// What the letter has and the profile has not, when the letter is in use.
    fn listed(&self, program: &Program) -> String {
        let mut out = format!("  under {}: {}\n", self.name, self.verdicts.join(", "));
        for u in &self.unwritten {
            let kinds = u.kinds().into_iter().collect::<Vec<_>>().join(", ");
            let places: BTreeSet<String> = u.findings.iter().map(|f| places(program, f)).collect();
            let places = places.into_iter().collect::<Vec<_>>().join("; ");
            out += &format!(
                "  contested(profile): {kinds} under the letter only, {} relies on {} at {places}\n",
                self.name,
                u.named()
            );
            u.settings.iter().zip(&u.doc).for_each(|(s, d)| out += &format!("    {s}: {d}\n"));
        }
        out
    }

    /// The same as one note, when the profile is in use: readings and lines. Without a difference, the verdicts by the letter.
    fn grouped(&self) -> String {
        if !self.letter_only {
            return format!("  judged under {}; by the letter: {}\n", self.profile, self.verdicts.join(", "));
        }
        let mut out = format!(
            "  contested(profile): by the letter {}; --profile letter lists it, --strict counts it\n",
            self.verdicts.join(", ")
        );
        for u in &self.unwritten {
            let lines: BTreeSet<u32> = u.findings.iter().flat_map(|f| &f.places).map(|p| p.line).collect();
            let shown: Vec<String> = lines.iter().take(LISTED).map(u32::to_string).collect();
            let more = lines.len().saturating_sub(LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let kinds = u.kinds().into_iter().collect::<Vec<_>>().join(", ");
            let lines =
                if shown.is_empty() { String::new() } else { format!(", lines {}{more}", shown.join(", ")) };
            let doc = if u.doc.is_empty() { String::new() } else { format!(": {}", u.doc.join("; ")) };
            out += &format!("    {kinds}{lines}: {} relies on {}{doc}\n", self.profile, u.named());
        }
        out
    }
}

/// Letter-only findings by the readings they rely on: one that is enough, or all that cannot be left out.
fn unwritten(
    letter: &Judgement,
    practice: &Judgement,
    other: &Other,
    Asking { under, more }: &Asking<'_>,
) -> Vec<Unwritten> {
    let left: Vec<&Finding> = letter.findings.difference(&practice.findings).collect();
    if left.is_empty() || practice.verdicts.iter().any(|v| v.exit_code() == exit::INCOMPLETE) {
        return Vec::new();
    }
    // Each is an exploration, and most findings rely on one of the first settings. Without time for it, findings stay together.
    let count = other.settings.len();
    let (alone, without) = (vec![OnceCell::new(); count], vec![OnceCell::new(); count]);
    let mut groups: BTreeMap<Vec<usize>, Vec<Finding>> = BTreeMap::new();
    for finding in left {
        let gone = |j: &Judgement| !j.findings.contains(finding);
        let known = |cell: &OnceCell<Judgement>| cell.get().is_some() || more();
        let with =
            |i: &usize| known(&alone[*i]) && gone(alone[*i].get_or_init(|| under(&other.with(|s| s == *i))));
        let lacks = |i: &usize| {
            known(&without[*i]) && !gone(without[*i].get_or_init(|| under(&other.with(|s| s != *i))))
        };
        let one = (0..count).find(with).map(|i| vec![i]);
        let needed = || -> Vec<usize> {
            let found = (0..count).filter(lacks).collect();
            if without.iter().all(|w| w.get().is_some()) { found } else { Vec::new() }
        };
        groups.entry(one.unwrap_or_else(needed)).or_default().push(finding.clone());
    }
    let name = |(settings, findings): (Vec<usize>, Vec<Finding>)| Unwritten {
        settings: settings
            .iter()
            .map(|i| &other.settings[*i].switch)
            .map(|(s, v)| format!("{s}={v}"))
            .collect(),
        doc: settings.iter().map(|i| other.settings[*i].doc.clone()).collect(),
        findings,
    };
    groups.into_iter().map(name).collect()
}

fn flag_word(finding: &Finding) -> &'static str {
    let verdict: Verdict = flag_verdict(&finding.flag);
    verdict.word()
}

/// Findings of one kind about the same lines, whichever threads they are of.
fn grouped<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Vec<Vec<&'f Finding>> {
    let mut out: BTreeMap<(&str, Vec<u32>), Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        let mut lines: Vec<u32> = finding.places.iter().map(|p| p.line).collect();
        lines.sort_unstable();
        out.entry((&finding.flag, lines)).or_default().push(finding);
    }
    let mut out: Vec<Vec<&Finding>> = out.into_values().collect();
    out.sort_by_key(|g| !g[0].flag.ends_with("-race"));
    out
}

/// The order that is missing between the two accesses of a race.
fn missing(finding: &Finding) -> Option<String> {
    let [a, b] = finding.places.as_slice() else { return None };
    let race = flag_word(finding) == Verdict::Race.word();
    let (first, last) = (a.line.min(b.line), a.line.max(b.line));
    race.then(|| match first == last {
        true => format!("missing: an order between two runs of line {first}"),
        false => format!("missing: an order between line {first} and line {last}"),
    })
}

/// A group of findings: verdict, what the instructions do, where, and their lines.
fn shown(source: &Source, group: &[&Finding]) -> String {
    let program = &source.program;
    let words = [named(program, group[0]), together(program, group)];
    let words: Vec<String> = words.into_iter().filter(|w| !w.is_empty()).collect();
    let mut out = format!("  {}: {}\n", flag_word(group[0]), words.join(", "));
    let mut lines: Vec<u32> = group[0].places.iter().map(|p| p.line).collect();
    lines.dedup();
    for line in lines {
        out += &quoted(source, line);
    }
    out
}

/// One mistake: its first finding, how many more it has, and where.
fn mistake(source: &Source, mistake: &Mistake) -> String {
    let groups = grouped(&mistake.findings);
    let Some(first) = groups.first() else { return String::new() };
    let mut out = shown(source, first);
    if groups.len() > 1 {
        let pair = |g: &Vec<&Finding>| -> String {
            let lines: BTreeSet<u32> = g[0].places.iter().map(|p| p.line).collect();
            lines.iter().map(u32::to_string).collect::<Vec<_>>().join("/")
        };
        let rest: Vec<String> =
            groups.iter().skip(1).take(LISTED).map(pair).filter(|p| !p.is_empty()).collect();
        let dots = if groups.len() - 1 > LISTED { ", .." } else { "" };
        let findings = if groups.len() == 2 { "finding" } else { "findings" };
        let lines =
            if rest.is_empty() { String::new() } else { format!(", lines {}{dots}", rest.join(", ")) };
        out += &format!("    the same mistake: {} more {findings}{lines}\n", groups.len() - 1);
    }
    out
}

/// What the instructions of a finding do, if they are known, and the name of the flag.
fn named(program: &Program, finding: &Finding) -> String {
    let words = accesses(program, finding).map_or(String::new(), |w| format!("{w}, "));
    format!("{words}{}", finding.flag)
}

/// `lines 51 and 52 of P0, P1`, or `line 51 of P0, P1 and line 61 of P2`
fn together(program: &Program, group: &[&Finding]) -> String {
    let name = |t: u16| program.threads.get(usize::from(t)).map_or("?", |t| t.name.as_str());
    let mut by_line: BTreeMap<u32, BTreeSet<u16>> = BTreeMap::new();
    for place in group.iter().flat_map(|f| &f.places) {
        by_line.entry(place.line).or_default().insert(place.thread);
    }
    let names = |threads: &BTreeSet<u16>| threads.iter().map(|t| name(*t)).collect::<Vec<_>>().join(", ");
    let alone = group.iter().all(|f| f.places.iter().all(|p| p.thread == f.places[0].thread));
    match by_line.first_key_value() {
        Some((_, threads)) if alone && by_line.len() > 1 => {
            let lines: Vec<String> = by_line.keys().map(u32::to_string).collect();
            format!("lines {} of {}", lines.join(" and "), names(threads))
        }
        _ => {
            let one = |(line, threads): (&u32, &BTreeSet<u16>)| format!("line {line} of {}", names(threads));
            by_line.iter().map(one).collect::<Vec<_>>().join(" and ")
        }
    }
}

/// The place in the source of a kernel that a line comes from, if the module says.
fn place_json(source: &Source, line: u32) -> Value {
    let inlined = |at: &(String, u32)| json!({"file": at.0, "line": at.1});
    let place = |o: SourcePlace| json!({"file": o.file, "line": o.line, "inlined_at": o.inlined_at.as_ref().map(inlined)});
    json!(source_place(&source.text, line).map(place))
}

/// A line of the text as it stands there.
fn quoted(source: &Source, line: u32) -> String {
    let at = usize::try_from(line).unwrap_or(0).checked_sub(1);
    let Some(text) = at.and_then(|at| source.text.lines().nth(at)) else { return String::new() };
    let text = text.trim();
    let shown: String = text.chars().take(SHOWN).collect();
    let dots = if shown.len() < text.len() { " .." } else { "" };
    let origin =
        source_place(&source.text, line).map_or(String::new(), |o| format!("         | {}\n", o.text()));
    format!("    {line:4} | {shown}{dots}\n{origin}")
}

/// `P0 line 7 and P1 line 12`
fn places(program: &Program, finding: &Finding) -> String {
    let one = |p: &moire_execution::leaf::Place| {
        let thread = program.threads.get(usize::from(p.thread)).map_or("?", |t| t.name.as_str());
        format!("{thread} line {}", p.line)
    };
    if finding.places.is_empty() {
        return finding.flag.clone();
    }
    finding.places.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn finding(program: &Program, finding: &Finding) -> Value {
    let one = |p: &moire_execution::leaf::Place| json!({"thread": program.threads.get(usize::from(p.thread)).map(|t| &t.name), "line": p.line});
    let places: Vec<Value> = finding.places.iter().map(one).collect();
    let accesses = accesses(program, finding);
    json!({"kind": finding.flag, "verdict": flag_word(finding), "accesses": accesses, "places": places})
}
