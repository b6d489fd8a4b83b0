//! The rule for CTA groups.

use super::report::Report;
use crate::ir::*;

/// Checks that a kernel has instructions for single CTAs or for pairs, not both. Threads of one grid are a kernel.
pub(super) fn groups(report: &mut Report<'_>) {
    let program = report.program;
    let mut first: Vec<(&Thread, CtaGroup)> = Vec::new();
    for thread in &program.threads {
        for instr in &thread.body {
            let Some(group) = instr.op.cta_group() else { continue };
            let same = |t: &Thread| {
                let key = |p: &Placement| (p.host, p.gpu, p.stream, p.grid);
                key(&t.place) == key(&thread.place)
            };
            match first.iter().find(|(t, _)| same(t)) {
                None => first.push((thread, group)),
                Some((_, other)) if *other != group => {
                    let what = "the kernel has both .cta_group::1 and .cta_group::2";
                    report.at("cta-group", thread, instr, what, None);
                    return;
                }
                Some(_) => {}
            }
        }
    }
}
