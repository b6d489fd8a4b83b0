//! What the book promises: refusals point at a place and name the nearest word; weaker forms are legal; tags do not change.

use moire_isa::census::Declared;
use moire_isa::{BOOK, Class, Env, Instr, Known, Reg, Value};

fn read(text: &str) -> Instr {
    Instr::read(text, &mut Declared::default()).unwrap_or_else(|why| panic!("{text}: {why:?}"))
}

/// The same text with the names it was read with.
fn again(text: &str) -> String {
    let mut names = Declared::default();
    let instr = Instr::read(text, &mut names).unwrap_or_else(|why| panic!("{text}: {why:?}"));
    instr.print(&names)
}

fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    read(text).canon(&mut out);
    out
}

#[track_caller]
fn refused(text: &str, at: usize, message: &str, hint: Option<&str>) {
    let why = Instr::read(text, &mut Declared::default()).expect_err(text);
    assert_eq!((why.at, why.message.as_str(), why.hint.as_deref()), (at, message, hint));
}

#[test]
fn refusals_point_and_suggest() {
    refused(
        "ld.aquire.gpu.b32 %r1, [%d1]",
        3,
        "`.aquire` is not a qualifier of ld",
        Some("did you mean `.acquire`?"),
    );
    refused("ld.acquire.b32 %r1, [%d1]", 14, "ld needs .cta or .cluster or .gpu or .sys", None);
    refused("ld.relaxed.gpu.cta.b32 %r1, [%d1]", 15, "`.cta` follows another qualifier of its kind", None);
    refused("fense.sc.gpu", 0, "`fense.sc.gpu` is no instruction of PTX", Some("did you mean `fence`?"));
    refused("st.v2.b32 [%d1], {%r1, %r2, %r3}", 17, "3 elements stand here, and the qualifiers say 2", None);
    refused("ld.b32 %r1, [nowhere]", 13, "`nowhere` is not declared", None);
    refused("ld.b32 %r1, [%d1] %r2", 18, "ld takes no further operand", None);
    refused("", 0, "`` is no instruction of PTX", None);
}

#[test]
fn the_order_of_words_is_free_and_spellings_stay() {
    let usual = read("st.relaxed.gpu.shared::cta.v2.b32 [%d1], {%r1, %r2}");
    assert_eq!(usual, read("st.v2.b32.shared.gpu.relaxed [%d1], {%r1, %r2}"));
    assert_eq!(again("ld.weak.shared.b32 %r1, [%d1]"), "ld.weak.shared.b32 %r1, [%d1]");
    assert_eq!(again("ld.shared::cta.b32 %r1, [%d1]"), "ld.shared::cta.b32 %r1, [%d1]");
    assert_eq!(read("ld.shared::cta.b32 %r1, [%d1]"), read("ld.weak.shared.b32 %r1, [%d1]"));
}

#[test]
fn blanks_and_comments_stand_between_tokens() {
    assert_eq!(
        read("ld\n .shared // here\n .b32 /* there */ %r1,[%d1+-4] ;"),
        read("ld.shared.b32 %r1, [%d1+-4]")
    );
    assert_eq!(again("ld.b32 %r1, [sm+0x10]"), "ld.b32 %r1, [sm+16]");
    assert_eq!(again("st.b32 [%d1], 0f3F800000"), "st.b32 [%d1], 0f3F800000");
}

/// `abcd` is declared as a vector of two registers.
struct Vectors;

impl Env for Vectors {
    fn resolve(&mut self, name: &str) -> Option<Known> {
        let reg = |index| Reg { index, class: Class { bits: 32, ..Class::default() } };
        Some(if name == "abcd" { Known::Vector(reg(7), 2) } else { Known::Reg(reg(1)) })
    }
    fn label(&mut self, _: &str) -> u32 {
        0
    }
}

#[test]
fn a_declared_vector_is_its_elements() {
    let instr = Instr::read("st.shared.v2.b32 [%r1], abcd", &mut Vectors).expect("a form of PTX");
    let mut seen = Vec::new();
    instr.each(&mut |s| seen.extend(s.value.reg().map(|reg| reg.index)));
    assert_eq!(seen, [1, 7, 8]);
    assert!(Instr::read("st.shared.v4.b32 [%r1], abcd", &mut Vectors).is_err());
    assert!(Instr::read("st.shared.b32 [%r1], abcd", &mut Vectors).is_err());
}

#[test]
fn weaker_forms_are_one_step_and_legal() {
    let mut names = Declared::default();
    let instr = Instr::read("atom.acq_rel.cluster.add.u32 %r1, [%d1], 1", &mut names).expect("a form of PTX");
    let forms: Vec<String> = instr.weaker().iter().map(|weaker| weaker.print(&names)).collect();
    assert_eq!(
        forms,
        [
            "atom.acquire.cluster.add.u32 %r1, [%d1], 1",
            "atom.release.cluster.add.u32 %r1, [%d1], 1",
            "atom.acq_rel.cta.add.u32 %r1, [%d1], 1",
        ]
    );
}

#[test]
fn bytes_hold_what_is_kept_and_not_what_is_speed() {
    let plain = bytes("ld.global.b32 %r1, [%d1]");
    assert_eq!(plain, bytes("ld.weak.global.L1::evict_last.b32 %r1, [%d1]"));
    assert_eq!(plain, bytes("ld.global.L2::cache_hint.b32 %r1, [%d1], %d2"));
    assert_ne!(plain, bytes("ld.global.u32 %r1, [%d1]"));
    assert_ne!(plain, bytes("ld.global.b32 %r1, [%d1+4]"));
    assert_eq!(bytes("fence.sc.gpu"), [0, 10, 3, 255, 2]);
}

#[test]
fn registers_are_renamed_everywhere() {
    let mut names = Declared::default();
    let mut instr =
        Instr::read("atom.shared.cas.b32 %r1, [%r2], %r3, %r4", &mut names).expect("a form of PTX");
    instr.each_mut(&mut |_, value| {
        if let Value::Reg(reg) = value {
            *value = Value::Reg(Reg { index: 3 - reg.index, ..*reg });
        }
    });
    assert_eq!(instr.print(&names), "atom.shared.cas.b32 %r4, [%r3], %r2, %r1");
}

#[test]
fn tags_and_names_are_unique() {
    let mut tags: Vec<u16> = BOOK.iter().map(|e| e.tag).collect();
    let mut names: Vec<&str> = BOOK.iter().flat_map(|e| (e.names)()).collect();
    let (all_tags, all_names) = (tags.len(), names.len());
    tags.sort_unstable();
    tags.dedup();
    names.sort_unstable();
    names.dedup();
    assert_eq!((tags.len(), names.len()), (all_tags, all_names));
}

/// A word that two slots know would always be taken by the first.
#[test]
fn no_word_belongs_to_two_slots() {
    let mut twice = Vec::new();
    for entry in BOOK {
        let mut seen: Vec<&str> = entry.fixed.concat();
        for (at, slot) in entry.slots.iter().enumerate() {
            // Two slots of one kind take their words in the order of the text: the spaces of a copy.
            let words = (slot.words)();
            if at > 0 && words == (entry.slots[at - 1].words)() {
                continue;
            }
            twice.extend(words.iter().filter(|w| seen.contains(w)).map(|w| format!("{} {w}", entry.id)));
            seen.extend(words);
        }
    }
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn an_instruction_is_small() {
    assert!(size_of::<Instr>() <= 168, "{}", size_of::<Instr>());
}
