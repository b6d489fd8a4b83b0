//! What a module says and what is made of it: an operation prints as an instruction with the same meaning.

use moire_isa::Instr;
use moire_isa::census::{Declared, Form};
use moire_kernel::Refusal;
use moire_kernel::ptx::{What, parse};
use moire_kernel::specialise::{Launch, lower};
use moire_program::ir::{Op, Operand};
use moire_program::text::{instruction, print};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const REGISTERS: &str = ".reg .pred %p<40>; .reg .b8 %b<40>; .reg .b16 %h<40>; .reg .b32 %r<400>; .reg .f32 %f<400>;
.reg .b64 %d<40>; .reg .f64 %g<40>; .reg .b128 %q<40>; .shared .align 128 .b8 sm[4096]; .local .align 16 .b8 lm[64];";

fn module(form: &str) -> String {
    format!(
        ".version 9.5\n.target sm_100a\n.address_size 64\n.global .align 128 .b8 gm[4096];\n.const .align 16 .b8 cm[64];\n\
         .global .texref tx;\n.global .surfref sf;\n.global .samplerref sp;\n.visible .entry k(.param .u64 p0)\n.reqntid 32\n\
         {{\n{REGISTERS}\nL0: {form};\nret;\n}}\n"
    )
}

/// The forms of the census that some target accepts, where the census and gzip are there.
fn census() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec/instructions/census.tsv.gz");
    let text = Command::new("gzip").arg("-dc").arg(path).output().map(|out| out.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let read = Instr::read(text, &mut Declared::default()).unwrap_or_else(|why| panic!("{text}: {why:?}"));
    read.canon(&mut out);
    out
}

/// The operation of a form as it is printed, if it has one.
fn operation(form: &str) -> Option<String> {
    let module = parse(&module(form)).unwrap_or_else(|why| panic!("{form}: {why}"));
    let kernel = &module.kernels[0];
    let What::Core(_) = kernel.body[0].what else { return None };
    let thread = &kernel.program.threads[0];
    let text = instruction(&kernel.program, thread, &thread.body[0]);
    Some(text.trim_end_matches(';').to_owned())
}

/// What litmus texts print in their own way: a predicate has a mark, where PTX has the declaration of the register.
fn as_ptx(printed: String) -> String {
    printed.replace(", @%p", ", %p").replace(", @!%p", ", !%p")
}

/// Words that an operation need not say: each first word of a mnemonic with what is about speed or numbers, or what PTX
/// takes where nothing stands (PTX ISA 9.2, the section of the instruction).
const UNSAID: [(&str, &[&str]); 8] = [
    ("atom", &["L2::cache_hint"]),
    ("red", &["L2::cache_hint"]),
    ("barrier", &["cta", "aligned", "release", "acquire"]),
    ("cp", &["L2::cache_hint", "mbarrier::report::disabled", "weak"]),
    ("mbarrier", &["layout::v0"]),
    ("multimem", &["global"]),
    (
        "prefetch",
        &["L1", "L1::32B", "valid_addr", "L2::evict_last", "L2::evict_normal", "const", "local", "param"],
    ),
    ("wgmma", &["satfinite"]),
];

/// Words that stand for others: as a form says them, and as an operation does.
const RENAMED: [(&[&str], &[&str]); 8] = [
    (&["shared"], &["shared::cta"]),
    (&["barrier"], &["bar"]),
    (&["membar", "cta"], &["fence", "sc", "cta"]),
    (&["membar", "gl"], &["fence", "sc", "gpu"]),
    (&["membar", "sys"], &["fence", "sc", "sys"]),
    (&["membar"], &["fence"]),
    (&["prefetchu", "L1"], &["prefetch", "global", "L2"]),
    // Numbers of floating point are data.
    (&["bf16"], &["f16"]),
];

/// What PTX takes where no word of the kind stands.
const TAKEN: [(&str, &[&str]); 4] = [
    ("weak", &["relaxed", "acquire", "release", "acq_rel", "volatile"]),
    ("relaxed", &["weak", "acquire", "release", "acq_rel", "sc", "volatile"]),
    ("gpu", &["cta", "cluster", "sys"]),
    ("L2", &[]),
];

fn words(text: &str) -> BTreeSet<&str> {
    text.split(' ').next().unwrap_or_default().split('.').collect()
}

/// Whether the printed operation lacks no word of the form, and has none that the form does not mean.
fn same_words(form: &str, printed: &str) -> bool {
    let mut said = words(form);
    let first = form.split('.').next().unwrap_or_default();
    let printed = words(printed);
    for (from, to) in RENAMED {
        if from.iter().all(|w| said.contains(w)) && !printed.contains(from[0]) {
            said.retain(|w| !from.contains(w));
            said.extend(to);
        }
    }
    let unsaid = UNSAID.iter().filter(|(of, _)| *of == first).flat_map(|(_, all)| *all);
    let unsaid: BTreeSet<&str> = unsaid.copied().collect();
    let lost = said.difference(&printed).all(|w| unsaid.contains(w));
    let taken = |w: &str| TAKEN.iter().any(|(of, not)| *of == w && !not.iter().any(|n| said.contains(n)));
    lost && printed.difference(&said).all(|w| taken(w) || first == "prefetch" && *w == "global")
}

#[test]
fn an_operation_says_what_the_instruction_says() {
    let ours = [
        "atom.acq_rel.sys.global.cas.b64 %d1, [%d2+8], %d3, %d4",
        "barrier.cluster.arrive.relaxed.aligned",
        "cp.async.bulk.wait_group.read 1",
        "cp.async.ca.shared.global [%r1], [%d1], 8, %r2",
        "fence.acquire.sync_restrict::shared::cluster.cluster",
        "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128",
        "ld.relaxed.sys.mmio.global.b32 %r1, [gm+4]",
        "mbarrier.arrive_drop.noComplete.release.cta.shared::cta.b64 %d1, [%r2], 3",
        "multimem.red.release.gpu.global.add.u32 [%d1], %r1",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3]",
        "st.volatile.shared.v4.b32 [sm+16], {%r1, %r2, 0, 1}",
        "tcgen05.ld.sync.aligned.16x32bx2.x1.pack::16b.b32 {%r1}, [%r2], 8",
    ];
    assert!(
        operation("ld.global.v2.b32 {_, %r1}, [%d1]").is_some(),
        "an element that nobody wants is loaded"
    );
    let table = census();
    let theirs = table.lines().filter_map(Form::of).filter(Form::accepted).map(|form| form.text);
    let mut wrong = Vec::new();
    for form in ours.into_iter().chain(theirs).filter(|form| !form.starts_with('@')) {
        let Some(printed) = operation(form) else { continue };
        let printed = as_ptx(printed);
        if bytes(form) != bytes(&printed) && !same_words(form, &printed) {
            wrong.push(format!("{form}\n    {printed}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} say something else:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
}

/// The program that two warps of the statements leave, each statement with its semicolon.
fn left(statements: &str) -> Result<String, Refusal> {
    let text = module(statements.trim_end_matches(';'));
    let module = parse(&text).unwrap_or_else(|why| panic!("{statements}: {why}"));
    let launch = Launch::of(&module.kernels[0], None, None, None, std::collections::BTreeMap::new());
    lower(&module.kernels[0], &launch.expect("the launch fits")).map(|lowered| print(&lowered.program))
}

#[test]
fn what_litmus_texts_cannot_say_is_abstained_from_by_name_and_line() {
    let forms = [
        "cp.async.bulk.wait_group.sync_restrict::proxy::async 0",
        "mbarrier.try_wait.parity.phase_type::conditional.shared::cta.b64 %p1, [sm], 0",
        "multimem.red.relaxed.gpu.global.add.v2.f32 [%d1], {%f1, %f2}",
        "atom.acquire.gpu.global.add.v2.f32 {%f1, %f2}, [gm], {%f3, %f4}",
    ];
    for form in forms {
        let Err(Refusal::Abstained { what, line }) = left(form) else { panic!("{form} is interpreted") };
        let name = form.split(' ').next().unwrap_or_default();
        assert!(what.contains(&format!("`{name}`")) && line == 14, "{form}: {what} (line {line})");
    }
}

/// What is left of a thread that runs the first statement and a warp that runs the second.
fn against(first: &str, second: &str) -> String {
    let branch = "mov.u32 %r1, %tid.x;\nmov.b32 %r3, sm;\nsetp.lt.u32 %p1, %r1, 32;\nsetp.eq.u32 %p2, %r1, 0;\n@%p1 bra R;";
    let text =
        module(&format!("{branch}\n{second};\nret;\nR: @%p2 {first}")).replace(".reqntid 32", ".reqntid 64");
    let module = parse(&text).unwrap_or_else(|why| panic!("{first}: {why}"));
    let launch = Launch::of(&module.kernels[0], None, None, None, std::collections::BTreeMap::new());
    let lowered = lower(&module.kernels[0], &launch.expect("the launch fits"));
    print(&lowered.unwrap_or_else(|why| panic!("{first}: {why}")).program)
}

#[test]
fn vectors_of_updates_and_ranges_are_accesses_of_their_bytes() {
    let written = [
        (
            "atom.global.add.v2.f32 {%f1, %f2}, [gm+8], {%f3, %f4}",
            "ld.global.b32 %r2, [gm+12]",
            "st.relaxed.gpu",
        ),
        ("red.sys.global.add.noftz.v2.bf16 [gm], {%h1, %h2}", "ld.global.b16 %h3, [gm+2]", "st.relaxed.sys"),
        ("st.bulk.weak.shared::cta [%r3], 64, 0", "ld.shared.b32 %r2, [sm+60]", "st.weak.shared::cta"),
    ];
    for (first, second, store) in written {
        let text = against(first, second);
        assert!(text.contains(store) && text.contains("ld.weak"), "{first}: {text}");
    }
    let text = against("st.bulk.weak.shared::cta [%r3], 64, 0", "ld.shared.b32 %r2, [sm+64]");
    assert!(!text.contains("st."), "the range ends before the load: {text}");
}

#[test]
fn decimal_numbers_are_bits_of_their_type() {
    let stored = |form: &str| {
        let module = parse(&module(form)).unwrap_or_else(|why| panic!("{form}: {why}"));
        let What::Core(Op::Store { src, .. }) = &module.kernels[0].body[0].what else { panic!("{form}") };
        src[0]
    };
    let half = Operand::Imm(i128::from(0.5_f32.to_bits()));
    assert_eq!(stored("st.global.f32 [gm], 0.5"), half);
    assert_eq!(stored("st.global.f32 [gm], 0f3F000000"), half);
    assert_eq!(stored("st.global.f64 [gm], 0.5"), Operand::Imm(i128::from(0.5_f64.to_bits())));
    assert!(left("createpolicy.fractional.L2::evict_last.b64 %d1, 1.0").is_ok());
}
