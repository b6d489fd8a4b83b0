//! Phases whose threads meet at barriers of their CTA: a tree reduction, a transpose, a histogram, a double buffer of small copies.

use super::elements::{Element, Sum};
use super::text::{Script, Weaker};
use crate::numbers::Choose;
use crate::protocol::Mutation;

/// Adds the addresses of the element of this thread: `r_at` in shared memory `of`, `d_from` and `d_to` in global memory.
fn own(k: &mut Script, element: Element, of: &str) {
    let (bytes, block) = (element.bytes, k.shape.block);
    k.line(format!("mad.lo.u32 r_at, r_tid, {bytes}, r_{of};"));
    k.line(format!("mad.lo.u32 r_global, r_cta, {block}, r_tid;"));
    k.line(format!("mul.wide.u32 d_step, r_global, {bytes};"));
    k.all(&["add.u64 d_from, d_in, d_step;", "add.u64 d_to, d_out, d_step;"]);
}

/// A tree reduction: halves meet at barriers. The last elements are added up there, too, or by shuffles of a warp.
pub(super) fn tree(k: &mut Script, d: &mut dyn Choose) {
    let shape = k.shape;
    let (sum, rounds, low) = (Sum::draw(d), d.pick(&[1, 1, 2]), d.pick(&[32, 16, 8]));
    let shuffles = sum.element.bytes == 4 && d.chance(50);
    let Element { of, bytes, .. } = sum.element;
    let (value, other) = (sum.element.named("v"), sum.element.named("w"));
    k.memory("part", shape.block * bytes, 16);
    own(k, sum.element, "part");
    k.line("mad.wide.u32 d_place, r_cta, 64, d_out;");
    for round in 0..rounds {
        k.line(format!("ld.global.{of} {value}, [d_from+{}];", round * shape.block * bytes * shape.grid));
        if round > 0 {
            k.sync();
        }
        k.line(format!("st.shared.{of} [r_at], {value};"));
        let mut stride = shape.block / 2;
        while stride >= low {
            k.line(format!("setp.lt.u32 p_in, r_tid, {stride};"));
            k.sync();
            k.line(format!("@p_in ld.shared.{of} {other}, [r_at+{}];", stride * bytes));
            k.line(format!("@p_in {} {value}, {value}, {other};", sum.instruction));
            k.line(format!("@p_in st.shared.{of} [r_at], {value};"));
            stride /= 2;
        }
        if shuffles {
            for lanes in [16, 8, 4, 2, 1] {
                k.line(format!("shfl.sync.down.b32 {other}, {value}, {lanes}, 31, -1;"));
                k.line(format!("{} {value}, {value}, {other};", sum.instruction));
            }
        } else {
            k.sync();
            k.line(format!("@p_first ld.shared.{of} {value}, [r_part];"));
        }
        k.line(format!("@p_first st.global.{of} [d_place+{}], {value};", 8 * round));
    }
}

/// A transpose: each thread stores an element of a tile and loads another one, tile after tile.
pub(super) fn transpose(k: &mut Script, d: &mut dyn Choose) {
    let shape = k.shape;
    let (element, tiles, buffers) = (Element::moved(d), d.pick(&[1, 2, 3]), d.pick(&[1, 2]));
    let turn = d.pick(&[1, 31, 32, 33, 63]);
    let Element { of, bytes, .. } = element;
    let (value, tile) = (element.named("v"), shape.block * bytes);
    k.memory("tile", tile * buffers, 16);
    own(k, element, "tile");
    k.line(format!("add.u32 r_other, r_tid, {turn};"));
    k.line(format!("rem.u32 r_other, r_other, {};", shape.block));
    k.line(format!("mad.lo.u32 r_across, r_other, {bytes}, r_tile;"));
    for n in 0..tiles {
        let (far, place) = (n * tile * shape.grid, n % buffers * tile);
        k.line(format!("ld.global.{of} {value}, [d_from+{far}];"));
        if n > 0 && buffers == 1 {
            k.sync();
        }
        k.line(format!("st.shared.{of} [r_at+{place}], {value};"));
        k.sync();
        k.line(format!("ld.shared.{of} {value}, [r_across+{place}];"));
        k.line(format!("st.global.{of} [d_to+{far}], {value};"));
    }
}

/// A histogram: bins in shared memory are cleared, filled at places that data decides, and added to those of all CTAs.
pub(super) fn histogram(k: &mut Script, d: &mut dyn Choose) {
    let shape = k.shape;
    let word = d.pick(&["u32", "u32", "u64"]);
    let (known, apart) = (d.chance(50), d.chance(50));
    let each = if known { d.pick(&[1, 2]) } else { 1 };
    let (bytes, c) = if word == "u64" { (8, 'd') } else { (4, 'r') };
    k.memory("bins", shape.block * bytes, 16);
    k.line(format!("mad.lo.u32 r_at, r_tid, {bytes}, r_bins;"));
    k.line(format!("mul.wide.u32 d_step, r_tid, {bytes};"));
    k.line("add.u64 d_to, d_out, d_step;");
    k.line(format!("mad.lo.u32 r_global, r_cta, {}, r_tid;", shape.block));
    k.all(&["cvt.u64.u32 d_step, r_global;", "add.u64 d_from, d_in, d_step;"]);
    k.line(format!("st.shared.{word} [r_at], 0;"));
    for n in 0..each {
        if known {
            k.line(format!("xor.b32 r_bin, r_tid, {};", 33 + n));
        } else {
            k.line(format!("ld.global.u8 r_bin, [d_from+{}];", 256 * n));
        }
        k.line(format!("rem.u32 r_bin, r_bin, {};", shape.block));
        k.line(format!("mad.lo.u32 r_slot, r_bin, {bytes}, r_bins;"));
        if n == 0 {
            k.sync();
        }
        let plain = format!(
            "ld.shared.{word} {c}_was, [r_slot]; add.{word} {c}_was, {c}_was, 1; st.shared.{word} [r_slot], {c}_was;"
        );
        k.weak(format!("red.shared.add.{word} [r_slot], 1;"), &[(Mutation::Weaken, &plain)]);
    }
    k.sync();
    k.line(format!("ld.shared.{word} {c}_sum, [r_at];"));
    if apart {
        k.line(format!("mul.wide.u32 d_step, r_cta, {};", shape.block * bytes));
        k.line("add.u64 d_to, d_to, d_step;");
        k.line(format!("st.global.{word} [d_to], {c}_sum;"));
    } else {
        let scope = d.pick(&["", ".relaxed.gpu", ".relaxed.sys"]);
        let add = |scope: &str| format!("red{scope}.global.add.{word} [d_to], {c}_sum;");
        k.weak(add(scope), &[(Mutation::Scope, &add(".relaxed.cta"))]);
    }
}

/// A double buffer: small copies fill one tile while another is read.
pub(super) fn double(k: &mut Script, d: &mut dyn Choose) {
    let shape = k.shape;
    let (stages, ahead) = d.pick(&[(2, 1), (2, 1), (3, 1), (3, 2), (1, 0)]);
    let rounds = d.pick(&[2, 3, 4]);
    let element = Element::wide(d);
    let turn = d.pick(&[1, 7, 31, 32]);
    let cache = d.pick(&["cg", "ca"]);
    let (tile, value) = (shape.block * 16, element.named("v"));
    k.memory("tile", tile * stages, 16);
    own(k, element, "tile");
    k.line(format!("mul.wide.u32 d_step, r_cta, {};", tile * (rounds - 1)));
    k.all(&["add.u64 d_from, d_from, d_step;", "add.u64 d_to, d_to, d_step;"]);
    k.line(format!("xor.b32 r_other, r_tid, {turn};"));
    k.line(format!("rem.u32 r_other, r_other, {};", shape.block));
    k.line("mad.lo.u32 r_across, r_other, 16, r_tile;");
    let copy = |k: &mut Script, n: u32| {
        if n < rounds {
            k.line(format!(
                "cp.async.{cache}.shared.global [r_at+{}], [d_from+{}], 16;",
                n % stages * tile,
                n * tile
            ));
        }
        k.line("cp.async.commit_group;");
    };
    (0..ahead).for_each(|n| copy(k, n));
    for n in 0..rounds {
        copy(k, n + ahead);
        let left = format!("cp.async.wait_group {};", ahead + 1);
        k.weak(format!("cp.async.wait_group {ahead};"), &[(Mutation::Drop, ""), (Mutation::Count, &left)]);
        k.or(Weaker::Later);
        k.sync();
        k.line(format!("ld.shared.{} {value}, [r_across+{}];", element.of, n % stages * tile));
        k.line(format!("st.global.{} [d_to+{}], {value};", element.of, n * tile));
        if n + 1 < rounds {
            k.sync();
        }
    }
}
