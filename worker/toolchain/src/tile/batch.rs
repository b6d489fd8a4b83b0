//! Batches: many kernels compiled as one file, because a start of the compiler costs more than a small kernel.
//!
//! A file that is refused or not compiled is cut in two until the kernels to blame are alone in their files. So each kernel
//! gets the answer it would get alone. Kernels are renamed for the file and renamed back, and labels are renumbered.

use super::{Compiled, Stage, Tileiras};
use crate::failure::Failure;
use crate::sass::Nvdisasm;
use moire_tile_ir::bytecode::{Bytecode, WriteError, write};
use moire_tile_ir::{FUNCTIONS, Function, Module};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How to compile.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The target, such as `sm_90`.
    pub target: String,
    /// The level of optimisation, 0 to 3.
    pub level: u8,
    /// The version of the bytecode.
    pub version: Bytecode,
    /// Most kernels of one file.
    pub size: usize,
}

/// The reason that a kernel has no PTX.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unanswered {
    /// The kernel cannot be written as bytecode.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The compiler failed, on this kernel alone or on every kernel.
    #[error(transparent)]
    Compiler(#[from] Arc<Failure>),
}

/// The compiled form of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// Its PTX, as its own module.
    pub ptx: String,
    /// Its machine code, as listed.
    pub machine: Vec<String>,
}

/// Compiles each kernel to PTX, as its own module; answers are in the order of the kernels. `beat` is called before each run of
/// the compiler.
pub fn compile(
    compiler: &Tileiras,
    kernels: &[Function],
    plan: &CompileOptions,
    beat: &dyn Fn(),
) -> Vec<Result<String, Unanswered>> {
    let taken = |compiled: &Compiled, part: &[Function]| {
        let entries = Entries::of(&compiled.ptx);
        let one = |(i, function): (usize, &Function)| Some(renamed(entries.alone(&name(i))?, i, function));
        part.iter().enumerate().map(one).collect()
    };
    all(compiler, kernels, (plan, beat), (Stage::Ptx, &taken))
}

/// Compiles each kernel to PTX and machine code; answers are in the order of the kernels.
pub fn assemble(
    compiler: &Tileiras,
    nvdisasm: &Nvdisasm,
    kernels: &[Function],
    plan: &CompileOptions,
) -> Vec<Result<Assembled, Unanswered>> {
    let taken = |compiled: &Compiled, part: &[Function]| {
        let mut listed = nvdisasm.kernels(compiled.object.as_deref()?).ok()?;
        let entries = Entries::of(&compiled.ptx);
        let one = |(i, function): (usize, &Function)| {
            let ptx = renamed(entries.alone(&name(i))?, i, function);
            Some(Assembled { ptx, machine: listed.remove(&name(i))? })
        };
        part.iter().enumerate().map(one).collect()
    };
    all(compiler, kernels, (plan, &|| {}), (Stage::Object, &taken))
}

fn renamed(text: String, i: usize, function: &Function) -> String {
    text.replace(&name(i), &function.name)
}

/// The last stage, and what is taken from a compiled file: one value for each kernel, or `None` if one is missing.
type Take<'t, T> = (Stage, &'t dyn Fn(&Compiled, &[Function]) -> Option<Vec<T>>);

fn all<T>(
    compiler: &Tileiras,
    kernels: &[Function],
    how: (&CompileOptions, &dyn Fn()),
    take: Take<'_, T>,
) -> Vec<Result<T, Unanswered>> {
    let mut out = Vec::new();
    for part in kernels.chunks(how.0.size.clamp(1, FUNCTIONS)) {
        batch(compiler, part, how, take, &mut out);
    }
    out
}

fn batch<T>(
    compiler: &Tileiras,
    part: &[Function],
    (plan, beat): (&CompileOptions, &dyn Fn()),
    take: Take<'_, T>,
    out: &mut Vec<Result<T, Unanswered>>,
) {
    beat();
    let functions: Vec<Function> =
        (0..).zip(part).map(|(i, function)| Function { name: name(i), ..function.clone() }).collect();
    let module = Module { name: String::new(), functions };
    let failure = match write(&module, plan.version) {
        Err(wrong) => Unanswered::Write(wrong),
        Ok(bytes) => match compiler.compile(&bytes, &plan.target, plan.level, take.0) {
            Ok(compiled) => match (take.1)(&compiled, part) {
                Some(taken) => {
                    out.extend(taken.into_iter().map(Ok));
                    return;
                }
                None => Arc::new(Failure::NoPtx("a kernel is missing".into())).into(),
            },
            Err(failure) => Arc::new(failure).into(),
        },
    };
    let of_the_call = matches!(&failure, Unanswered::Compiler(f) if f.of_the_call());
    if part.len() == 1 || of_the_call {
        out.extend(part.iter().map(|_| Err(failure.clone())));
        return;
    }
    let (one, other) = part.split_at(part.len() / 2);
    batch(compiler, one, (plan, beat), take, out);
    batch(compiler, other, (plan, beat), take, out);
}

/// The name of a kernel in a file. It is part of no other word.
fn name(i: usize) -> String {
    format!("moire_kernel_{i}_")
}

/// What stands before the name of a kernel.
const ENTRY: &str = ".visible .entry ";

/// The kernels of a module by name, each to be taken as a module: the text before the first kernel, and the kernel.
pub(crate) struct Entries<'t> {
    head: String,
    kernels: BTreeMap<&'t str, &'t str>,
}

impl<'t> Entries<'t> {
    pub(crate) fn of(ptx: &'t str) -> Entries<'t> {
        let mut parts = ptx.split(ENTRY);
        // Comments name the kernels of the whole module.
        let head = parts.next().unwrap_or_default().lines();
        let head = head.filter(|l| !l.trim_start().starts_with("//") && !l.trim().is_empty());
        let kernel =
            |part: &'t str| Some((part.split_once('(')?.0, &part[..part.find("\n}\n")? + "\n}\n".len()]));
        let kernels = parts.filter_map(kernel).collect();
        Entries { head: head.flat_map(|l| [l, "\n"]).collect(), kernels }
    }

    /// The module of one kernel.
    pub(crate) fn alone(&self, name: &str) -> Option<String> {
        let kernel = self.kernels.get(name)?;
        let text = format!("{}{ENTRY}{kernel}", self.head);
        Some(NUMBERED.iter().fold(text, |text, prefix| unnumbered(&text, prefix)))
    }
}

/// Prefixes of names that continue with the number of the kernel in its file.
const NUMBERED: [&str; 2] = ["$L__BB", "__local_depot"];

/// The text with 0 in place of that number.
fn unnumbered(text: &str, prefix: &str) -> String {
    let Some(at) = text.find(prefix).map(|at| at + prefix.len()) else { return text.to_owned() };
    let digits: String = text[at..].chars().take_while(char::is_ascii_digit).collect();
    text.replace(&format!("{prefix}{digits}"), &format!("{prefix}0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_taken_apart() {
        let ptx = "//\n.version 9.5\n.target sm_90a\n\n\t// .globl\ta\n.visible .global .b8 m[64];\n\n.visible .entry a(\n)\n{\n\t{ ret; }\n}\n\t// .globl\tab\n.visible .entry ab(\n)\n{\n\tbra.uni $L__BB1_1;\n}\n";
        let head = ".version 9.5\n.target sm_90a\n.visible .global .b8 m[64];\n";
        let entries = Entries::of(ptx);
        assert_eq!(
            entries.alone("a").unwrap(),
            format!("{head}.visible .entry a(\n)\n{{\n\t{{ ret; }}\n}}\n")
        );
        assert_eq!(
            entries.alone("ab").unwrap(),
            format!("{head}.visible .entry ab(\n)\n{{\n\tbra.uni $L__BB0_1;\n}}\n")
        );
        assert_eq!(entries.alone("b"), None);
        assert!(!name(11).contains(&name(1)));
    }
}
