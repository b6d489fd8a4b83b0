//! What commands say of what others wrote, and of what a store has lost.

use crate::cli::moire;

/// Escape sequences of others are shown and not obeyed, wherever a command prints them.
#[test]
fn what_others_wrote_does_not_act_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m";
    let store = folder.path().join("store");
    let (mut open, _) = moire_corpus::Store::open(&store, moire_corpus::Options::default()).unwrap();
    let finding = moire_corpus::Finding {
        id: moire_corpus::Hash([7; 32]),
        oracle: format!("self{bad}"),
        rule: bad.to_owned(),
        reduced: format!("a program {bad}\n"),
        axioms: vec![vec![bad.to_owned()]],
        ..moire_corpus::Finding::default()
    };
    open.commit([moire_corpus::Write::Finding(Box::new(finding))]).unwrap();
    drop(open);
    let file = format!("bad{bad}.litmus");
    std::fs::write(folder.path().join(&file), "moire \"\u{1b}[2J\"\nwhat\n").unwrap();
    let missing = format!("missing{bad}.litmus");
    let commands: [&[&str]; 6] = [
        &["findings", "list", "--store", "store"],
        &["findings", "show", "07070707", "--store", "store"],
        &["report", "--store", "store", "--out", "report"],
        &["check", &file],
        &["check", &missing],
        &["replay", bad],
    ];
    for args in commands {
        let out = moire(folder.path(), args);
        for text in [&out.stdout, &out.stderr] {
            let text = String::from_utf8_lossy(text);
            let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            assert!(!text.chars().any(acts), "{args:?}: {text:?}");
        }
        assert!(!out.stdout.is_empty() || !out.stderr.is_empty(), "{args:?}");
    }
    let summary = std::fs::read_to_string(folder.path().join("report/summary.md")).unwrap();
    assert!(summary.contains("u001b") && !summary.contains('\u{1b}'), "{summary}");
}

/// A store whose log was damaged: every command that opens it says so and does not exit with 0, until somebody
/// acknowledges it; what the index still has is put back.
#[test]
fn a_loss_is_said_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (mut open, _) = moire_corpus::Store::open(&store, moire_corpus::Options::default()).unwrap();
    for n in 1..5 {
        let finding = moire_corpus::Finding {
            id: moire_corpus::Hash([n; 32]),
            reduced: format!("program {n}"),
            ..moire_corpus::Finding::default()
        };
        open.commit([moire_corpus::Write::Finding(Box::new(finding))]).unwrap();
    }
    drop(open);
    let log = store.join("findings.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(9).position(|w| w == b"program 3").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let run = |args: &[&str]| {
        let out = moire(folder.path(), args);
        let text = [out.stdout, out.stderr].map(|t| String::from_utf8_lossy(&t).into_owned()).concat();
        (out.status.code(), text)
    };
    let says = |args: &[&str]| {
        let (code, text) = run(args);
        assert_eq!(code, Some(11), "{args:?}: {text}");
        assert!(text.contains("1 of 4 commits are missing"), "{args:?}: {text}");
        text
    };
    assert!(says(&["findings", "list", "--store", "store"]).contains("LOST"));
    says(&["findings", "list", "--store", "store"]);
    says(&["campaign", "list", "--store", "store"]);
    // A look at the summary is no report that the next one is compared with.
    for _ in 0..2 {
        let summary = says(&["report", "--store", "store"]);
        assert!(summary.contains("First report of this store"), "{summary}");
        assert!(summary.contains("**LOST**: the log was damaged"), "{summary}");
    }
    says(&["report", "--store", "store", "--out", "report"]);
    let report = std::fs::read_to_string(folder.path().join("report/summary.md")).unwrap();
    assert!(report.contains("**LOST**: the log was damaged"), "{report}");
    assert_eq!(run(&["store", "fsck", "--store", "store"]).0, Some(10));
    assert!(says(&["store", "repair", "--from-index", "--store", "store"]).contains("1  findings put back"));
    assert_eq!(run(&["store", "acknowledge", "--why", "an old disk", "--store", "store"]).0, Some(0));
    let (code, text) = run(&["findings", "list", "--store", "store"]);
    assert!(code == Some(0) && !text.contains("LOST") && text.contains("03030303"), "{text}");
    assert_eq!(run(&["store", "fsck", "--store", "store"]).0, Some(0));
}
