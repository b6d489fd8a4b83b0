//! Parses the output of `driver.py`: programs of the lab, and the kinds of finding on each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One operation: verb, arguments, keys, flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabOp {
    pub(crate) verb: String,
    pub(crate) args: Vec<String>,
    keys: BTreeMap<String, String>,
    flags: BTreeSet<String>,
}

impl LabOp {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    pub(crate) fn key(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// Returns the list that a key holds.
    pub(crate) fn list(&self, key: &str) -> Vec<&str> {
        self.key(key).unwrap_or_default().split(',').filter(|w| !w.is_empty()).collect()
    }

    pub(crate) fn arg(&self, n: usize) -> &str {
        self.args.get(n).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, n: usize) -> u32 {
        self.arg(n).parse().unwrap_or(0)
    }

    /// Whether the operation is one of both CTAs of a pair.
    pub(crate) fn pair(&self) -> bool {
        self.key("g") == Some("2")
    }
}

/// A warp, a thread, or threads that move together.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabAgent {
    pub(crate) name: String,
    pub(crate) cta: u16,
    pub(crate) size: u32,
    pub(crate) gpu: u16,
    pub(crate) warp: u16,
    pub(crate) ops: Vec<LabOp>,
}

/// The agents that meet at a named barrier or at `bar.warp.sync`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) warp: bool,
    pub(crate) cta: u16,
    pub(crate) id: String,
    pub(crate) total: u32,
    pub(crate) size: u32,
    pub(crate) members: Vec<String>,
}

/// A program with the lab's answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabProgram {
    pub(crate) name: String,
    pub(crate) half: String,
    /// The edit that made the mutant; empty for the original program.
    pub(crate) edit: String,
    /// For each mbarrier: its name with CTA, whether it is valid at the start, its count.
    pub(crate) mbarriers: Vec<(String, bool, u32)>,
    pub(crate) meta: Vec<String>,
    pub(crate) groups: Vec<Group>,
    pub(crate) agents: Vec<LabAgent>,
    /// Kinds of finding by setting.
    pub(crate) kinds: BTreeMap<String, BTreeSet<String>>,
}

/// Finds the folder of the lab beside this checkout.
pub(crate) fn folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|a| a.join("shared/tcgen05-lab")).find(|p| p.join("tcref.py").is_file())
}

/// Reads the original programs, or this number of mutants. `None`, with a printed line, if something is missing.
pub(crate) fn programs(seed: u64, mutants: u64) -> Option<Vec<LabProgram>> {
    let Some(folder) = folder() else {
        eprintln!("skipped: no shared/tcgen05-lab beside this checkout");
        return None;
    };
    if !Command::new("python3").arg("--version").output().is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: python3 does not run");
        return None;
    }
    let mut command = Command::new("python3");
    command.args(["-c", include_str!("driver.py")]).arg(folder);
    command.args([seed.to_string(), mutants.to_string()]).env("PYTHONHASHSEED", "0");
    let output = command.output().expect("python3 ran before");
    assert!(output.status.success(), "the driver failed: {}", String::from_utf8_lossy(&output.stderr));
    Some(parse(&String::from_utf8_lossy(&output.stdout)))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn parse(text: &str) -> Vec<LabProgram> {
    let (mut out, mut now) = (Vec::new(), LabProgram::default());
    for line in text.lines() {
        let f: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| f[i].parse::<u32>().unwrap_or_else(|_| panic!("a number: {line}"));
        let small = |i: usize| u16::try_from(number(i)).unwrap_or_else(|_| panic!("too large: {line}"));
        match f[0] {
            "program" => {
                let [name, half, edit] = [1, 2, 3].map(|i| f[i].to_owned());
                now = LabProgram { name, half, edit, ..LabProgram::default() };
            }
            "mbar" => now.mbarriers.push((f[1].to_owned(), f[2] == "1", number(3))),
            "meta" => now.meta = words(f[1]),
            "group" => now.groups.push(Group {
                warp: f[1] == "1",
                cta: small(2),
                id: f[3].to_owned(),
                total: number(4),
                size: number(5),
                members: words(f[6]),
            }),
            "agent" => now.agents.push(LabAgent {
                name: f[1].to_owned(),
                cta: small(2),
                size: number(3),
                gpu: small(4),
                warp: small(5),
                ops: Vec::new(),
            }),
            "op" => {
                let keys = words(f[3]);
                let keys = keys.iter().filter_map(|k| k.split_once('='));
                let op = LabOp {
                    verb: f[1].to_owned(),
                    args: words(f[2]),
                    keys: keys.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
                    flags: words(f[4]).into_iter().collect(),
                };
                now.agents.last_mut().expect("an agent comes first").ops.push(op);
            }
            "kinds" => drop(now.kinds.insert(f[1].to_owned(), words(f[2]).into_iter().collect())),
            "end" => out.push(std::mem::take(&mut now)),
            _ => panic!("not understood: {line}"),
        }
    }
    out
}
