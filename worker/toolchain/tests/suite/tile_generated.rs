//! NVIDIA's compiler on random kernels: it takes each, and gives PTX that can be read. Without `tileiras` the test says
//! so and passes.

use moire_generate::tile_seed;
use moire_kernel::ptx;
use moire_tile_ir::Function;
use moire_tile_ir::text as tile;
use moire_toolchain::tile::Tileiras;
use moire_toolchain::tile::batch::{CompileOptions, compile};
use std::collections::BTreeMap;

#[test]
fn random_kernels_are_compiled() {
    let Ok(tool) = Tileiras::find(None) else { return crate::outside::skipped("tileiras") };
    let plan = CompileOptions { target: "sm_90".into(), level: 3, version: tool.bytecode(), size: 40 };
    let draws: Vec<_> = (0..120).map(|index| tile_seed(14, index)).collect();
    let kernels: Vec<Function> = draws.iter().flat_map(|d| d.module.functions.clone()).collect();
    let mut threads: BTreeMap<Option<[u32; 3]>, usize> = BTreeMap::new();
    for (draw, answer) in draws.iter().zip(compile(&tool, &kernels, &plan, &|| {})) {
        let text = answer.unwrap_or_else(|e| panic!("{e}\n{}", tile::print(&draw.module)));
        let module = ptx::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(module.kernels.len(), 1, "{text}");
        *threads.entry(module.kernels[0].threads).or_default() += 1;
    }
    println!("{}: {} kernels by threads: {threads:?}", tool.version(), kernels.len());
    assert!(threads.len() > 1, "{threads:?}");
}
