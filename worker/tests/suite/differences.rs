//! `worker/models/DIFFERENCES.md`: the results of the search for least differences. `BLESS=1` writes the file; the same
//! test compares it.

use moire_worker::difference::{Difference, Finding, Reach, least, shown};
use moire_worker::oracle::Oracles;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// Pairs besides those of the switches of `ptx`: versions, and settings that differ from those of `ptx`.
const PAIRS: &[(&str, &str)] = &[
    ("ptx-6.0", "ptx-7.5"),
    ("ptx-7.5", "ptx"),
    ("ptx-6.0", "ptx"),
    ("sc", "ptx"),
    ("any", "any:Q2=A"),
    ("any", "any:Q16=B"),
    ("sc", "sc:Q2=A"),
    ("sc", "sc:Q16=B"),
    ("ptx-6.0", "ptx-6.0:Q12=B"),
    ("ptx-7.5", "ptx-7.5:Q7=A"),
    ("ptx-7.5", "ptx-7.5:Q10=A"),
    ("ptx-7.5", "ptx-7.5:Q12=A"),
];

/// Results beyond the bound of the test, each with the command that found it.
const FURTHER: &[(&str, &str)] = &[];

/// Lists all pairs: versions, the switches of `ptx`, the rest.
fn pairs(oracles: &Oracles) -> Vec<(String, String)> {
    let owned = |(a, b): &(&str, &str)| (String::from(*a), String::from(*b));
    let mut out: Vec<(String, String)> = PAIRS[..4].iter().map(owned).collect();
    let ptx = oracles.model("ptx").expect("the shipped model loads");
    let mut switches: Vec<_> = ptx.switches().iter().collect();
    let number = |name: &str| {
        // Those about lanes have no number.
        let Some((family, number)) = name.split_once('Q') else { return (format!("Z{name}"), 0) };
        (family.to_owned(), number.parse::<u32>().expect("a number"))
    };
    switches.sort_by_key(|s| number(&s.name));
    for s in switches {
        let others = s.values.iter().filter(|v| **v != s.default);
        // An arm that touches registers alone is a branch only where a dependency is what is read.
        let with = if s.name == "Q14" { "Q17=A" } else { "" };
        let (first, comma) =
            if with.is_empty() { ("ptx".to_owned(), "") } else { (format!("ptx:{with}"), ",") };
        out.extend(others.map(|v| (first.clone(), format!("ptx:{}={v}{comma}{with}", s.name))));
    }
    out.extend(PAIRS[4..].iter().map(owned));
    out
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn section(oracles: &Oracles, (a, b): &(String, String), d: &Difference) -> String {
    let mut out = format!("\n## {a} and {b}\n\n");
    if let Some(setting) = b.split(':').nth(1).and_then(|s| s.split('=').next()) {
        let model = oracles.model(a).expect("loaded before");
        let doc = model.switches().iter().find(|s| s.name == setting).map(|s| s.doc.clone());
        let _ = writeln!(out, "{setting}: {}.\n", doc.unwrap_or_default());
    }
    let _ = writeln!(out, "```\n{}```\n", d.text);
    for (who, outcomes) in
        [("both", &d.both), (a, &d.first), (b, &d.second)].map(|(who, outcomes): (&str, _)| (who, outcomes))
    {
        let alone = if who == "both" { "Both allow" } else { "alone allows" };
        let head = if who == "both" { alone.to_owned() } else { format!("`{who}` {alone}") };
        let list: Vec<String> = outcomes.iter().map(|o| format!("- {}", shown(&d.program, o))).collect();
        match list.is_empty() {
            true => drop(writeln!(out, "{head} nothing.\n")),
            false => drop(writeln!(out, "{head}\n\n{}\n", list.join("\n"))),
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn document(oracles: &Oracles) -> (String, Vec<(String, String)>, Vec<Finding>) {
    let pairs = pairs(oracles);
    let names: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    let names: Vec<&String> = names.into_iter().collect();
    let at = |name: &String| names.binary_search(&name).expect("collected above");
    let models: Vec<_> = names.iter().map(|n| oracles.model(n).expect("loads")).collect();
    let numbers: Vec<(usize, usize)> = pairs.iter().map(|(a, b)| (at(a), at(b))).collect();
    let reach = Reach::shipped();
    let findings = least(&models, &numbers, &reach);
    let mut out = String::from(
        "# Where the models differ\n\nFor each pair the least program with different outcomes: fewest threads, then memory \
         events, then instructions,\nthen least text. `BLESS=1 cargo test -p moire-worker --test suite differences` writes this \
         file, the same test compares it;\n`moire models diff A B` finds the program of any pair, `--size` looks further. The readings of Tile IR are in \
         `DIFFERENCES-TILE.md`.\n\
         Switches that `ptx-6.0` and `ptx-7.5` share with `ptx` are one text (`lib-ptx.cat`, `lib-ptx-proxies.cat`).\n\n\
         | first | second | least difference |\n|---|---|---|\n",
    );
    for ((a, b), f) in pairs.iter().zip(&findings) {
        let found = match &f.least {
            Some(d) => format!(
                "{}, {}, {}",
                plural(d.size.0, "thread"),
                plural(d.size.1, "memory event"),
                plural(d.size.2, "instruction")
            ),
            None => {
                let note = elsewhere(b).map(|p| {
                    format!("; not of the instructions it is about, as `corpus/litmus/{p}.litmus` is")
                });
                format!("none in {} programs{}", f.tried, note.unwrap_or_default())
            }
        };
        let gaps = f.unanswered.iter().map(|(reason, n)| format!("; {n} programs not answered: {reason}"));
        let found = found + &gaps.collect::<String>();
        let _ = writeln!(out, "| `{a}` | `{b}` | {found} |");
    }
    out += "\n## Programs tried\n\nAll programs over each of these alphabets up to the size named, least size first.\n\n\
            | alphabet | made of | locations | threads | memory events | instructions |\n|---|---|---|---|---|---|\n";
    for a in &reach.alphabets {
        let (t, e, i) = a.most;
        let _ = writeln!(out, "| {} | {} | {} | {t} | {e} | {i} |", a.name, a.about, a.locations);
    }
    for (command, says) in FURTHER {
        let _ = writeln!(out, "\n`{command}`: {says}.");
    }
    for (pair, f) in pairs.iter().zip(&findings) {
        if let Some(d) = &f.least {
            out += &section(oracles, pair, d);
        }
    }
    (out, pairs, findings)
}

/// Whether no program can tell a pair apart, by the arguments in the digests and models:
///
/// - Q7, Q10 and Q12 if base causality contains program order, and therefore 7.5 and the current text;
/// - a failed cas that writes back the old value, if memory is sequentially consistent;
/// - the lanes of a warp that move together (TQ13);
/// - the halves of 128 bits, if no check binds even two bytes together.
fn is_equal(a: &str, b: &str) -> bool {
    let equal = ["Q7=A", "Q7=B", "Q10=A", "Q10=B", "Q12=A", "Q12=B", "TQ13=B"];
    let setting = b.split(':').nth(1).unwrap_or_default();
    (a, b) == ("ptx-7.5", "ptx")
        || b == "sc:Q16=B"
        || b == "any:Q2=A"
        || a != "ptx-6.0" && equal.contains(&setting)
}

/// Settings that can only be told apart by operations in no alphabet, each with a program that does.
const OUT_OF_REACH: &[(&str, &str)] = &[
    ("ptx:Q4=A", "copies/multicast"),
    ("ptx:Q4=C", "copies/multicast"),
    ("ptx:Q8=A", "mbarrier/q8-mixed-scopes"),
    ("ptx:Q9=A", "copies/store-publish"),
    ("ptx:Q11=C", "copies/ring-two-stages"),
    ("ptx:Q13=B", "copies/restricted-one-side"),
    ("ptx:TQ1=B", "tcgen05/mma-mma-kinds"),
    ("ptx:TQ2=B", "tcgen05/mma-mma-base"),
    ("ptx:TQ2=C", "tcgen05/mma-mma-cell"),
    ("ptx:TQ3=B", "tcgen05/cp-mma-relay-st"),
    ("ptx:TQ3=C", "tcgen05/cp-mma-relay-st"),
    ("ptx:TQ4=B", "tcgen05/mma-fences-ld"),
    ("ptx:TQ4=C", "tcgen05/mma-fences-ld"),
    ("ptx:TQ8=B", "tcgen05/commit-relay"),
    ("ptx:TQ12=B", "tcgen05/ld-st"),
    ("ptx:TQ22=B", "tcgen05/mma-threads-collector"),
    ("ptx:TQ28=B", "tcgen05/mma-fences-ld"),
    ("ptx:TQ30=B", "tcgen05/ld-use-mma-threads"),
    ("ptx:TQ5=B", "tcgen05/ld-mma-threads-no-before"),
    ("ptx:TQ6=B", "tcgen05/alloc"),
    ("ptx:TQ7=B", "tcgen05/ld-mma-threads-release"),
    ("ptx:TQ9=B", "tcgen05/commit-publishes"),
    ("ptx:TQ10=B", "tcgen05/ld-commit-threads"),
    ("ptx:TQ11=B", "tcgen05/mma-cp"),
    ("ptx:TQ14=B", "tcgen05/warp-sync"),
    ("ptx:TQ15=B", "tcgen05/relay-narrow-scope"),
    ("ptx:TQ16=B", "tcgen05/shared-write-after"),
    ("ptx:TQ17=B", "copies/remote-operand"),
    ("ptx:TQ17=C", "copies/remote-operand"),
    ("ptx:TQ17=D", "copies/remote-operand"),
    ("ptx:TQ27=B", "copies/init-proxy"),
    ("ptx:TQ31=B", "copies/load-cumulative"),
    ("ptx:TQ32=B", "tcgen05/alloc-under-copy"),
    ("ptx:TQ33=B", "tcgen05/commit-commit"),
    ("ptx:RV=B", "switches/rv-vote-inval"),
    ("ptx:WL=B", "switches/wl-elect-arrive"),
    ("ptx:TQ18=B", "tcgen05/pair-dealloc-crosswise"),
    ("ptx:TQ18=C", "tcgen05/pair-dealloc-crosswise"),
    ("ptx:TQ19=B", "tcgen05/pair-pipeline"),
    ("ptx:TQ21=B", "tcgen05/mma-mask"),
    ("ptx:TQ23=B", "tcgen05/dealloc-parts"),
    ("ptx:TQ24=B", "tcgen05/launch-exit-pending"),
    ("ptx:TQ26=B", "tcgen05/dealloc-mma"),
    ("ptx:TQ29=B", "tcgen05/launch-pair-not-started"),
    ("ptx:XC=B", "exit/store-pending"),
    ("ptx:XM=B", "exit/commit-pending"),
];

fn elsewhere(b: &str) -> Option<&'static str> {
    OUT_OF_REACH.iter().find(|(setting, _)| *setting == b).map(|(_, program)| *program)
}

#[test]
fn the_table_of_differences_is_the_result_of_the_search() {
    let oracles = Oracles::new();
    let (text, pairs, findings) = document(&oracles);
    for ((a, b), f) in pairs.iter().zip(&findings) {
        assert!(f.cut.is_none() && f.tried > 0);
        let none = is_equal(a, b) || elsewhere(b).is_some();
        assert_eq!(f.least.is_none(), none, "{a} and {b}: {:?}", f.least);
        // The document lists the programs that the engine abstains from. Only this setting has any.
        assert!(f.unanswered.is_empty() || b == "ptx:Q14=B,Q17=A", "{a} and {b}: {:?}", f.unanswered);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/DIFFERENCES.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the document can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} is out of date; BLESS=1 writes:\n{text}", path.display());
}
