//! What models declare to the engines: licences with their reasons, settings and features, included files.

use moire_cat::contract::{Control, FailedCas, Feature, PairRelease, WideAccesses};
use moire_cat::licence::{Kind, Refused};
use moire_cat::{Class, Model, Variants, load};
use moire_models::{Beside, Shipped};
use std::collections::BTreeMap;
use std::path::Path;

fn shipped(name: &str, settings: &[(&str, &str)]) -> Model {
    let variants: Variants = settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    moire_models::load(name, &variants).expect("loads")
}

fn own(text: &str) -> Model {
    load("m.cat", text, &Shipped, &Variants::new()).unwrap_or_else(|e| panic!("{e}"))
}

fn complaint(text: &str) -> String {
    load("m.cat", text, &Shipped, &Variants::new()).expect_err("is refused").to_string()
}

/// The answer to the only claim of a model.
fn answer(text: &str) -> Result<String, Refused> {
    let model = own(text);
    let [licence] = model.licences() else { panic!("one claim in {text}") };
    licence.granted.map(|id| model.checks()[id.0].name.clone())
}

#[test]
fn shipped_licences_are_granted_by_their_check_and_gone_without_it() {
    for setting in [&[][..], &[("profile", "practice")], &[("TQ32", "B")], &[("Q9", "A")], &[("Q4", "A")]] {
        let model = shipped("ptx", setting);
        assert_eq!(model.licences().len(), Kind::ALL.len());
        for licence in model.licences() {
            assert!(licence.granted.is_ok(), "{setting:?}: {licence:?}");
            let check = licence.granted.expect("granted");
            let without = model.without(check);
            assert_eq!(without.licence(licence.kind), None);
            assert_eq!(without.trusting(licence.kind).licence(licence.kind), Some(licence.relation));
        }
    }
    for (id, check) in (0..).map(moire_cat::CheckId).zip(shipped("ptx", &[]).checks()) {
        let without = shipped("ptx", &[]).without(id);
        let left = Kind::ALL.into_iter().filter(|k| without.licence(*k).is_some()).count();
        assert_eq!(left, if check.name == "CausalityRF" { 0 } else { 2 }, "without {}", check.name);
    }
}

#[test]
fn a_licence_needs_a_check_that_implies_it() {
    let line = "(*| licence late-stores = order by Late *)\n";
    let with = |rest: &str| answer(&format!("let order = (po | rf)+\n{line}{rest}"));
    let late = "Late".to_owned();
    assert_eq!(with("irreflexive rf; order as Late"), Ok(late.clone()));
    assert_eq!(with("irreflexive order; rf as Late"), Ok(late.clone()));
    assert_eq!(with("irreflexive rf; (order & vloc) as Late"), Ok(late.clone()));
    assert_eq!(with("irreflexive rf; ([R]; order; [W & M]) as Late"), Ok(late.clone()));
    assert_eq!(with("irreflexive rf; ([M & GEN]; order) as Late"), Ok(late.clone()));
    assert_eq!(with("irreflexive rf; (co | order) as Late"), Ok(late.clone()));
    assert_eq!(with("irreflexive rf; (order \\ (IW * _)) as Late"), Ok(late.clone()));
    assert_eq!(with("acyclic rf | po as Late"), Ok(late));
    assert_eq!(with("acyclic rf | po as Other"), Err(Refused::NoCheck));
    assert_eq!(with("flag ~empty rf; order as Late"), Err(Refused::Flag));
    assert_eq!(with("~irreflexive rf; order as Late"), Err(Refused::NotMonotone));
    assert_eq!(with("irreflexive rf; (order \\ (order; [MF]; order)) as Late"), Err(Refused::NotMonotone));
    for weaker in [
        "irreflexive fr; order as Late",
        "irreflexive rf; po as Late",
        "irreflexive rf; (order & rf) as Late",
        "irreflexive rf; ([MF]; order) as Late",
        "irreflexive rf; (order & complete) as Late",
        "irreflexive rf; (order; [ASYNC]) as Late",
        "irreflexive rf; order; co as Late",
        "irreflexive rf; (order \\ po) as Late",
        "empty rf & order^-1 as Late",
        "acyclic rf | po-loc as Late",
    ] {
        assert_eq!(with(weaker), Err(Refused::NotImplied), "{weaker}");
    }
}

#[test]
fn a_licence_needs_a_relation_that_grows_along_program_order() {
    let claim = |relation: &str| {
        answer(&format!(
            "let order = {relation}\n(*| licence late-stores = order by Late *)\nirreflexive rf; order as Late"
        ))
    };
    assert!(claim("(po | co)+").is_ok());
    assert_eq!(claim("rf+"), Err(Refused::NotAlongOrder));
    assert_eq!(claim("po | rf"), Err(Refused::NotAlongOrder));
    assert_eq!(claim("(po | (po \\ co))+"), Err(Refused::RelationShrinks));
}

#[test]
fn settings_follow_switches() {
    let plain = shipped("ptx", &[]);
    assert_eq!(plain.settings().wide_accesses, WideAccesses::Halves);
    let set = shipped("ptx", &[("Q2", "A"), ("Q14", "B"), ("Q16", "B"), ("TQ18", "C")]);
    let settings = set.settings();
    assert_eq!(settings.wide_accesses, WideAccesses::Whole);
    assert_eq!(settings.control, Control::Reconverges);
    assert_eq!(settings.failed_cas, FailedCas::WritesBack);
    assert_eq!(settings.pair_release, PairRelease::Together);
    assert_eq!(shipped("tile-ir", &[("CAS", "B")]).settings().failed_cas, FailedCas::WritesBack);
    assert_eq!(
        own("(*| setting failed-cas = writes-back *)\nempty 0").settings().failed_cas,
        FailedCas::WritesBack
    );
    let covers = |m: &Model| Feature::ALL.map(|f| m.covers(f));
    assert_eq!(covers(&plain), [false, true, true, true, false]);
    assert_eq!(covers(&shipped("ptx-7.5", &[])), [false; 5]);
    assert_eq!(covers(&shipped("tile-ir", &[])), [true, false, false, false, false]);
}

#[test]
fn wrong_declarations_are_refused_where_they_stand() {
    assert!(
        complaint("empty 0\n(*| licnce late-stores = po by A *)")
            .contains("m.cat:2:1: there is no declaration `licnce`; did you mean `licence`")
    );
    assert!(complaint("(*| licence late-store = po by A *)\nempty 0").contains("did you mean `late-stores`"));
    assert!(complaint("(*| licence late-stores = W by A *)\nempty 0").contains("about a relation"));
    assert!(complaint("(*| licence late-stores = po *)\nempty 0").contains("not understood"));
    assert!(complaint("(*| feature tiles *)\nempty 0").contains("there is no feature `tiles`"));
    assert!(
        complaint("(*| setting failed-cas = if \"Q=A\" then reads else reads *)\nempty 0")
            .contains("not declared")
    );
    assert!(complaint("(*| setting failed-cas = never *)\nempty 0").contains("value of failed-cas `never`"));
    assert!(complaint("(*| setting faild-cas = reads *)\nempty 0").contains("did you mean `failed-cas`"));
    assert!(complaint("(*| setting failed-cas = reads | reads *)\nempty 0").contains("is a word"));
}

/// What is taken away may not depend on events that are still to come.
#[test]
fn only_what_is_local_is_taken_away_monotonically() {
    let class = |text: &str| own(text).checks()[0].class;
    assert_eq!(class("empty rf \\ (_ * MF)"), Class::Monotone);
    assert_eq!(class("empty rf \\ ([W]; loc; [R])"), Class::Monotone);
    assert_eq!(class("empty rf \\ (loc; [MF]; loc)"), Class::LeafOnly);
    assert_eq!(class("empty rf & ~(po+)"), Class::LeafOnly);
    assert_eq!(class("empty (rf \\ (domain(loc) * _)) \\ co"), Class::LeafOnly);
}

#[test]
fn values_out_of_thin_air() {
    for name in moire_models::names() {
        assert!(shipped(name, &[]).forbids_thin_air().is_some(), "{name}");
    }
    for setting in [("Q14", "B"), ("Q15", "B")] {
        assert!(shipped("ptx", &[setting]).forbids_thin_air().is_some(), "{setting:?}");
    }
    assert!(own("acyclic rf | po as Order").forbids_thin_air().is_some());
    assert!(own("acyclic rf | addr | data as Less").forbids_thin_air().is_none());
    assert!(own("acyclic rf | addr | data | ctrl-reconv as Less").forbids_thin_air().is_none());
    assert!(own("let order = po\nflag ~empty rf; order as order").forbids_thin_air().is_none());
}

/// What files include, from files that exist nowhere else.
fn included(files: &[(&str, &str)], root: &str) -> Result<Vec<String>, String> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let beside = Beside(|path: &Path| files.get(path.to_str()?).map(|t| (*t).to_owned()));
    let model = load(root, files[root], &beside, &Variants::new()).map_err(|e| e.to_string())?;
    Ok(model.includes().iter().map(ToString::to_string).collect())
}

#[test]
fn a_file_beside_the_including_one_comes_first() {
    let rest = "let base-causality = po\nlet cause = po";
    let near = included(&[("d/my.cat", "include \"lib-ptx.cat\""), ("d/lib-ptx.cat", rest)], "d/my.cat");
    assert_eq!(near.unwrap(), ["include \"lib-ptx.cat\": d/lib-ptx.cat"]);
    let far = included(&[("d/my.cat", "include \"lib-ptx.cat\""), ("lib-ptx.cat", rest)], "d/my.cat");
    assert_eq!(far.unwrap(), ["include \"lib-ptx.cat\": the shipped one (none beside d/my.cat)"]);
    // From the folder of the file that includes, not of the first one.
    let nested = [
        ("my.cat", "include \"part/a.cat\""),
        ("part/a.cat", "include \"b.cat\""),
        ("part/b.cat", "empty 0"),
        ("b.cat", "acyclic rrf"),
    ];
    let found = included(&nested, "my.cat").unwrap();
    assert_eq!(found, ["include \"part/a.cat\": part/a.cat", "include \"b.cat\": part/b.cat"]);
    // A shipped file includes shipped ones, whatever is beside the first.
    let through =
        included(&[("my.cat", "include \"ptx.cat\""), ("lib-ptx.cat", "acyclic rrf")], "my.cat").unwrap();
    assert_eq!(through[0], "include \"ptx.cat\": the shipped one (none beside my.cat)");
    assert!(
        through.len() > 5 && through[1..].iter().all(|i| i.ends_with(": the shipped one")),
        "{through:?}"
    );
}

#[test]
fn includes_stay_in_their_folder_and_lead_nowhere_back() {
    let out = included(&[("d/my.cat", "include \"../other.cat\""), ("other.cat", "empty 0")], "d/my.cat");
    assert!(out.unwrap_err().contains("cannot open `../other.cat`"));
    let back = [("a.cat", "include \"b.cat\""), ("b.cat", "include \"a.cat\"")];
    assert!(
        included(&back, "a.cat").unwrap_err().contains("`a.cat` includes `b.cat` includes `a.cat` again")
    );
    // A file of the name of a shipped one is another file.
    let named = [("d/ptx.cat", "include \"sub/ptx.cat\""), ("d/sub/ptx.cat", "include \"ptx-7.5.cat\"")];
    assert!(included(&named, "d/ptx.cat").is_ok());
    let own = [("ptx.cat", "include \"ptx.cat\"")];
    assert!(included(&own, "ptx.cat").unwrap_err().contains("includes `ptx.cat` again"));
}
