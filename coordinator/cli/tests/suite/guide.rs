//! The guide and the README: every command in a block of output runs, and prints the lines that are shown.
//!
//! A block whose head is a language and a file name is saved as that file. In a block `text`, a line that starts with `$ moire` is
//! a command; the lines up to the next one are found in its output, in this order, and `...` stands for any lines between.

use crate::cli::moire;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of a page: head and text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(head) if !open => {
                open = true;
                out.push((head.to_owned(), String::new()));
            }
            Some(_) => open = false,
            None if open => {
                if let Some((_, text)) = out.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            None => {}
        }
    }
    assert!(!open, "a block has no end");
    out
}

/// The commands of a block, each with the lines that it prints.
fn commands(text: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let mut out: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("$ moire ") {
            out.push((words.split_whitespace().collect(), Vec::new()));
        } else if let Some((_, lines)) = out.last_mut()
            && line != "..."
            && !line.trim().is_empty()
        {
            lines.push(line);
        }
    }
    out
}

/// Runs the commands of a page in `folder`; their number.
fn follow(page: &Path, folder: &Path) -> usize {
    let mut count = 0;
    for (head, text) in blocks(&std::fs::read_to_string(page).unwrap()) {
        if let Some((_, name)) = head.split_once(' ') {
            std::fs::write(folder.join(name), &text).unwrap();
        }
        if head != "text" {
            continue;
        }
        for (words, lines) in commands(&text) {
            let out = moire(folder, &words);
            let said =
                format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
            assert!(matches!(out.status.code(), Some(0 | 10 | 11)), "moire {}: {said}", words.join(" "));
            let mut rest = said.lines();
            for line in lines {
                let found = rest.any(|l| l.trim_end().starts_with(line.trim_end()));
                assert!(found, "moire {} does not print, in this order: {line}\n{said}", words.join(" "));
            }
            count += 1;
        }
    }
    count
}

#[test]
fn the_tutorial_does_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    assert!(follow(&root().join("deploy/guide/tutorial.md"), folder.path()) >= 8);
}

/// What the tutorial says about a change of one of its files is so.
#[test]
fn what_the_tutorial_says_of_changes_holds() {
    let page = std::fs::read_to_string(root().join("deploy/guide/tutorial.md")).unwrap();
    let file = |name: &str| {
        let found = blocks(&page).into_iter().find(|b| b.0.ends_with(name));
        found.unwrap_or_else(|| panic!("the tutorial saves {name}")).1
    };
    let folder = tempfile::tempdir().unwrap();
    let changed = |name: &str, from: &str, to: &str, options: &[&str]| {
        let text = file(name);
        assert!(text.contains(from), "{name} has {from}");
        std::fs::write(folder.path().join(name), text.replacen(from, to, 1)).unwrap();
        let words: Vec<&str> = ["check"].iter().chain(options).chain([&name]).copied().collect();
        let out = moire(folder.path(), &words);
        let report = String::from_utf8(out.stdout).unwrap();
        report.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(changed("parity.litmus", "p, [full], 1;", "p, [full], 0;", &[]), "parity.litmus: clean");
    let (branch, barrier) = ("    @%p1 bra DONE;\n", "    bar.sync 0;\n");
    let front = changed("handover.ptx", branch, &format!("{barrier}{branch}"), &[]);
    assert_eq!(front, "handover.ptx: clean");
    let behind = changed("handover.ptx", branch, &format!("{branch}{barrier}"), &[]);
    assert_eq!(behind, "handover.ptx: race");
    // Two threads that write two locations in opposite order: sequential consistency leaves one of the first writes behind.
    std::fs::write(folder.path().join("my.cat"), file("my.cat")).unwrap();
    let both = |a: &str, b: &str| format!("st.relaxed.sys.u32 [{a}], 2; st.relaxed.sys.u32 [{b}], 1;");
    let text = format!(
        "moire \"2+2w\"\n.global .b32 x;\n.global .b32 y;\nP0 (gpu 0, cta 0) {{ {} }}\nP1 (gpu 0, cta 1) {{ {} }}\n\
         ~exists ([x] == 2 /\\ [y] == 2)\n",
        both("x", "y"),
        both("y", "x")
    );
    std::fs::write(folder.path().join("writes.litmus"), text).unwrap();
    let verdict =
        |model: &str| moire(folder.path(), &["check", "--model", model, "writes.litmus"]).status.code();
    assert_eq!(
        (verdict("my.cat"), verdict("ptx")),
        (Some(0), Some(10)),
        "the model is sequential consistency"
    );
}

#[test]
fn the_examples_do_what_their_page_says() {
    assert_eq!(follow(&root().join("deploy/examples/README.md"), &root()), 5);
}

#[test]
fn the_page_of_kernels_does_what_it_says() {
    assert_eq!(follow(&root().join("deploy/guide/kernels.md"), &root()), 1);
}

#[test]
fn the_readme_does_what_it_says() {
    assert_eq!(follow(&root().join("README.md"), &root()), 2);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 80, "the README has at most 80 lines");
    for (_, after) in readme.match_indices("](deploy/guide/").map(|(at, m)| (at, &readme[at + m.len()..])) {
        let name = after.split(')').next().unwrap();
        assert!(root().join("deploy/guide").join(name).is_file(), "{name}");
    }
}
