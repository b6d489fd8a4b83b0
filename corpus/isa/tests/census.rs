//! Forms of our own, each with the answers of ptxas 13.5 for seven targets, against the book.
//!
//! The table was drawn and asked by `moire bench census --neighbours`; some of it is about operands that nobody writes.

use moire_isa::census::{Compared, Declared, Form, OWN};
use moire_isa::{Instr, Value};

/// The forms, each with what the book says.
fn compared() -> Vec<(Form<'static>, Compared)> {
    OWN.lines().filter_map(Form::of).map(|form| (form, form.compare())).collect()
}

/// At most so many of a thousand.
#[track_caller]
fn few(wrong: &[&str], all: usize, of_a_thousand: usize) {
    assert!(all > 500, "the table is there");
    assert!(wrong.len() * 1000 <= all * of_a_thousand, "{} of {all}: {wrong:#?}", wrong.len());
}

#[test]
fn what_ptxas_accepts_is_read() {
    let all = compared();
    let accepted: Vec<_> = all.iter().filter(|(form, _)| form.accepted()).collect();
    let lost: Vec<&str> =
        accepted.iter().filter(|(_, c)| c.read.is_err()).map(|(form, _)| form.text).collect();
    few(&lost, accepted.len(), 25);
}

#[test]
fn what_ptxas_refuses_is_refused() {
    let all = compared();
    let refused: Vec<_> = all.iter().filter(|(form, _)| !form.accepted()).collect();
    let taken: Vec<&str> = refused.iter().filter(|(_, c)| c.accepted()).map(|(form, _)| form.text).collect();
    few(&taken, refused.len(), 20);
}

#[test]
fn what_is_read_is_printed_back() {
    for (form, compared) in compared().iter().filter(|(_, c)| c.read.is_ok()) {
        assert!(compared.printed, "{} is printed as {}", form.text, compared.text);
    }
}

#[test]
fn targets_and_versions_are_those_of_ptxas() {
    let all = compared();
    let read: Vec<_> = all.iter().filter(|(form, c)| form.accepted() && c.read.is_ok()).collect();
    let wrong =
        |(form, c): &&&(Form<'static>, Compared)| form.targets != c.targets || form.version != c.version;
    let wrong: Vec<&str> = read.iter().filter(wrong).map(|(form, _)| form.text).collect();
    few(&wrong, read.len(), 5);
}

#[test]
fn weaker_forms_are_read_back() {
    let mut tried = 0;
    for form in OWN.lines().filter_map(Form::of) {
        let mut names = Declared::default();
        let Ok(instr) = Instr::read(form.text, &mut names) else { continue };
        for weaker in instr.weaker() {
            let text = weaker.print(&names);
            assert_eq!(Instr::read(&text, &mut names).as_ref(), Ok(&weaker), "{} became {text}", form.text);
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn every_register_is_seen() {
    for form in OWN.lines().filter_map(Form::of) {
        let Ok(instr) = Instr::read(form.text, &mut Declared::default()) else { continue };
        let mut seen = 0;
        instr.each(&mut |s| seen += usize::from(matches!(s.value, Value::Reg(_))));
        assert_eq!(seen, form.text.matches('%').count(), "{}", form.text);
    }
}
