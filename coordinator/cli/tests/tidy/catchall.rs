//! No match over instructions has an arm for "anything else": the compiler refuses a forgotten instruction.
//!
//! A match counts if one of its arms names a variant of a type of instructions, and another arm, without a guard, names
//! nothing: `_`, a binding, `Some(_)`, `(_, other)`. `matches!`, `if let` and `let else` ask one question and may have
//! another answer for the rest. Code for tests is left out.
//! Sorts, such as `plain_op!()`, are names.

use super::circles::{Source, Token, behind_brackets, crates, made};

/// Types of instructions by the crate whose `use` names them, `moire_*` or `crate`.
const TYPES: &[(&str, &[&str])] = &[
    (
        "corpus/program",
        &[
            "Op",
            "Tcgen05",
            "AsyncCopy",
            "MbarrierOp",
            "Control",
            "Wgmma",
            "ProxyOrder",
            "TileOp",
            "TileKind",
            "TileToken",
        ],
    ),
    ("corpus/isa", &["Instr"]),
    ("corpus/tile-ir", &["Op"]),
];

/// Names that stand for a type of instructions in a file, aliases too.
fn names(folder: &str, source: &Source) -> Vec<String> {
    let types = |folder: &str| TYPES.iter().find(|(f, _)| *f == folder).map_or(&[][..], |(_, types)| types);
    let mut out = Vec::new();
    for (from, types) in TYPES {
        let outside = format!("moire_{}", from.rsplit('/').next().unwrap_or_default().replace('-', "_"));
        for import in &source.imports {
            let first = import.path.first().map_or("", String::as_str);
            let here = first == outside || (*from == folder && ["crate", "super", "self"].contains(&first));
            let last = import.path.last().map_or("", String::as_str);
            if here && types.contains(&last) {
                out.push(import.name.clone());
            } else if here && (import.name == "*" || last == "ir") {
                out.extend(types.iter().map(|t| (*t).to_owned()));
            }
        }
    }
    out.extend(types(folder).iter().filter(|t| source.defines.contains(**t)).map(|t| (*t).to_owned()));
    out
}

/// Whether a pattern names a variant of one of these types, or a sort of them.
fn names_one(pattern: &[Token], types: &[String]) -> bool {
    let sort = |w: &[Token]| w[1].is('!') && w[0].word().is_some_and(|w| w.ends_with("_op"));
    let variant =
        |w: &[Token]| w[1] == Token::PathSep && w[0].word().is_some_and(|w| types.iter().any(|t| t == w));
    pattern.windows(2).any(|w| sort(w) || variant(w))
}

/// Whether a pattern without a guard refuses nothing but the absence of a value.
fn catches_all(pattern: &[Token]) -> bool {
    let binds = |word: &str| {
        ["Some", "Ok"].contains(&word) || !word.starts_with(|c: char| c.is_uppercase() || c.is_numeric())
    };
    let plain = |token: &Token| match token {
        Token::Word(word) => !["if", "true", "false", "None"].contains(&word.as_str()) && binds(word),
        Token::Mark(mark) => "(),&.".contains(*mark),
        Token::PathSep => false,
    };
    !pattern.is_empty() && pattern.iter().all(plain)
}

/// Position of the first of these marks outside brackets, from `at` on.
fn first_mark(tokens: &[Token], mut at: usize, found: &dyn Fn(&[Token]) -> bool) -> usize {
    while at < tokens.len() && !found(&tokens[at..]) {
        at = match tokens[at] {
            Token::Mark('(' | '[' | '{') => behind_brackets(tokens, at),
            Token::PathSep if tokens.get(at + 1).is_some_and(|t| t.is('<')) => {
                behind_generics(tokens, at + 1)
            }
            _ => at + 1,
        };
    }
    at
}

/// Position behind the angle brackets that open at `at`.
fn behind_generics(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        depth += i32::from(token.is('<')) - i32::from(token.is('>') && !tokens[i - 1].is('-'));
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// The patterns of the arms between the braces of a match.
fn patterns(arms: &[Token]) -> Vec<&[Token]> {
    let arrow = |rest: &[Token]| rest.len() > 1 && rest[0].is('=') && rest[1].is('>');
    let (mut out, mut at) = (Vec::new(), 0);
    while at < arms.len() {
        let end = first_mark(arms, at, &arrow);
        out.push(&arms[at..end.min(arms.len())]);
        let body = end + 2;
        at = if arms.get(body).is_some_and(|t| t.is('{')) {
            behind_brackets(arms, body)
        } else {
            first_mark(arms, body, &|rest| rest[0].is(','))
        };
        at += usize::from(arms.get(at).is_some_and(|t| t.is(',')));
    }
    out
}

/// How many matches over these types have an arm for anything else.
fn count(tokens: &[Token], types: &[String]) -> usize {
    let starts = tokens.iter().enumerate().filter(|(_, t)| t.word() == Some("match"));
    let open = |rest: &[Token]| rest[0].is('{');
    let bad = |at: usize| {
        let from = first_mark(tokens, at + 1, &open);
        let to = behind_brackets(tokens, from);
        let arms = patterns(tokens.get(from + 1..to - 1).unwrap_or_default());
        arms.iter().any(|p| names_one(p, types)) && arms.iter().any(|p| catches_all(p))
    };
    starts.filter(|(at, _)| bad(*at)).count()
}

#[test]
fn no_instruction_is_anything_else() {
    let mut found = Vec::new();
    for (folder, read) in crates() {
        for source in &read.sources {
            let matches = count(&source.tokens, &names(&folder, source));
            found.extend((matches > 0).then(|| format!("{folder}/src/{}: {matches}", source.file)));
        }
    }
    assert!(
        found.is_empty(),
        "matches over instructions have an arm for anything else\n{}",
        found.join("\n")
    );
}

#[test]
fn an_arm_for_anything_else_is_found() {
    let found = made(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
        (
            "a.rs",
            "use moire_program::ir::{Op, Tcgen05 as T}; fn f() {
             match op { Op::Exit => g::<A, B>(), Op::Bra { to } if to > 1 => {} _ => {} }
             match (&op, n) { (Op::Exit, _) => 1, (_, other) => other }
             match tensor { Some(T::WaitLoad | T::WaitStore) => 1, Some(_) => 2, None => 3 }
             match op { Op::Exit => match n { 1 => 2, _ => 3 }, other => h(other), } }",
        ),
        (
            "b.rs",
            "use moire_program::ir::Op; fn f() {
             match op { Op::Exit => match n { 1 => 2, _ => 3 }, Op::Bra { .. } => 1 }
             match op { Op::Exit => 1, Op::Bra { .. } if n => 2, Op::Bra { .. } => 3 }
             let n = matches!(op, Op::Exit); match n { 1 => Op::Exit, _ => Op::ClusterWait } }
             #[cfg(test)] mod tests { fn g() { match op { Op::Exit => 1, _ => 2 } } }",
        ),
        ("c.rs", "use moire_corpus::Op; fn f() { match op { Op::Put => 1, _ => 2 } }"),
        ("d.rs", "use moire_tile_ir::Op; fn f() { match op { Op::Iota => 1, _ => 2 } }"),
        ("e.rs", "use moire_isa::Instr; fn f() { match i { Instr::Ret(_) => 1, other => 2 } }"),
    ]);
    let counts: Vec<usize> = found.sources.iter().map(|s| count(&s.tokens, &names("worker/x", s))).collect();
    assert_eq!(counts, [0, 4, 0, 0, 1, 1]);
}
