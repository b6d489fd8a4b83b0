//! Baselines and suppressions: what is known does not fail, is said beside the verdict, and is never clean.

use super::cli::moire;
use serde_json::Value;
use std::path::Path;

const RACE: &str = include_str!("../../../../deploy/examples/message.litmus");

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn check(folder: &Path, words: &[&str]) -> Ran {
    let out = moire(folder, &[&["check"], words].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: out.status.code(), out: text(&out.stdout), err: text(&out.stderr) }
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
    folder
}

/// The day that is so many days from now.
fn day(from_now: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let day = i64::try_from(now).unwrap() + from_now * 86_400_000;
    moire_coordinator::report::dates::day(u64::try_from(day).unwrap())
}

/// The program with a comment above its first access.
fn with(comment: &str) -> String {
    RACE.replacen("  st.weak", &format!("  // {comment}\n  st.weak"), 1)
}

#[test]
fn what_the_baseline_has_does_not_fail() {
    let here = folder(&[("m.litmus", RACE)]);
    let before =
        check(here.path(), &["m.litmus", "--report", "json=known.json", "--report", "text=said.txt"]);
    assert_eq!(before.code, Some(10), "{}", before.err);
    assert_eq!(std::fs::read_to_string(here.path().join("said.txt")).unwrap(), before.out);
    let known = ["m.litmus", "--baseline", "known.json"];
    let again = check(here.path(), &known);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    assert!(
        again.out.starts_with("m.litmus: race\n  known: the baseline has race at lines 6, 14\n"),
        "{}",
        again.out
    );
    // Lines that move change nothing; something new fails; so does the same in another file.
    std::fs::write(here.path().join("m.litmus"), format!("// moved\n{RACE}")).unwrap();
    assert_eq!(check(here.path(), &known).code, Some(0));
    let more = RACE.replace("  st.relaxed", "  st.weak.u32 [more], 1;\n  st.relaxed");
    let more = more
        .replace("  ld.weak", "  ld.weak.u32 r2, [more];\n  ld.weak")
        .replace(".global .b32 flag", ".global .b32 more;\n.global .b32 flag");
    std::fs::write(here.path().join("m.litmus"), more).unwrap();
    let new = check(here.path(), &known);
    assert!(new.code == Some(10) && new.out.contains("known: the baseline has"), "{}{}", new.out, new.err);
    std::fs::write(here.path().join("n.litmus"), RACE).unwrap();
    assert_eq!(check(here.path(), &["n.litmus", "--baseline", "known.json"]).code, Some(10));
    // What is gone is said.
    std::fs::write(
        here.path().join("m.litmus"),
        include_str!("../../../../deploy/examples/message-mended.litmus"),
    )
    .unwrap();
    let gone = check(here.path(), &known);
    let said = "m.litmus: race at lines 6, 14 of the baseline is gone";
    assert!(gone.code == Some(0) && gone.err.contains(said), "{}{}", gone.out, gone.err);
    std::fs::write(here.path().join("known.json"), "no json\n").unwrap();
    let bad = check(here.path(), &known);
    assert!(bad.code == Some(2) && bad.err.contains("known.json:1: "), "{}", bad.err);
}

#[test]
fn a_suppression_has_a_reason_an_owner_and_an_end() {
    let until = day(20);
    let comment = format!("moire: suppress race until {until} by ann: old bytes will do");
    let here = folder(&[("m.litmus", &with(&comment))]);
    let ran = check(here.path(), &["m.litmus"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let said =
        format!("  suppressed: race at lines 7, 15, by ann until {until}: old bytes will do (m.litmus:6)\n");
    assert!(ran.out.starts_with("m.litmus: race\n") && ran.out.contains(&said), "{}", ran.out);
    let sarif = check(here.path(), &["m.litmus", "--format", "sarif"]);
    let sarif: Value = serde_json::from_str(&sarif.out).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["suppressions"][0]["kind"], &result["level"]), (&"inSource".into(), &"note".into()));
    let junit = check(here.path(), &["m.litmus", "--format", "junit"]);
    assert!(junit.code == Some(0) && junit.out.contains("<skipped"), "{}", junit.out);
    // Another rule, or another line, is not this problem.
    for text in
        [with(&comment.replace("race", "hang")), RACE.replacen("P0 (", &format!("// {comment}\nP0 ("), 1)]
    {
        std::fs::write(here.path().join("m.litmus"), text).unwrap();
        let ran = check(here.path(), &["m.litmus"]);
        assert!(
            ran.code == Some(10) && ran.err.contains("ann suppresses is not there any more"),
            "{}",
            ran.err
        );
    }
    for bad in [
        "moire: suppress race",
        "moire: suppress race until 2027-02-31 by ann: x",
        "moire: suppress race until 10d by ann:",
    ] {
        std::fs::write(here.path().join("m.litmus"), with(bad)).unwrap();
        let ran = check(here.path(), &["m.litmus"]);
        assert!(ran.code == Some(2) && ran.err.contains("m.litmus:6"), "{bad}: {:?} {}", ran.code, ran.err);
    }
}

#[test]
fn a_suppression_that_is_over_fails() {
    let until = day(-1);
    let here = folder(&[("m.litmus", &with(&format!("moire: suppress race until {until} by ann: later")))]);
    let ran = check(here.path(), &["m.litmus"]);
    assert_eq!(ran.code, Some(10), "{}", ran.out);
    assert!(ran.out.contains(&format!("what ann wrote ended on {until}: later (m.litmus:6)")), "{}", ran.out);
}

#[test]
fn suppressions_stand_in_a_file_beside_the_kernel() {
    let until = day(20);
    let list = |more: &str| {
        format!(
            "[[suppress]]\nfile = \"m.litmus\"\nuntil = {until}\nowner = \"ann\"\nreason = \"old bytes will do\"\n{more}\n"
        )
    };
    let here = folder(&[("m.litmus", RACE), ("n.litmus", RACE)]);
    let print = |file: &str| {
        let answer: Value =
            serde_json::from_str(&check(here.path(), &[file, "--format", "json"]).out).unwrap();
        answer["problems"][0]["fingerprint"].as_str().unwrap().to_owned()
    };
    let print = print("m.litmus");
    for (more, code) in [
        ("rule = \"race\"".to_owned(), 0),
        (format!("finding = \"{print}\""), 0),
        ("finding = \"0\"".to_owned(), 10),
    ] {
        std::fs::write(here.path().join("moire.toml"), list(&more)).unwrap();
        let ran = check(here.path(), &["m.litmus"]);
        assert_eq!(ran.code, Some(code), "{more}: {}{}", ran.out, ran.err);
        assert_eq!(ran.err.contains("is not there any more"), code == 10, "{more}: {}", ran.err);
        assert_eq!(check(here.path(), &["n.litmus"]).code, Some(10), "another file");
    }
    for bad in ["", "rule = 3", "rule = \"race\"\nwho = \"x\"", "rule = \"race\"\n[x]\n", "rule ="] {
        std::fs::write(here.path().join("moire.toml"), list(bad)).unwrap();
        let ran = check(here.path(), &["m.litmus"]);
        assert!(ran.code == Some(2) && ran.err.contains("moire.toml"), "{bad}: {:?} {}", ran.code, ran.err);
    }
}

#[test]
fn what_is_not_decided_stays_so() {
    let until = day(20);
    let comment = format!("moire: suppress race until {until} by ann: old bytes will do");
    let here = folder(&[("m.litmus", &with(&comment))]);
    let ran = check(here.path(), &["m.litmus", "--limit", "1"]);
    assert_eq!(ran.code, Some(11), "{}{}", ran.out, ran.err);
}

#[test]
fn what_is_wrong_by_the_letter_only_is_known_one_by_one() {
    let here = folder(&[("k.ptx", include_str!("../../../../corpus/ptx/unfenced.ptx"))]);
    let strict = ["k.ptx", "--strict", "--baseline", "known.json"];
    let all = check(here.path(), &["k.ptx", "--strict", "--report", "json=known.json"]);
    assert_eq!(all.code, Some(10), "{}", all.out);
    assert_eq!(check(here.path(), &strict).code, Some(0));
    let list = here.path().join("known.json");
    let mut answer: Value = serde_json::from_str(&std::fs::read_to_string(&list).unwrap()).unwrap();
    let problems = answer["problems"].as_array_mut().unwrap();
    assert!(problems.len() == 2 && problems.iter().all(|p| p["letter"] == true), "{problems:?}");
    problems.pop();
    std::fs::write(&list, answer.to_string()).unwrap();
    assert_eq!(check(here.path(), &strict).code, Some(10));
}
