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
