//! The stream of kernels: every phase and every kind of weakening is drawn, few kernels are refused, and a weakened one differs from
//! its right one in what it says.

use moire_generate::numbers::Draw;
use moire_generate::protocol::Mutation;
use moire_generate::{KernelDraw, Profile, Stream};
use moire_kernel::ptx;
use std::collections::BTreeSet;

#[test]
fn every_phase_and_every_weakening_is_drawn() {
    let drawn: Vec<KernelDraw> = (0..3000).map(|seed| KernelDraw::draw(&mut Draw::new(seed))).collect();
    let names: BTreeSet<String> =
        drawn.iter().map(|k| ptx::parse(&k.module).unwrap().kernels[0].name.clone()).collect();
    let phases = [
        "tree",
        "transpose",
        "histogram",
        "double_buffer",
        "ring",
        "named",
        "grid_barrier",
        "split_k",
        "semaphore",
        "pipeline",
    ];
    for phase in phases {
        assert!(names.iter().any(|name| name.contains(phase)), "{phase}");
    }
    let weakened: BTreeSet<Mutation> =
        drawn.iter().filter_map(|k| Some(k.weakened.as_ref()?.mutation)).collect();
    // No kernel has a cluster.
    let all = Mutation::ALL.into_iter().filter(|m| *m != Mutation::Cta);
    assert_eq!(weakened.into_iter().collect::<Vec<_>>(), all.collect::<Vec<_>>());
    let right = drawn.iter().filter(|k| k.weakened.is_none()).count();
    assert!((1300..1700).contains(&right), "{right} of 3000 are right");
}

#[test]
fn few_kernels_are_refused() {
    let refused = (0..200).filter(|seed| KernelDraw::draw(&mut Draw::new(*seed)).program().is_none()).count();
    assert!(refused < 10, "{refused} of 200");
}

#[test]
fn a_program_is_that_of_its_module() {
    let stream = Stream::new(3, Profile::Kernel);
    for index in 0..40 {
        let (module, program) = (stream.module(index).unwrap(), stream.item(index));
        let mut own = module.program().unwrap();
        own.name.clone_from(&program.name);
        assert_eq!(own, program);
        assert!(module.text().contains(&format!("--grid {}", module.grid)), "{}", module.text());
    }
}
