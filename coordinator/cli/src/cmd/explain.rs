//! `moire explain`: a verdict or a rule in the words of the reader, what to do, and a small program that shows it.

use anyhow::{Result, bail};
use clap::Args;
use moire_cat::closest;
use moire_console::exit;
use moire_explore::judge::flag_verdict;
use moire_program::validate::RULES as STATIC;
use moire_verdict::told::{RULES, Told, VERDICTS, rule, verdict};

/// Characters of a line of prose.
const WIDTH: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A verdict or a rule, as `moire check` names it; without one all are listed
    pub(crate) word: Option<String>,
}

pub(crate) fn run(args: &Explain) -> Result<u8> {
    let Some(word) = &args.word else {
        print!("{}", list());
        return Ok(exit::CLEAN);
    };
    // `bounded(coverage)` is a verdict with its reason.
    let name = word.split('(').next().unwrap_or(word);
    let told: Vec<String> = verdict(name)
        .map(|told| page(told, &of_verdict(name)))
        .into_iter()
        .chain(rule(name).map(|told| page(told, "")))
        .chain(
            STATIC
                .iter()
                .find(|r| r.id == name)
                .map(|r| format!("{}: {}\n\n  source: {}\n", r.id, r.doc, r.source)),
        )
        .collect();
    if told.is_empty() {
        let known = VERDICTS.iter().chain(RULES).map(|t| t.name).chain(STATIC.iter().map(|r| r.id));
        match closest(name, known) {
            Some(near) => bail!("there is no verdict or rule `{name}`; did you mean `{near}`?"),
            None => bail!("there is no verdict or rule `{name}`; `moire explain` lists them"),
        }
    }
    print!("{}", told.join("\n"));
    Ok(exit::CLEAN)
}

/// All verdicts and rules, a line each.
fn list() -> String {
    let line = |name: &str, title: &str| format!("  {name:34} {title}\n");
    let told = |all: &[Told]| all.iter().map(|t| line(t.name, t.title)).collect::<String>();
    let fixed: String = STATIC.iter().map(|r| line(r.id, r.doc)).collect();
    format!("Verdicts:\n{}\nRules of executions:\n{}\nRules of texts:\n{fixed}", told(VERDICTS), told(RULES))
}

/// The rules whose verdict this is.
fn of_verdict(word: &str) -> String {
    let own = |r: &&Told| flag_verdict(r.name).word() == word && r.name != word;
    let names: Vec<&str> = RULES.iter().filter(own).map(|r| r.name).collect();
    if names.is_empty() { String::new() } else { format!("Its rules: {}", names.join(", ")) }
}

/// What is told of a rule in documents for other tools.
pub(crate) struct Help {
    pub(crate) title: String,
    pub(crate) why: String,
    /// The page, for people.
    pub(crate) text: String,
    /// The same as Markdown.
    pub(crate) markdown: String,
}

/// The page of a rule or a verdict.
pub(crate) fn help(name: &str) -> Option<Help> {
    if let Some(told) = rule(name).or_else(|| verdict(name)) {
        let program = program(told, "");
        let example = if program.is_empty() {
            program
        } else {
            format!("\n\nA program with this answer:\n\n```\n{program}```")
        };
        let markdown =
            format!("**{}**\n\n{}\n\n**What to do:** {}{example}\n", told.title, told.why, told.mend);
        let (title, why) = (told.title.to_owned(), told.why.to_owned());
        return Some(Help { title, why, text: page(told, ""), markdown });
    }
    let told = STATIC.iter().find(|r| r.id == name)?;
    let why = format!("{}. Source: {}", told.doc, told.source);
    let (title, text) = (told.doc.to_owned(), why.clone());
    Some(Help { title, text, markdown: why.clone(), why })
}

/// The program of a page, without what its test asks, each line behind `margin`.
fn program(told: &Told, margin: &str) -> String {
    let own = |line: &&str| !line.starts_with("// expect:");
    told.example.lines().filter(own).map(|l| format!("{margin}{l}\n")).collect()
}

fn page(told: &Told, more: &str) -> String {
    let paragraphs = [told.why.to_owned(), format!("What to do: {}", told.mend), more.to_owned()];
    let prose =
        paragraphs.iter().filter(|p| !p.is_empty()).map(|p| format!("\n{}", wrapped(p))).collect::<String>();
    let head = format!("{}: {}\n{prose}", told.name, told.title);
    if told.example.is_empty() {
        return head;
    }
    format!("{head}\nA program with this answer:\n\n{}", program(told, "    "))
}

/// A paragraph with indented lines.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if line.len() + word.len() + 3 > WIDTH {
            lines.push(word.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines.iter().map(|l| format!("  {l}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_cat::Variants;
    use moire_explore::Limits;
    use moire_explore::judge::{About, Questions, judge};
    use moire_program::lanes::joined;
    use moire_program::text::{Format, parse};
    use std::collections::BTreeSet;

    /// The verdicts and the rules that a program breaks, under the first model that has a verdict about it.
    fn answers(text: &str) -> BTreeSet<String> {
        let program = parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut out = BTreeSet::new();
        for name in ["ptx", "tile-ir"] {
            let model = moire_models::load(name, &Variants::new()).unwrap();
            let questions = Questions { witnesses: false, about: About::All };
            let judged = judge(&joined(&program), &model, &Limits::default(), questions);
            out.extend(judged.verdicts.iter().map(|v| v.word().to_owned()));
            out.extend(judged.findings.iter().map(|f| f.flag.clone()));
            out.extend(judged.broken.into_keys());
            out.extend(judged.race.map(|r| r.0));
        }
        out
    }

    #[test]
    fn each_program_has_the_answer_that_it_shows() {
        for told in VERDICTS.iter().chain(RULES).filter(|t| !t.example.is_empty()) {
            let found = answers(told.example);
            assert!(found.contains(told.name), "{}: {found:?}\n{}", told.name, told.example);
        }
    }

    #[test]
    fn every_rule_of_the_shipped_models_is_told() {
        for name in moire_models::names() {
            let model = moire_models::load(name, &Variants::new()).unwrap();
            for check in model.checks().iter().filter(|c| c.flag) {
                assert!(rule(&check.name).is_some(), "{name}: {}", check.name);
            }
        }
        let texts = include_str!("../../../../worker/execution/src/leaf.rs");
        let own = texts.split("pub mod flag {").nth(1).unwrap().split("\n}").next().unwrap();
        let names: Vec<&str> = own.split('"').skip(1).step_by(2).collect();
        assert!(names.len() > 15);
        names.into_iter().for_each(|name| assert!(rule(name).is_some(), "{name}"));
    }

    #[test]
    fn a_page_is_wrapped_and_names_the_rules_of_a_verdict() {
        let text = page(verdict("race").unwrap(), &of_verdict("race"));
        let prose = text.split("A program").next().unwrap();
        assert!(prose.lines().all(|l| l.len() <= WIDTH), "{prose}");
        assert!(prose.contains("Its rules: uniform-race, tensor-race, register-race"), "{prose}");
        assert!(text.contains("moire \"mp-weak\"") && !text.contains("expect:"), "{text}");
    }
}
