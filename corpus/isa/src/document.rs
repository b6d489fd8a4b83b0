//! The page of the documentation: a row an entry, made from the entries themselves.

use crate::book::BOOK;
use crate::entry::{Entry, Standing};
use crate::kind::{On, Since};
use crate::operand::Role;
use std::fmt::Write;

/// What stands above the table.
const HEAD: &str = "# Instructions

Each row is an entry of the book of instructions (`corpus/isa/src/book`), from which reader, printer, refusals, versions and
targets follow. A test keeps this page equal to it; `cargo run -p moire-isa --example document` prints it anew.

Qualifiers stand in the order in which they are printed, and may be read in any. A qualifier is part of the meaning, or *about
speed only*, or **abstained from**: an instruction that says it is named as not judged. Operands stand in the order of the text;
`>` marks what is written. Sections are anchors of the PTX ISA. Versions and targets are those of the plainest form; words and
combinations of them may need newer ones.

| name | what it does | section | since | qualifiers | operands |
|---|---|---|---|---|---|
";

/// The page.
#[must_use]
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    for entry in BOOK {
        row(entry, &mut out);
    }
    out
}

fn row(entry: &Entry, out: &mut String) {
    let names: Vec<String> = (entry.names)().iter().map(|name| format!("`{name}`")).collect();
    let fixed = |words: &[&str]| words.iter().map(|word| format!("`.{word}`")).collect::<Vec<_>>();
    let slots = entry.slots.iter().map(|slot| match slot.standing {
        Standing::Keep => slot.name.to_owned(),
        Standing::Speed => format!("*{}*", slot.name),
        Standing::Abstain => format!("**{}**", slot.name),
    });
    let slots: Vec<String> =
        fixed(entry.fixed[0]).into_iter().chain(slots).chain(fixed(entry.fixed[1])).collect();
    let operands: Vec<String> = entry.operands.iter().map(|part| operand(part.name, part.role)).collect();
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} | {} | {} |",
        names.join(" "),
        entry.about.trim().trim_end_matches('.'),
        entry.section,
        since(entry.since),
        slots.join(" "),
        operands.join(", ")
    );
}

fn operand(name: &str, role: Role) -> String {
    match role {
        Role::Write | Role::Update => format!("{name}>"),
        Role::Hint => format!("*{name}*"),
        Role::Known | Role::Data | Role::Loose | Role::Opaque => name.to_owned(),
    }
}

/// `8.0, sm_90`
fn since((ptx, on): Since) -> String {
    let version = format!("{}.{}", ptx / 10, ptx % 10);
    match on {
        On::Any => version,
        On::From(sm) => format!("{version}, sm_{sm} on"),
        On::Only(some) => {
            let names: Vec<String> = some.iter().map(|sm| format!("sm_{sm}")).collect();
            format!("{version}, {}", names.join(" "))
        }
    }
}
