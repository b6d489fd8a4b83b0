//! Many kernels in one file: a start of the compiler costs more than a small kernel does.
//!
//! A file that is refused or not compiled is cut in two until the kernels that are to blame stand alone, so each kernel
//! gets its own answer, and that answer is the one it gets alone. Kernels are renamed for the file and renamed back, labels renumbered.

use super::{Bytecode, Compiled, Failure, Stage, Tileiras, WriteError, write};
use crate::sass::Nvdisasm;
use moire_program::tile::{FUNCTIONS, Function, Module};
use std::sync::Arc;

/// How to compile.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Such as `sm_90`.
    pub target: String,
    /// 0 to 3.
    pub level: u8,
    /// Of the file.
    pub version: Bytecode,
    /// Kernels of one file.
    pub size: usize,
}

/// Why a kernel has no PTX.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unanswered {
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The compiler, on this kernel alone or on any.
    #[error(transparent)]
    Compiler(#[from] Arc<Failure>),
}

/// What the compiler made of a kernel, and the assembler of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// A module of its own.
    pub ptx: String,
    /// Machine code, as it is listed.
    pub machine: Vec<String>,
}

/// PTX of each kernel, as a module of its own, in their order.
pub fn compile(compiler: &Tileiras, kernels: &[Function], plan: &Plan) -> Vec<Result<String, Unanswered>> {
    let taken = |compiled: &Compiled, part: &[Function]| {
        let one =
            |(i, function): (usize, &Function)| Some(renamed(entry(&compiled.ptx, &name(i))?, i, function));
        part.iter().enumerate().map(one).collect()
    };
    all(compiler, kernels, plan, (Stage::Ptx, &taken))
}

/// PTX and machine code of each kernel, in their order.
pub fn assemble(
    compiler: &Tileiras,
    nvdisasm: &Nvdisasm,
    kernels: &[Function],
    plan: &Plan,
) -> Vec<Result<Assembled, Unanswered>> {
    let taken = |compiled: &Compiled, part: &[Function]| {
        let mut listed = nvdisasm.kernels(compiled.object.as_deref()?).ok()?;
        let one = |(i, function): (usize, &Function)| {
            let ptx = renamed(entry(&compiled.ptx, &name(i))?, i, function);
            Some(Assembled { ptx, machine: listed.remove(&name(i))? })
        };
        part.iter().enumerate().map(one).collect()
    };
    all(compiler, kernels, plan, (Stage::Object, &taken))
}

fn renamed(text: String, i: usize, function: &Function) -> String {
    text.replace(&name(i), &function.name)
}

/// How far to go, and what is taken from a compiled file: one for each kernel, or nothing where one is missing.
type Take<'t, T> = (Stage, &'t dyn Fn(&Compiled, &[Function]) -> Option<Vec<T>>);

fn all<T>(
    compiler: &Tileiras,
    kernels: &[Function],
    plan: &Plan,
    take: Take<'_, T>,
) -> Vec<Result<T, Unanswered>> {
    let mut out = Vec::new();
    for part in kernels.chunks(plan.size.clamp(1, FUNCTIONS)) {
        batch(compiler, part, plan, take, &mut out);
    }
    out
}

fn batch<T>(
    compiler: &Tileiras,
    part: &[Function],
    plan: &Plan,
    take: Take<'_, T>,
    out: &mut Vec<Result<T, Unanswered>>,
) {
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
    batch(compiler, one, plan, take, out);
    batch(compiler, other, plan, take, out);
}

/// A name that is part of no other word.
fn name(i: usize) -> String {
    format!("moire_kernel_{i}_")
}

/// One kernel of a module as a module: what stands before the first kernel, and the kernel.
fn entry(ptx: &str, name: &str) -> Option<String> {
    let head = ptx.find(".visible .entry")?;
    let start = ptx.find(&format!(".visible .entry {name}("))?;
    let end = start + ptx[start..].find("\n}\n")? + "\n}\n".len();
    // Comments name the kernels of the whole module.
    let head = ptx[..head].lines().filter(|l| !l.trim_start().starts_with("//") && !l.trim().is_empty());
    let mut out = String::new();
    head.chain(ptx[start..end].lines()).for_each(|line| {
        out.push_str(line);
        out.push('\n');
    });
    Some(NUMBERED.iter().fold(out, |text, prefix| unnumbered(&text, prefix)))
}

/// Starts names that go on with the number of the kernel in its file.
const NUMBERED: [&str; 2] = ["$L__BB", "__local_depot"];

/// The text with 0 for that number.
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
        assert_eq!(entry(ptx, "a").unwrap(), format!("{head}.visible .entry a(\n)\n{{\n\t{{ ret; }}\n}}\n"));
        assert_eq!(
            entry(ptx, "ab").unwrap(),
            format!("{head}.visible .entry ab(\n)\n{{\n\tbra.uni $L__BB0_1;\n}}\n")
        );
        assert_eq!(entry(ptx, "b"), None);
        assert!(!name(11).contains(&name(1)));
    }
}
