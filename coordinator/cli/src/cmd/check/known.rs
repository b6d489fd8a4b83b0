//! What is known of problems: a baseline, and suppressions beside the kernel.
//!
//! Contract: a problem of the baseline, and one that a suppression in force is about, does not fail; the verdict stays what it is and
//! the problem is said beside it. A suppression has a rule, an owner, a reason and an end; one that is over suppresses nothing. What is
//! malformed is an error. What a baseline has and a file that was judged to the end has no more is said, and so is a suppression that
//! is about nothing.
//!
//! A suppression stands on the line of an instruction of the problem or directly above it:
//!
//! ```text
//! // moire: suppress race until 2027-01-31 by ann: the reader takes old bytes, too
//! ```
//!
//! or in `moire.toml` beside the kernel:
//!
//! ```text
//! [[suppress]]
//! file = "kernel.ptx"
//! rule = "race"
//! until = 2027-01-31
//! owner = "ann"
//! reason = "the reader takes old bytes, too"
//! ```
//!
//! `finding` in place of `rule`, or beside it, is the fingerprint of one problem.

use super::sarif::places::Root;
use crate::days;
use anyhow::{Context, Result, anyhow, bail, ensure};
use moire_console::{bounded, exit};
use moire_verdict::answer::Answer;
use moire_verdict::problem::{PLAIN, Problem, Standing, Suppressed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use toml_edit::{DocumentMut, Item, Table};

/// What a comment begins with, behind its slashes.
const MARK: &str = "moire: suppress";
/// The file beside kernels.
pub(super) const FILE: &str = "moire.toml";

/// A suppression, as it is written.
struct Suppression {
    /// Where it is written.
    place: String,
    rule: Option<String>,
    finding: Option<String>,
    /// The line of the instruction that a comment is about.
    line: Option<u32>,
    owner: String,
    until: String,
    until_ms: u64,
    reason: String,
}

impl Suppression {
    /// # Errors
    /// Something is missing, or the end is no day.
    fn new(place: String, (owner, until, reason): (&str, &str, &str), now_ms: u64) -> Result<Self> {
        for (name, text) in [("an owner", owner), ("an end", until), ("a reason", reason)] {
            ensure!(!text.trim().is_empty(), "{place}: a suppression has {name}");
        }
        let until_ms = days::until(until, now_ms).with_context(|| place.clone())?;
        let (owner, until, reason) = (owner.to_owned(), until.to_owned(), reason.trim().to_owned());
        Ok(Suppression { place, rule: None, finding: None, line: None, owner, until, until_ms, reason })
    }

    fn is_about(&self, problem: &Problem) -> bool {
        let rule = self.rule.as_ref().is_none_or(|r| *r == problem.rule || r == problem.verdict);
        let finding = self.finding.as_ref().is_none_or(|f| *f == problem.fingerprint);
        let line = self.line.is_none_or(|line| problem.lines.is_empty() || problem.lines.contains(&line));
        rule && finding && line
    }

    fn standing(&self, now_ms: u64) -> Standing {
        let (owner, until) = (self.owner.clone(), self.until.clone());
        let said = Suppressed { owner, until, reason: self.reason.clone(), place: self.place.clone() };
        if now_ms < self.until_ms { Standing::Suppressed(said) } else { Standing::Expired(said) }
    }
}

/// What is known before files are judged.
pub(super) struct Known {
    root: Root,
    now_ms: u64,
    /// The problems of the baseline by file: fingerprint, and what it was.
    baseline: Option<BTreeMap<String, BTreeMap<String, String>>>,
    /// The suppressions that were read, by place.
    read: BTreeMap<String, Read>,
}

/// What became of a suppression in all answers about its file.
struct Read {
    owner: String,
    used: bool,
    /// Some answer left something open.
    open: bool,
}

impl Known {
    /// # Errors
    /// The baseline cannot be read.
    pub(super) fn new(baseline: Option<&Path>, now_ms: u64) -> Result<Self> {
        let root = Root::find();
        let baseline = baseline.map(|path| read(&root, path)).transpose()?;
        Ok(Known { root, now_ms, baseline, read: BTreeMap::new() })
    }

    /// Sets what is known of the problems of a file; what is to be said of it, and the exit code of what is malformed.
    pub(super) fn about(
        &mut self,
        answer: &mut Answer,
        path: &Path,
        text: &str,
    ) -> (Vec<String>, Option<u8>) {
        let mut said = Vec::new();
        let mut all = comments(&answer.file, text, self.now_ms);
        all.extend(beside(path, self.now_ms));
        for suppression in all {
            match suppression {
                Ok(suppression) => self.apply(answer, &suppression),
                Err(error) => said.push(format!("{error:#}")),
            }
        }
        let code = (!said.is_empty()).then_some(exit::USAGE);
        said.extend(self.compare(answer));
        (said, code)
    }

    /// Sets the standing of the problems that a suppression is about.
    fn apply(&mut self, answer: &mut Answer, suppression: &Suppression) {
        let standing = suppression.standing(self.now_ms);
        let new = || Read { owner: suppression.owner.clone(), used: false, open: false };
        let read = self.read.entry(suppression.place.clone()).or_insert_with(new);
        read.open |= answer.verdicts.is_incomplete() || answer.parts.is_empty();
        for problem in answer.problems.iter_mut().filter(|p| suppression.is_about(p)) {
            read.used = true;
            if !matches!(problem.standing, Standing::Suppressed(_)) {
                problem.standing = standing.clone();
            }
        }
    }

    /// What is to be said of suppressions that no answer has used.
    pub(super) fn unused(&self) -> Vec<String> {
        let one = |(place, Read { owner, open, .. }): (&String, &Read)| match open {
            true => format!("{place}: what {owner} suppresses was not seen; not everything was explored"),
            false => {
                format!("{place}: what {owner} suppresses is not there any more: take the suppression out")
            }
        };
        self.read.iter().filter(|(_, read)| !read.used).map(one).collect()
    }

    /// Marks what the baseline has; what it has and the answer has not.
    fn compare(&self, answer: &mut Answer) -> Vec<String> {
        let Some(baseline) = &self.baseline else { return Vec::new() };
        let name = self.root.below(&answer.file).unwrap_or_else(|| answer.file.clone());
        let Some(known) = baseline.get(&format!("{name}{}", kernel(answer.kernel.as_deref()))) else {
            return Vec::new();
        };
        let mut gone = known.clone();
        for problem in &mut answer.problems {
            if gone.remove(&problem.fingerprint).is_some()
                && !matches!(problem.standing, Standing::Suppressed(_))
            {
                problem.standing = Standing::Known;
            }
        }
        let end = if answer.verdicts.is_incomplete() || answer.parts.is_empty() {
            "was not seen"
        } else {
            "is gone"
        };
        gone.values().map(|what| format!("{}: {what} of the baseline {end}", answer.title())).collect()
    }
}

/// The kernel behind the name of a file, where a module has several.
fn kernel(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(" ({name})"))
}

/// The problems that `moire check --format json` printed.
fn read(root: &Root, path: &Path) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let text = bounded::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut out: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let what = || format!("{}:{}: this is no line of `moire check --format json`", path.display(), n + 1);
        let answer: Value = serde_json::from_str(line).with_context(what)?;
        let file = answer["file"].as_str().with_context(what)?;
        let name = root.below(file).unwrap_or_else(|| file.to_owned()) + &kernel(answer["kernel"].as_str());
        let own = out.entry(name).or_default();
        for problem in answer["problems"].as_array().with_context(what)? {
            let word = |key: &str| problem[key].as_str().unwrap_or_default();
            let rule = if word("rule") == PLAIN { word("verdict") } else { word("rule") };
            let lines = problem["lines"].to_string().replace(',', ", ");
            let at = if lines == "[]" {
                String::new()
            } else {
                format!(" at lines {}", lines.trim_matches(['[', ']']))
            };
            let print = problem["fingerprint"].as_str().with_context(what)?;
            own.insert(print.to_owned(), format!("{rule}{at}"));
        }
    }
    Ok(out)
}

/// The suppressions in comments of a text.
fn comments(file: &str, text: &str, now_ms: u64) -> Vec<Result<Suppression>> {
    let mut out = Vec::new();
    for (n, line) in (1u32..).zip(text.lines()) {
        let Some((code, comment)) = line.split_once("//") else { continue };
        let Some(words) = comment.trim_start().strip_prefix(MARK) else { continue };
        let behind = || (n + 1..).zip(text.lines().skip(n as usize));
        let next = || behind().find(|(_, l)| !code_of(l).is_empty()).map(|(n, _)| n);
        let about = if code.trim().is_empty() { next() } else { Some(n) };
        out.push(
            comment_of(format!("{file}:{n}"), words, now_ms).map(|one| Suppression { line: about, ..one }),
        );
    }
    out
}

/// What of a line is no comment.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default().trim()
}

/// ` RULE until DAY by OWNER: REASON`
fn comment_of(place: String, words: &str, now_ms: u64) -> Result<Suppression> {
    let form = || anyhow!("{place}: write `// {MARK} RULE until 2027-01-31 by OWNER: REASON`");
    let (head, reason) = words.split_once(':').ok_or_else(form)?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let [rule, "until", until, "by", owner] = words[..] else { return Err(form()) };
    let one = Suppression::new(place.clone(), (owner, until, reason), now_ms)?;
    Ok(Suppression { rule: Some(rule.to_owned()), ..one })
}

/// The suppressions of a file in `moire.toml` beside it.
fn beside(path: &Path, now_ms: u64) -> Vec<Result<Suppression>> {
    let list = path.with_file_name(FILE);
    if !list.is_file() {
        return Vec::new();
    }
    let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
    match tables(&list) {
        Ok(tables) => {
            (1..).zip(&tables).filter_map(|t| of_table(&list, t, &name, now_ms).transpose()).collect()
        }
        Err(error) => vec![Err(error)],
    }
}

fn tables(path: &Path) -> Result<Vec<Table>> {
    let name = path.display();
    let text = bounded::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let document: DocumentMut = text.parse().map_err(|e| anyhow!("{name}: {e}"))?;
    if let Some((key, _)) = document.iter().find(|(key, _)| *key != "suppress") {
        bail!("{name}: there is no `{key}`; a suppression is a table [[suppress]]");
    }
    let all = match document.get("suppress") {
        Some(item) => item.as_array_of_tables().with_context(|| format!("{name}: write [[suppress]]"))?,
        None => return Ok(Vec::new()),
    };
    Ok(all.iter().cloned().collect())
}

/// A suppression of this file; none if it is about another one.
fn of_table(
    path: &Path,
    (n, table): (usize, &Table),
    name: &str,
    now_ms: u64,
) -> Result<Option<Suppression>> {
    const KEYS: [&str; 6] = ["file", "rule", "finding", "until", "owner", "reason"];
    let place = format!("{}: suppression {n}", path.display());
    if let Some((key, _)) = table.iter().find(|(key, _)| !KEYS.contains(key)) {
        bail!("{place}: there is no `{key}`; known are {}", KEYS.join(", "));
    }
    let word = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(Item::Value(value)) => {
            let text = value.as_str().map(str::to_owned);
            let day = || value.as_datetime().map(ToString::to_string);
            text.or_else(day).map(Some).with_context(|| format!("{place}: `{key}` is a text"))
        }
        Some(_) => bail!("{place}: `{key}` is a text"),
    };
    let file = word("file")?.with_context(|| format!("{place}: a suppression names a `file` beside it"))?;
    let (rule, finding) = (word("rule")?, word("finding")?);
    ensure!(rule.is_some() || finding.is_some(), "{place}: a suppression names a `rule` or a `finding`");
    let said = [word("owner")?, word("until")?, word("reason")?].map(Option::unwrap_or_default);
    let one = Suppression::new(place, (&said[0], &said[1], &said[2]), now_ms)?;
    Ok((file == name).then_some(Suppression { rule, finding, ..one }))
}
