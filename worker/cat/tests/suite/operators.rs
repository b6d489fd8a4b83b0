//! Every operator of the evaluator against sets of pairs, on random expressions over random graphs.

use moire_cat::bits;
use moire_cat::vocabulary::{FIRST_DYNAMIC, rels, sets};
use moire_cat::{Evaluator, Inputs, Model, Node, NodeId, Solution, Stage, Variants, load};
use proptest::prelude::*;
use std::collections::BTreeSet;

type Pairs = BTreeSet<(usize, usize)>;

/// The value of a node as pairs; a set is its identity.
fn value(model: &Model, graph: &Inputs<2>, node: NodeId, variables: &[Vec<Pairs>]) -> Pairs {
    let n = graph.n;
    let of = |a: NodeId| value(model, graph, a, variables);
    let all = || (0..n).flat_map(move |a| (0..n).map(move |b| (a, b)));
    let is_set = |a: NodeId| model.facts(a).ty == moire_cat::Type::Set;
    match model.nodes()[node.index()] {
        Node::Set(s) => (0..n).filter(|i| bits::has(&graph.sets[s], *i)).map(|i| (i, i)).collect(),
        Node::Relation(rels::ID) => (0..n).map(|i| (i, i)).collect(),
        Node::Relation(r) => all().filter(|(a, b)| bits::has(&graph.rels[r][*a], *b)).collect(),
        Node::EmptySet | Node::EmptyRelation => Pairs::new(),
        Node::Union(a, b) => &of(a) | &of(b),
        Node::Inter(a, b) => &of(a) & &of(b),
        Node::Diff(a, b) => &of(a) - &of(b),
        Node::Complement(a) => {
            let a_value = of(a);
            all().filter(|p| !a_value.contains(p) && (!is_set(a) || p.0 == p.1)).collect()
        }
        Node::Seq(a, b) => compose(&of(a), &of(b)),
        Node::Cross(a, b) => {
            let (a, b) = (of(a), of(b));
            a.iter().flat_map(|x| b.iter().map(|y| (x.0, y.0))).collect()
        }
        Node::Inverse(a) => of(a).into_iter().map(|(x, y)| (y, x)).collect(),
        Node::Plus(a) => closure(of(a)),
        Node::Star(a) => closure(of(a)).into_iter().chain((0..n).map(|i| (i, i))).collect(),
        Node::Opt(a) => of(a).into_iter().chain((0..n).map(|i| (i, i))).collect(),
        Node::Lift(a) => of(a),
        Node::Domain(a) => of(a).into_iter().map(|(x, _)| (x, x)).collect(),
        Node::Range(a) => of(a).into_iter().map(|(_, y)| (y, y)).collect(),
        Node::Variable { group, member } => variables[group as usize][member as usize].clone(),
        Node::Fixpoint { group, member } => {
            let mut all = variables.to_vec();
            let bodies = &model.groups()[group as usize];
            all[group as usize] = vec![Pairs::new(); bodies.len()];
            loop {
                let next: Vec<Pairs> = bodies.iter().map(|b| value(model, graph, *b, &all)).collect();
                if next == all[group as usize] {
                    return next[member as usize].clone();
                }
                all[group as usize] = next;
            }
        }
    }
}

fn compose(a: &Pairs, b: &Pairs) -> Pairs {
    a.iter().flat_map(|x| b.iter().filter(|y| x.1 == y.0).map(|y| (x.0, y.1))).collect()
}

fn closure(a: Pairs) -> Pairs {
    let mut all = a.clone();
    loop {
        let next = &all | &compose(&all, &a);
        if next == all {
            return all;
        }
        all = next;
    }
}

/// Text of a random relation (or set) over a few base names.
fn relation() -> BoxedStrategy<String> {
    let base = prop::sample::select(vec!["po", "loc", "rf", "rmw", "syncbar", "id", "0", "ms", "rec1"]);
    base.prop_map(str::to_owned)
        .prop_recursive(5, 24, 2, |inner| {
            let two = (inner.clone(), inner.clone());
            let set = prop::sample::select(vec![
                "R",
                "W",
                "(R | W)",
                "(M \\ W)",
                "~F",
                "domain(rf)",
                "range(po)",
                "RED",
                "_",
            ]);
            prop_oneof![
                (two.clone(), prop::sample::select(vec!["|", "&", "\\", ";"]))
                    .prop_map(|((a, b), o)| format!("({a} {o} {b})")),
                (inner.clone(), prop::sample::select(vec!["^-1", "+", "*", "?"]))
                    .prop_map(|(a, o)| format!("({a}){o}")),
                inner.clone().prop_map(|a| format!("(~{a})")),
                (set.clone(), inner.clone()).prop_map(|(s, a)| format!("([{s}]; {a})")),
                (inner.clone(), set.clone()).prop_map(|(a, s)| format!("({a}; [{s}])")),
                (set.clone(), set).prop_map(|(s, t)| format!("({s} * {t})")),
                two.prop_map(|(a, b)| format!("twice({a}, {b})")),
                inner.prop_map(|a| format!("[domain({a})]")),
            ]
        })
        .boxed()
}

fn graph() -> impl Strategy<Value = Inputs<2>> {
    let n = prop_oneof![20 => 0usize..9, 1 => 62usize..67];
    (n, prop::collection::vec(any::<(u8, u16, u16)>(), 0..60), any::<u8>()).prop_map(|(n, edges, off)| {
        let mut g = Inputs::<2>::new();
        g.n = n;
        for (i, (kind, a, b)) in edges.into_iter().enumerate().filter(|_| n > 0) {
            let relations = [rels::PO, rels::LOC, rels::RF, rels::RMW, rels::SYNCBAR];
            let (a, b) = (usize::from(a) % n, usize::from(b) % n);
            let which = usize::from(kind) % 5;
            if off >> which & 1 == 0 {
                bits::set(&mut g.rels[relations[which]][a], b);
            }
            let some = [sets::R, sets::W, sets::M, sets::F, sets::B][i % 5];
            bits::set(&mut g.sets[some], b);
        }
        for i in 0..n {
            bits::set(&mut g.sets[sets::ANY], i);
            // Without barrier events there are no barrier pairs.
            bits::set(&mut g.sets[sets::B], i);
        }
        g
    })
}

/// Events in a row, so many that an evaluator keeps few such universes.
fn large() -> Inputs<2> {
    let mut g = Inputs::<2>::new();
    g.n = 128;
    for i in 1..g.n {
        bits::set(&mut g.rels[rels::PO][i - 1], i);
        bits::set(&mut g.rels[rels::LOC][i], i);
        bits::set(&mut g.rels[rels::RMW][i], i - 1);
        [sets::ANY, sets::R, sets::F, sets::B].iter().for_each(|s| bits::set(&mut g.sets[*s], i));
    }
    g
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn evaluator_agrees_with_pairs(expressions in prop::collection::vec(relation(), 1..5), mut g in graph()) {
        let mut text = "let ms = po | loc & rf\nlet rec rec1 = po | (rec1; rmw; rec2) and rec2 = rf | rec1 & loc\n\
                        let twice(a, b) = a; (b | a)\n".to_owned();
        for (i, e) in expressions.iter().enumerate() {
            text.push_str(&format!("let e{i} = {e}\nflag ~empty e{i} as used{i}\nflag acyclic e{i} as acyclic{i}\n"));
            text.push_str(&format!("flag irreflexive e{i}; po as crossing{i}\n"));
        }
        let model = load("random.cat", &text, &moire_models::Shipped, &Variants::new()).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        let mut evaluator = Evaluator::<2>::new(&model);
        evaluator.prepare(&g);
        let Solution::Consistent { flags } = evaluator.solve(&mut g, Stage::Leaf) else {
            return Err(TestCaseError::fail("nothing is forbidden"));
        };
        let none: Vec<Vec<Pairs>> = model.groups().iter().map(|g| vec![Pairs::new(); g.len()]).collect();
        for (i, check) in model.checks().iter().enumerate() {
            let expected = value(&model, &g, check.node, &none);
            let holds = match i % 3 {
                0 => !expected.is_empty(),
                1 => closure(expected.clone()).iter().all(|(a, b)| a != b),
                _ => expected.iter().all(|(a, b)| a != b),
            };
            prop_assert_eq!(holds, flags.contains(&moire_cat::CheckId(i)), "{} in\n{}", &check.name, &text);
            if let Some(rows) = evaluator.rows(check.node) {
                let got: Pairs = rows.iter().enumerate().flat_map(|(a, row)| bits::iter(row).map(move |b| (a, b))).collect();
                prop_assert_eq!(got, expected, "{} in\n{}", &check.name, &text);
            }
        }
        prop_assert!(FIRST_DYNAMIC > 0);
    }

    /// A graph that grows by a pair at a time and shrinks again is judged as pairs say, whether the evaluator is told where to
    /// go back to or finds out, and whether it still has the universe or was in too many others meanwhile.
    #[test]
    fn growing_graphs_are_judged_as_fresh_ones(
        expressions in prop::collection::vec(relation(), 1..4),
        mut g in graph(),
        steps in prop::collection::vec((any::<(u8, u8)>(), any::<bool>(), 0u8..8), 1..30),
        away in (0usize..60, 2u64..60),
    ) {
        prop_assume!(g.n > 1);
        let mut text = "let ms = po | loc & rf\nlet rec rec1 = po | (rec1; rmw; rec2) and rec2 = rf | rec1 & loc\n\
                        let twice(a, b) = a; (b | a)\n".to_owned();
        for (i, e) in expressions.iter().enumerate() {
            text.push_str(&format!("let e{i} = {e}\nempty e{i} & (F * F) as none{i}\nacyclic e{i} & po as acyclic{i}\n"));
            text.push_str(&format!("irreflexive e{i}; [F]; po as crossing{i}\n"));
        }
        let model = load("random.cat", &text, &moire_models::Shipped, &Variants::new()).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        let none: Vec<Vec<Pairs>> = model.groups().iter().map(|g| vec![Pairs::new(); g.len()]).collect();
        let wrong = |g: &Inputs<2>| model.checks().iter().enumerate().any(|(i, check)| {
            let pairs = value(&model, g, check.node, &none);
            let holds = match i % 3 {
                0 => pairs.is_empty(),
                1 => closure(pairs).iter().all(|(a, b)| a != b),
                _ => pairs.iter().all(|(a, b)| a != b),
            };
            check.class == moire_cat::Class::Monotone && !holds
        });
        let mut evaluator = Evaluator::<2>::new(&model);
        evaluator.enter(1, &g);
        let mut stack = Vec::new();
        for (step, ((a, b), of_rf, back)) in steps.into_iter().enumerate() {
            if step == away.0 {
                (2..away.1).for_each(|other| evaluator.enter(other, &large()));
                evaluator.enter(1, &g);
            }
            let (a, b) = (usize::from(a) % g.n, usize::from(b) % g.n);
            let relation = if of_rf { rels::RF } else { rels::SYNCBAR };
            let mark = evaluator.mark();
            let before = g.rels[relation][a];
            bits::set(&mut g.rels[relation][a], b);
            let violated = matches!(evaluator.partial(&g), Solution::Violated(_));
            prop_assert_eq!(violated, wrong(&g), "with {} -> {} in\n{}", a, b, &text);
            stack.push((mark, relation, a, before));
            for k in 0..back.saturating_sub(5) + u8::from(violated) {
                let Some((mark, relation, a, before)) = stack.pop() else { break };
                g.rels[relation][a] = before;
                // An engine may forget to say so.
                if k % 2 == 0 {
                    evaluator.back(&mark);
                }
            }
        }
    }

    /// What is said to shrink has no pair in a graph with more communication that it lacked before.
    #[test]
    fn what_is_said_to_shrink_shrinks(
        expression in relation(),
        taken in relation(),
        mut g in graph(),
        more in prop::collection::vec(any::<(u8, u8)>(), 1..20),
    ) {
        prop_assume!(g.n > 0);
        let text = format!(
            "let ms = po | loc & rf\nlet rec rec1 = po | (rec1; rmw; rec2) and rec2 = rf | rec1 & loc\n\
             let twice(a, b) = a; (b | a)\nflag ~empty ({taken}) \\ ({expression}) as some\n"
        );
        let model = load("random.cat", &text, &moire_models::Shipped, &Variants::new()).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        let shrinks = model.flags_shrink(&|node| match node {
            Node::Set(s) => (0..g.n).all(|i| !bits::has(&g.sets[s], i)),
            Node::Relation(r) => r != rels::ID && g.rels[r][..g.n].iter().all(bits::is_empty),
            _ => false,
        });
        let none: Vec<Vec<Pairs>> = model.groups().iter().map(|g| vec![Pairs::new(); g.len()]).collect();
        let before = value(&model, &g, model.checks()[0].node, &none);
        for (a, b) in more {
            let (a, b) = (usize::from(a) % g.n, usize::from(b) % g.n);
            bits::set(&mut g.rels[rels::RF][a], b);
        }
        let after = value(&model, &g, model.checks()[0].node, &none);
        prop_assert!(!shrinks || after.is_subset(&before), "{}", &text);
    }
}
