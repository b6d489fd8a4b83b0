//! Threads that arrive and wait at the cluster barrier in any order: every such program has an execution, the witnesses agree
//! about it, and it is `protocol` exactly where a thread breaks the rule "arrive once, then wait" (PTX ISA 9.2, 9.7.13.3).

use moire_cat::Variants;
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, judge};
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_program::text::{Format, parse};
use moire_worker::agreement::{Agreement, compare as operational};

const TOKENS: [&str; 3] = ["barrier.cluster.arrive;", "barrier.cluster.wait;", "st.weak.global.b32 [x], 1;"];
/// Bodies of the other CTA, by their tokens.
const OTHERS: [&[usize]; 5] = [&[], &[0], &[0, 1, 2], &[0, 2, 0, 1], &[0, 1, 0, 1]];

/// All bodies of at most four tokens.
fn bodies() -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for n in 0.. {
        let Some(body) = all.get(n).filter(|b: &&Vec<usize>| b.len() < 4).cloned() else { break };
        all.extend((0..TOKENS.len()).map(|token| [body.as_slice(), &[token]].concat()));
    }
    all
}

fn text(a: &[usize], b: &[usize]) -> String {
    let thread = |cta: usize, body: &[usize]| {
        let lines: Vec<&str> = body.iter().map(|t| TOKENS[*t]).collect();
        format!("P{cta} (gpu 0, cluster 0, cta {cta}) {{ {} }}\n", lines.join(" "))
    };
    format!("moire \"turns\"\n.global .b32 x;\n{}{}", thread(0, a), thread(1, b))
}

/// Whether each arrival comes after a wait for the last one, and each wait after an arrival.
fn in_turn(body: &[usize]) -> bool {
    let mut arrived = false;
    body.iter().all(|token| match token {
        0 => !std::mem::replace(&mut arrived, true),
        1 => std::mem::take(&mut arrived),
        _ => true,
    })
}

#[test]
fn every_order_of_arrivals_and_waits_has_an_execution() {
    let (mut broken, mut kept) = (0, 0);
    for (name, a, b) in ["ptx", "sc"]
        .iter()
        .flat_map(|m| bodies().into_iter().flat_map(move |a| OTHERS.iter().map(move |b| (*m, a.clone(), *b))))
    {
        let model = moire_models::load(name, &Variants::new()).unwrap();
        let text = text(&a, b);
        let program = parse(&text, Format::Native).unwrap();
        match compare(&program, &model, &NaiveLimits::default()) {
            Comparison::Same { leaves, .. } => assert!(leaves > 0, "{name}: no execution of {text}"),
            other => panic!("{name}: {other:?} {text}"),
        }
        let questions = Questions { witnesses: false, about: About::All };
        let judged = judge(&program, &model, &Limits::default(), questions);
        let protocol = judged.verdicts.contains(&Verdict::Protocol);
        // What comes after a wait that never ends does not run.
        let hangs = judged.verdicts.contains(&Verdict::Hang);
        assert!(protocol || (in_turn(&a) && in_turn(b)) || hangs, "{name}: {:?} {text}", judged.verdicts);
        assert!(!protocol || !in_turn(&a) || !in_turn(b), "{name}: {:?} {text}", judged.verdicts);
        if protocol {
            broken += 1
        } else {
            kept += 1
        }
        let operated = operational(&program, &model, &Limits::default());
        assert!(!matches!(operated, Agreement::Different { .. }), "{}: {text}", operated.both());
        if *name == *"ptx" {
            assert!(!matches!(operated, Agreement::Abstained(_)), "{operated:?} {text}");
        }
    }
    assert!(broken > 100 && kept > 100, "{broken} broken, {kept} kept");
}
