//! The shipped models load, and say of each check what the engine does with it.

use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Class, Node, Variants, load};

#[test]
fn every_shipped_model_loads() {
    for name in moire_models::names() {
        let model = moire_models::load(name, &Variants::new()).unwrap_or_else(|e| panic!("{e}"));
        assert!(!model.checks().is_empty(), "{name} checks nothing");
        for check in model.checks().iter().filter(|c| !c.flag) {
            assert_eq!(check.class, Class::Monotone, "{name}: {} should prune", check.name);
        }
    }
}

/// Races of ordinary accesses go away when communication is added; flags about objects that are not there say nothing else.
#[test]
fn flags_of_ordinary_programs_shrink() {
    let special = ["MBAR", "TC_", "COPY", "WGMMA", "EXIT", "RESTRICTED", "TILE"];
    let about = ["tc-", "copy-", "mbar", "issue", "reaches", "token"];
    let absent = |node: Node| match node {
        Node::Set(s) => special.iter().any(|p| sets::ALL[s].0.starts_with(p)),
        Node::Relation(r) => about.iter().any(|p| rels::ALL[r].0.starts_with(p)),
        _ => false,
    };
    for name in moire_models::names() {
        let model = moire_models::load(name, &Variants::new()).expect("loads");
        assert!(model.flags_shrink(&absent), "{name}");
    }
    let ptx = moire_models::load("ptx", &Variants::new()).expect("loads");
    assert!(!ptx.flags_shrink(&|_| false), "waits that come early are found along communication");
    let own = |text: &str| {
        load("m.cat", &format!("let one = po\n{text}"), &moire_models::Shipped, &Variants::new())
            .expect("loads")
    };
    assert!(!own("flag ~empty rf as read").flags_shrink(&|_| false));
    assert!(!own("flag empty (W * R) \\ rf as all").flags_shrink(&|_| false));
    assert!(own("flag ~empty (W * R) \\ rf as unread").flags_shrink(&|_| false));
    let along = own("let rec a = po | a; rf\nflag ~empty (W * R) \\ a as apart");
    assert!(along.flags_shrink(&|_| false));
    let fixed = own("let rec a = po | a; loc\nflag ~empty a as near");
    assert!(fixed.flags_shrink(&|_| false));
}

#[test]
fn every_switch_value_loads() {
    for name in moire_models::names() {
        let model = moire_models::load(name, &Variants::new()).expect("loads");
        for switch in model.switches() {
            for value in &switch.values {
                let variants = Variants::from([(switch.name.clone(), value.clone())]);
                let flipped = moire_models::load(name, &variants).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(flipped.variant(&switch.name), Some(value.as_str()));
            }
        }
    }
}

#[test]
fn errors_have_a_place_and_a_hint() {
    let text = |t: &str| {
        load("m.cat", t, &moire_models::Shipped, &Variants::new()).expect_err("is wrong").to_string()
    };
    assert_eq!(
        text("let a = po-lok"),
        "m.cat:1:9: `po-lok` is not defined; did you mean `po-loc`?\n  1 | let a = po-lok\n    |         ^"
    );
    assert!(text("acyclic W").contains("a set cannot be acyclic"));
    assert!(text("let rec a = po \\ a").contains("only grows"));
    assert!(text("(* never closed").contains("never closed"));
    assert!(text(&format!("empty {}po{}", "(".repeat(5000), ")".repeat(5000))).contains("at most"));
    let wrong =
        load("m.cat", "empty 0", &moire_models::Shipped, &Variants::from([("Q6".into(), "B".into())]));
    assert!(wrong.expect_err("no switches").to_string().contains("no switch `Q6`"));
    assert!(
        moire_models::load("ptx", &Variants::from([("Q66".into(), "B".into())]))
            .expect_err("typo")
            .to_string()
            .contains("did you mean")
    );
}

#[test]
fn switches_are_declared_with_the_defaults_of_each_version() {
    let settings = |name: &str| {
        let model = moire_models::load(name, &Variants::new()).expect("loads");
        let mut all: Vec<String> =
            model.switches().iter().map(|s| format!("{}={}", s.name, s.default)).collect();
        all.sort_by_key(|s| {
            // Those about lanes have no number.
            let Some((family, rest)) = s.split_once('Q') else { return (format!("Z{s}"), 0) };
            let number = rest.split('=').next().and_then(|n| n.parse::<u32>().ok());
            (family.to_owned(), number.expect("a number"))
        });
        assert!(model.switches().iter().all(|s| !s.doc.is_empty() && s.values.len() > 1));
        let contesting: Vec<&str> =
            model.switches().iter().filter(|s| !s.contesting.is_empty()).map(|s| s.name.as_str()).collect();
        format!("{} contesting {}", all.join(" "), contesting.join(" "))
    };
    let ptx = "Q1=A Q2=B Q3=A Q4=B Q5=A Q6=A Q7=A Q8=B Q9=B Q10=A Q11=A Q12=A Q13=A Q14=A Q15=A Q16=A Q17=B \
        TQ1=A TQ2=A TQ3=A TQ4=A TQ5=A TQ6=A TQ7=A TQ8=A TQ9=A TQ10=A TQ11=A TQ12=A TQ13=A TQ14=A TQ15=A TQ16=A \
        TQ17=A TQ18=A TQ19=A TQ21=A TQ22=A TQ23=A TQ24=A TQ26=A TQ27=A TQ28=A TQ29=A TQ30=A TQ31=A TQ32=A TQ33=A \
        EX=A RV=A WL=A XC=A XM=A contesting Q6 Q11 Q1 EX RV Q5 Q8 Q13 TQ27 TQ31 \
        TQ1 TQ2 TQ5 TQ6 TQ7 TQ8 TQ9 TQ10 TQ11 TQ13 TQ14 TQ15 WL TQ16 TQ28 TQ30 TQ33 TQ18 TQ19 TQ21 TQ24 TQ26 TQ29 XC XM TQ32";
    assert_eq!(settings("ptx"), ptx);
    let isca = "Q1=A Q2=B Q3=A Q4=B Q5=A Q6=A Q7=B Q8=B Q10=B Q11=A Q12=B Q14=A Q15=A Q16=A Q17=B \
         EX=A RV=A contesting Q6 Q1 EX RV Q5 Q8";
    assert_eq!(settings("ptx-7.5"), isca);
    assert_eq!(
        settings("ptx-6.0"),
        "Q1=A Q2=B Q3=A Q4=B Q5=A Q8=B Q12=A Q14=A Q15=A Q16=A Q17=B EX=A RV=A contesting Q1 EX RV Q5 Q8"
    );
    assert_eq!(settings("sc"), "Q2=B Q16=A contesting ");
    assert_eq!(settings("any"), "Q2=B Q16=A contesting ");
}
