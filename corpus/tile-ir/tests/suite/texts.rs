//! Published Tile IR texts: thirty kernels in the form of NVIDIA's disassembler, and verdicts of its verifier. The suites
//! lie outside this repository; if they are missing, the tests say so and pass.

use moire_tile_ir::text::{parse, print};
use moire_tile_ir::{Module, Reason, verify};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub(crate) fn outside(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: ../shared/{name} is not there");
    None
}

/// Renames values to their position in the order of definitions, so equal programs give equal texts. Keeps inner blanks.
fn anonymous(text: &str) -> String {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let (mut out, mut next) = (String::new(), 0);
    for line in text.lines().map(str::trim) {
        let equals = line.find(" = ").unwrap_or(0);
        let mut at = 0;
        while let Some(start) = line[at..].find('%').map(|i| at + i) {
            out.push_str(&line[at..start]);
            let end = line[start + 1..].find(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c)));
            at = end.map_or(line.len(), |e| start + 1 + e);
            // Another block may define a name again; the latest definition counts.
            let head = start < equals && (line.starts_with('%') || line.starts_with("for "));
            let defines = head || line[at..].starts_with(" = ") || line[at..].starts_with(" in (");
            if defines || !names.contains_key(&line[start..at]) {
                names.insert(&line[start..at], next);
                next += 1;
            }
            out.push_str(&format!("%{}", names[&line[start..at]]));
        }
        out.push_str(&line[at..]);
        out.push('\n');
    }
    out
}

fn round_trip(module: &Module) -> String {
    let printed = print(module);
    let again = parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert_eq!(&again, module, "{printed}");
    assert_eq!(print(&again), printed);
    printed
}

#[test]
fn published_kernels_are_read_and_print_as_they_were() {
    let Some(folder) = outside("spec/examples-tile-ir") else { return };
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "tile") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let module = parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(verify(&module), [], "{}", path.display());
        assert_eq!(anonymous(&round_trip(&module)), anonymous(&text), "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 30);
}

/// Parts of messages of NVIDIA's verifier, each with our class.
const CLASSES: &[(&str, Reason)] = &[
    ("works only with", Reason::AtomicType),
    ("arg, mask} have same shape", Reason::MaskShape),
    ("have same shape", Reason::Shape),
    ("expected pointee type", Reason::Pointee),
    ("following enum values for attribute 'memory_ordering_semantics'", Reason::Word),
    ("only 'relaxed' memory ordering", Reason::Ordering),
    ("views with padding_value", Reason::PaddedView),
    ("two or more tokens", Reason::Tokens),
    ("must be tile of Pointer type", Reason::Pointer),
    ("shape of 'mask'", Reason::MaskShape),
    ("type of 'paddingValue'", Reason::Padding),
    ("must be tile of i1", Reason::Mask),
    ("expect one of: weak, relaxed, or", Reason::Ordering),
    ("must not have memory scope", Reason::ScopeUnwanted),
    ("expected no memory scope", Reason::ScopeUnwanted),
    // For an unknown word in place of a scope, its parser expects the operand.
    ("expected SSA operand", Reason::Word),
    ("expects different type than prior uses", Reason::ValueType),
    ("invalid memory_ordering_semantics", Reason::Word),
    ("invalid memory_scope", Reason::Word),
    ("memory scope is required", Reason::ScopeMissing),
    ("expected tile type to be", Reason::ViewTile),
    ("index operands (based on view type)", Reason::IndexCount),
    ("expected index type", Reason::IndexType),
];

fn verdict(text: &str) -> Result<Module, (Reason, String)> {
    let module = parse(text).map_err(|e| (Reason::named(e.0.rule.unwrap()).unwrap(), e.to_string()))?;
    match verify(&module).into_iter().next() {
        Some(fault) => Err((fault.reason, fault.to_string())),
        None => Ok(module),
    }
}

#[test]
fn published_verdicts_are_ours() {
    let Some(folder) = outside("litmus/cuda-tile-memops") else { return };
    let table = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
    let mut counts = [0, 0];
    for row in table.lines().skip(1) {
        let fields: Vec<&str> = row.splitn(4, ',').collect();
        let text = std::fs::read_to_string(folder.join(fields[0])).unwrap();
        let got = verdict(&text);
        if fields[3] == "ACCEPT" {
            let module = got.unwrap_or_else(|(reason, why)| panic!("{row}: {reason:?} {why}"));
            round_trip(&module);
            counts[0] += 1;
            continue;
        }
        let want = CLASSES.iter().find(|(part, _)| fields[3].contains(part)).map(|(_, reason)| *reason);
        let Err((reason, why)) = got else { panic!("{row}: accepted") };
        assert_eq!(Some(reason), want, "{row}: {why}");
        counts[1] += 1;
    }
    assert_eq!(counts, [6, 37]);
}
