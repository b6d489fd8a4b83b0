//! Ids of programs stay what they are: findings of older releases are known by them.
//!
//! An id is the hash of the canonical text, which the printer writes. So one digest holds the texts of all forms of tensor-core,
//! copy, fence and control instructions beside the ids.

use crate::forms::{ANSWERS, kernel};
use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};

/// An instruction of each family, in an order that no canonical text has, and the id of the program in which two threads execute it
/// and the next one.
const IDS: [(&str, &str); 20] = [
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r20,r21}, ad, bd, p, 1, 1, 0, 0",
        "bce44a6849c4d893",
    ),
    ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [r1], 32", "c1c7ea18c3544684"),
    ("exit", "396066bf34c56b4b"),
    ("tcgen05.mma.cta_group::1.kind::f16 [t], [tA], bd, idesc, p", "f2849dba6e2fe3a1"),
    ("fence.proxy.tensormap::generic.acquire.cta [d0], 128", "ee685e650e2fda44"),
    ("ld.acquire.cluster.shared.v2.u32 {r4,r5}, [buf]", "22dcc696a8787ebd"),
    ("tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [t], sd", "a7c10328627f1d82"),
    ("red.async.release.gpu.global.add.u32 [g], r3", "266b85c5ce1f5aca"),
    ("elect.sync _|q, 3", "fb8cef95348ca93d"),
    ("mbarrier.arrive.release.cta.shared::cta.b64 _, [mb]", "372384df4b600261"),
    ("cp.async.bulk.wait_group.read 1", "e735b3f8f337bd0d"),
    ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [r0]", "ca8f7786c77003a4"),
    ("tensormap.replace.tile.global_address.global.b1024.b64 [g], d0", "78d492e2f90cf4aa"),
    ("atom.acq_rel.gpu.shared.cas.b32 r6, [slot], 0, 1", "3080ff3a3313d3eb"),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [r2], {r3,r4}, [r0]", "b401218777889352"),
    ("tile.ld.weak.u32 {@p [buf] -> r8, 7; [buf+4] -> r9} gives t3", "7a133d288f582ccb"),
    (
        "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [d0], [d1]",
        "64482efeef722ecb",
    ),
    ("bar.red.popc.u32 r7, 1, 64, p", "23bea6c4b2af61b5"),
    ("griddepcontrol.wait", "14bc54c23fc5038f"),
    ("tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {r20}, [t]", "4eba3c5e78a7098f"),
];

/// Of the texts of all forms of the table of answers that can be read.
const TEXTS: &str = "75082a39855d385a";

/// A thread for each of two instructions, in different CTAs.
fn both(one: &str, other: &str) -> Program {
    let other = kernel(other);
    let (_, body) = other.split_once("cta 0)").unwrap();
    let text = format!("{}P1 (gpu 0, cta 1){body}", kernel(one));
    parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn twenty_programs_keep_their_ids() {
    let mut now = String::new();
    for (n, (form, id)) in IDS.iter().enumerate() {
        let found = canonical(&both(form, IDS[(n + 1) % IDS.len()].0)).id.short();
        if found != *id {
            now.push_str(&format!("{found} {form}\n"));
        }
    }
    assert_eq!(now, "", "ids of programs have changed");
}

#[test]
fn texts_of_all_forms_are_what_they_were() {
    let mut hasher = blake3::Hasher::new();
    let forms = ANSWERS.lines().filter_map(|line| line.splitn(3, ',').nth(2));
    let read = forms.filter_map(|form| parse(&kernel(form), Format::Native).ok());
    read.for_each(|program| _ = hasher.update(print(&program).as_bytes()));
    assert_eq!((hasher.count() > 100_000, &hasher.finalize().to_hex()[..16]), (true, TEXTS));
}
