//! Clusters that a text needs and does not name.
//!
//! A CTA whose thread names no `cluster` is in none: nothing reaches beyond it but what reaches the whole GPU. If the text uses
//! something of clusters all the same, the CTAs of each grid are taken for one cluster. That is an assumption, and commands
//! say it. Both readings are one program, in which the cluster of every CTA is 0: without an instruction that uses clusters they
//! mean the same.
//!
//! Uses are: the scope `.cluster` and barriers of the cluster, `mapa`, which is the only way to an address in another CTA,
//! masks of CTAs, and pairs of CTAs. None are `.shared::cluster`, which also names memory of the own CTA and stands in forms
//! that have nothing else, and `fence.mbarrier_init.release.cluster`, which has no other scope.

use crate::ir::{CtaGroup, Instr, Op, Program, Scope};
use crate::text::instruction;

/// The first instruction of the text that uses something of clusters: thread and position.
pub fn first_use(program: &Program) -> Option<(usize, usize)> {
    let of = |(t, thread): (usize, &crate::ir::Thread)| {
        let uses = |i: &Instr| {
            let text = instruction(program, thread, &Instr::new(i.op.clone()));
            uses(&i.op, text.split([' ', ';']).next().unwrap_or_default())
        };
        Some((t, thread.body.iter().position(uses)?))
    };
    program.threads.iter().enumerate().find_map(of)
}

/// Whether an instruction with this mnemonic uses something of clusters.
fn uses(op: &Op, mnemonic: &str) -> bool {
    let words = || mnemonic.split('.');
    let said = words().any(|w| w == "cluster" || w.starts_with("multicast::cluster"));
    let said = said && *op != Op::MbarrierInitFence;
    said || matches!(op, Op::Mapa { .. }) || op.cta_group() == Some(CtaGroup::Two)
}

/// Whether the text says which clusters there are.
pub fn named(program: &Program) -> bool {
    program.one_cluster || program.threads.iter().any(|t| t.place.cluster != 0)
}

/// The instruction because of which CTAs are taken for one cluster: thread and position. None if there is none, if the text
/// names clusters, or if no grid has two CTAs.
pub fn assumed(program: &Program) -> Option<(usize, usize)> {
    let place = |t: usize| &program.threads[t].place;
    let all = 0..program.threads.len();
    let several = all.clone().any(|a| {
        all.clone().any(|b| place(a).includes(Scope::Cluster, place(b)) && !place(a).same_cta(place(b)))
    });
    if named(program) || !several { None } else { first_use(program) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::canonical;
    use crate::text::{Format, parse, print};

    fn read(places: [&str; 2], instr: &str) -> Program {
        let [p, q] = places;
        let text = format!(
            "moire \"t\"\n.shared .b32 x;\n.global .b32 g;\nP (gpu 0, {p}) {{ {instr} }}\nQ (gpu 0, {q}) {{ st.u32 [x], 1; }}\n"
        );
        parse(&text, Format::Native).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn one_cluster_is_assumed_where_something_needs_it_and_none_is_named() {
        let uses = [
            "barrier.cluster.wait;",
            "mapa.shared::cluster.u32 r, x, 1;",
            "fence.acq_rel.cluster;",
            "ld.acquire.cluster.u32 r, [g];",
            "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
        ];
        let others =
            ["fence.acq_rel.gpu;", "fence.mbarrier_init.release.cluster;", "st.shared::cluster.u32 [x], 1;"];
        for (instr, used) in uses.map(|u| (u, true)).into_iter().chain(others.map(|o| (o, false))) {
            assert_eq!(first_use(&read(["cta 0", "cta 1"], instr)), used.then_some((0, 0)), "{instr}");
            assert_eq!(assumed(&read(["cta 0", "cta 1"], instr)).is_some(), used, "{instr}");
            for named in
                [["cluster 0, cta 0", "cta 1"], ["cta 0", "cluster 1, cta 1"], ["cta 0", "cta 0, warp 1"]]
            {
                assert_eq!(assumed(&read(named, instr)), None, "{instr} {named:?}");
            }
        }
    }

    #[test]
    fn a_cluster_that_is_named_is_printed_and_means_no_more() {
        let plain = read(["cta 0", "cta 1"], "barrier.cluster.wait;");
        let said = read(["cluster 0, cta 0", "cluster 0, cta 1"], "barrier.cluster.wait;");
        assert!(said.one_cluster && !plain.one_cluster && !print(&plain).contains("cluster 0"));
        assert_eq!(print(&said).matches("cluster 0, cta").count(), 2);
        for program in [&plain, &said] {
            assert_eq!(parse(&print(program), Format::Native).as_ref(), Ok(program));
        }
        assert_eq!(canonical(&plain).id, canonical(&said).id);
    }
}
