//! Which workers can judge what: the words that coordinators and workers share.
//!
//! Contract: an oracle with a tool is for workers with its capability, and for nobody else. A stream whose items only
//! oracles with tools judge names some of them; a campaign over it that names no oracle is for these.

/// The oracles that need a tool, each with the capability of the workers that have it.
pub const TOOLS: &[(&str, &str)] = &[
    ("assembler", "ptxas"),
    ("sass", "sass"),
    ("compiler", "tileiras"),
    ("llvm", "llvm"),
    ("nvcc", "nvcc"),
    ("libnvvm", "libnvvm"),
    ("triton", "triton"),
    ("mixing", "mixing"),
    ("sass-source", "sass-source"),
    ("device", "device"),
    ("stand-in", "stand-in"),
];

/// Streams, and the oracles that judge their items where none are named.
pub const ORACLES: &[(&str, &[&str])] = &[("tile-ir", &["compiler"]), ("source", &["llvm"])];

/// The oracles of a campaign over a stream: those that are named, or those of the stream. Empty: all that need no tool.
pub fn oracles(stream: &str, named: Vec<String>) -> Vec<String> {
    let own = ORACLES.iter().find(|(name, _)| *name == stream).map_or(&[][..], |(_, own)| own);
    if named.is_empty() { own.iter().map(|name| (*name).to_owned()).collect() } else { named }
}

/// The capabilities that a worker needs for these oracles.
pub fn needs<'a>(oracles: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = String> {
    let tool = |name: &str| TOOLS.iter().find(|(oracle, _)| *oracle == name);
    oracles.into_iter().filter_map(move |name| Some(tool(name)?.1.to_owned()))
}

/// Oracles whose answers are samples: two workers need not see the same, and what one sees is no part of a digest. What is seen
/// is seen; what is not seen again says nothing.
const SAMPLED: [&str; 2] = ["device", "stand-in"];

/// Whether this is such an oracle, or a row of one, `NAME/..`.
pub fn is_sampled(name: &str) -> bool {
    name.split('/').next().is_some_and(|oracle| SAMPLED.contains(&oracle))
}

/// Oracles that name what a compiler lost: a class of the mistake, then the instruction.
pub const CELLS: [&str; 4] = ["llvm", "nvcc", "libnvvm", "triton"];
/// The oracles that name what an assembler lost: how, then the step and the class of its instruction.
pub const MACHINE: [&str; 2] = ["sass", "sass-source"];
/// The oracle that names what a compiler of kernels did, if that is known.
pub const CAUSES: &str = "compiler";

/// Whether claims of an oracle with these checks are one bug, whatever their programs: an order or a scope that is lost by one
/// instruction, a weak or wrongly sized access in the place of an atomic one, a step that machine code lacks, a cause that is known of a compiler of kernels, or a
/// tool that dies in one way. Another kind of claim is known by its program.
pub fn one_bug(oracle: &str, checks: &[Vec<String>]) -> bool {
    let class = checks.first().and_then(|set| set.first()).map_or("", String::as_str);
    let lost = match class {
        "order-lost" | "scope-lost" => checks.len() > 1,
        "weak-access" | "mixed-size" | "update-lost" | "load-updates" | "barrier-lost" => true,
        _ => false,
    };
    let dies = class == "crash" && checks.len() > 1 && TOOLS.iter().any(|(tool, _)| *tool == oracle);
    dies || MACHINE.contains(&oracle) && checks.len() > 1
        || oracle == CAUSES && !class.is_empty()
        || CELLS.contains(&oracle) && lost
}
