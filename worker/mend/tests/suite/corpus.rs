//! The share of wrong programs of the corpus that get advice, each piece verified again by explorer and enumerator.

use crate::shared::{Under, programs, read};
use moire_explore::judge::Verdict;
use moire_mend::{Why, describe, patch};
use moire_naive::NaiveLimits;
use moire_naive::leaves as naive_leaves;
use moire_program::edit::{Edit, apply};
use moire_program::ir::{MbarrierOp, Op, Operand, Parts, Program, Quantifier};
use std::collections::BTreeMap;

/// Verdicts of programs that advice is for.
fn wrong(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Race | Verdict::Hang | Verdict::Lifetime | Verdict::Protocol | Verdict::EarlyPass
    )
}

/// Whether an edit keeps what the program does: it takes nothing out, and it changes no count of threads, arrivals or bytes.
fn keeps(program: &Program, edit: &Edit) -> bool {
    let counts = |op: &Op| -> Option<Vec<Operand>> {
        let numbers = |op: &Op| op.sources().into_iter().filter(|o| matches!(o, Operand::Imm(_))).collect();
        match op {
            Op::Mbarrier(m) if !matches!(m.op, MbarrierOp::Wait(_)) => Some(numbers(op)),
            Op::Bar { count, .. } => Some(count.iter().copied().collect()),
            _ => None,
        }
    };
    match edit {
        Edit::Insert { .. } => true,
        Edit::Replace { thread, at, op } => {
            let before = &program.threads[*thread].body[*at].op;
            counts(op).is_none_or(|after| counts(before) == Some(after))
        }
        Edit::Delete { .. } => false,
    }
}

#[derive(Default)]
struct Share {
    wrong: usize,
    advised: usize,
    weakest: usize,
    enumerated: usize,
    patched: usize,
    /// Programs without advice that state with `exists` what only the mistake makes possible.
    pinned: usize,
}

impl Share {
    fn add(&mut self, other: &Share) {
        self.wrong += other.wrong;
        self.advised += other.advised;
        self.weakest += other.weakest;
        self.enumerated += other.enumerated;
        self.patched += other.patched;
        self.pinned += other.pinned;
    }

    fn row(&self, name: &str) -> String {
        let Share { wrong, advised, weakest, enumerated, patched, pinned } = self;
        format!(
            "{name:16} wrong {wrong:3}, advised {advised:3}, weakest {weakest:3}, enumerated {enumerated:3}, patched \
             {patched:3}, pinned {pinned:3}"
        )
    }
}

#[test]
fn advice_for_the_corpus_is_verified_by_both_engines() {
    let ptx = Under::new("ptx");
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    let only = std::env::var("MEND_ONLY").unwrap_or_default();
    for (path, text) in programs("").into_iter().filter(|(p, _)| p.to_string_lossy().contains(&only)) {
        let program = read(&text);
        if !ptx.judge(&program).verdicts.iter().any(wrong) {
            continue;
        }
        let folder =
            path.parent().and_then(|p| p.file_name()).map_or(String::new(), |n| n.to_string_lossy().into());
        let share = shares.entry(folder).or_default();
        share.wrong += 1;
        let name = path.display();
        let begin = std::time::Instant::now();
        match ptx.mend(&program, None) {
            Ok(advice) => {
                share.advised += 1;
                share.weakest += usize::from(advice.weakest);
                println!("{name}: {:?}, {} explorations", begin.elapsed(), advice.explorations);
                describe(&program, &advice.steps).iter().for_each(|line| println!("    {line}"));
                assert_eq!(apply(&program, &advice.edits()).as_ref(), Some(&advice.program), "{name}");
                assert!(
                    advice.steps.iter().flatten().all(|e| keeps(&program, e)),
                    "{name}: {:?}",
                    advice.steps
                );
                let fixed = patch::native(&text, &program, &advice.edits(), &advice.program);
                if let Some(fixed) = fixed {
                    share.patched += 1;
                    assert!(ptx.is_clean(&read(&fixed)), "{name}\n{fixed}");
                }
                if let Ok((leaves, _)) = naive_leaves(&advice.program, &ptx.model, &NaiveLimits::default()) {
                    share.enumerated += 1;
                    let bad = leaves
                        .values()
                        .find(|f| !f.flags.is_empty() || f.kind == moire_execution::leaf::LeafKind::Blocked);
                    assert!(bad.is_none(), "{name}: the enumerator finds {bad:?}");
                }
            }
            Err(why) => {
                assert_ne!(why, Why::Clean, "{name}");
                let exists = |c: &moire_program::ir::Condition| c.quantifier == Quantifier::Exists;
                share.pinned += usize::from(program.conditions.iter().any(exists));
                println!("{name}: {why} ({:?})", begin.elapsed());
            }
        }
    }
    let mut all = Share::default();
    for (folder, share) in &shares {
        println!("{}", share.row(folder));
        all.add(share);
    }
    println!("{}", all.row("all"));
    assert!(only.is_empty() || all.wrong > 0);
    if only.is_empty() {
        let open = all.wrong - all.pinned;
        // No edit is a wait: programs that end too early get no advice.
        assert!(20 * all.advised >= 13 * open, "{} of {open} get advice", all.advised);
        assert!(20 * all.patched >= 19 * all.advised, "advice without a patch");
        assert!(20 * all.weakest >= 19 * all.advised, "advice that may be too strong");
        assert!(2 * all.enumerated >= all.advised, "the enumerator confirms too little");
    }
}
