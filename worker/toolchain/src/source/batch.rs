//! Batches: many source programs compiled as one text, because a start of a compiler costs more than a small program.
//!
//! A text that is refused is compiled again without the programs that the compiler blames: first what stands behind them, which
//! may hold others. If it blames none, the text is cut in two until the programs to blame are alone in theirs. So each program
//! gets the answer it would get alone, but for the numbers of labels and of its kernels, which are made the same.

use super::{Compiler, Options};
use crate::Failure;
use crate::tile::batch::Entries;
use moire_source::Source;
use moire_source::llvm::kernel_name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The PTX of a program: a module for each thread.
pub type Threads = Vec<String>;

/// Compiles each program; answers are in the order of the programs. `size` is the most programs of one text. `beat` is called
/// before each run of the compiler.
pub fn compile(
    compiler: &Compiler,
    programs: &[&Source],
    options: &Options,
    size: usize,
    beat: &dyn Fn(),
) -> Vec<Result<Threads, Arc<Failure>>> {
    let mut out = Vec::new();
    for part in programs.chunks(size.min(compiler.kind().most()).max(1)) {
        batch(compiler, part, (options, beat), &mut out);
    }
    out
}

/// The answer about a program.
type Answer = Result<Threads, Arc<Failure>>;

fn batch(compiler: &Compiler, part: &[&Source], how: (&Options, &dyn Fn()), out: &mut Vec<Answer>) {
    let mut answers: Vec<Option<Answer>> = vec![None; part.len()];
    let mut from = 0;
    while let Some(rest) = part.get(from..).filter(|rest| !rest.is_empty()) {
        let failure = match once(compiler, rest, how) {
            Ok(all) => {
                answers[from..].iter_mut().zip(all).for_each(|(answer, ptx)| *answer = Some(Ok(ptx)));
                break;
            }
            Err(failure) => failure,
        };
        let blamed = blamed(&failure, rest);
        if rest.len() == 1 || failure.of_the_call() || blamed.is_empty() {
            alone(compiler, rest, how, failure, &mut answers[from..]);
            break;
        }
        for (n, lines) in &blamed {
            answers[from + n] = Some(Err(Arc::new(Failure::Refused(lines.clone()).without_places())));
        }
        // `llc` ends at the first function that it does not take. What stands before it is compiled later, all together.
        let first = blamed.keys().next().filter(|_| failure.blamed().is_some());
        from = first.map_or(part.len(), |n| from + n + 1);
    }
    let open: Vec<&Source> =
        part.iter().zip(&answers).filter(|(_, a)| a.is_none()).map(|(s, _)| *s).collect();
    let mut later = Vec::new();
    if !open.is_empty() {
        batch(compiler, &open, how, &mut later);
    }
    let mut later = later.into_iter();
    out.extend(answers.into_iter().filter_map(|answer| answer.or_else(|| later.next())));
}

/// One run of the compiler.
fn once(
    compiler: &Compiler,
    part: &[&Source],
    (options, beat): (&Options, &dyn Fn()),
) -> Result<Vec<Threads>, Failure> {
    beat();
    let ptx = compiler.compile(&compiler.kind().text(part, options), options)?;
    taken(&ptx, part).ok_or_else(|| Failure::NoPtx("a kernel is missing".into()))
}

/// The answers where the compiler blames no program: that of the call, or those of both halves.
fn alone(
    compiler: &Compiler,
    part: &[&Source],
    how: (&Options, &dyn Fn()),
    failure: Failure,
    answers: &mut [Option<Answer>],
) {
    let mut all = Vec::new();
    if part.len() == 1 || failure.of_the_call() {
        let failure = Arc::new(failure.without_places());
        all.extend(part.iter().map(|_| Err(Arc::clone(&failure))));
    } else {
        let (one, other) = part.split_at(part.len() / 2);
        batch(compiler, one, how, &mut all);
        batch(compiler, other, how, &mut all);
    }
    answers.iter_mut().zip(all).for_each(|(answer, one)| *answer = Some(one));
}

/// The programs that the compiler blames, by position, and what it says.
fn blamed(failure: &Failure, part: &[&Source]) -> BTreeMap<usize, Vec<String>> {
    let Failure::Refused(said) = failure else { return BTreeMap::new() };
    let kernels = || (0..part.len()).flat_map(|n| (0..part[n].threads.len()).map(move |t| (n, t)));
    if let Some(name) = failure.blamed() {
        let named = kernels().find(|(n, t)| kernel_name(*n, *t) == name);
        return named.map(|(n, _)| (n, said.clone())).into_iter().collect();
    }
    // A kernel stands on a line of its own (`moire_source::cuda`).
    let lines = failure.blamed_lines();
    let words = |(line, (n, _)): (usize, (usize, usize))| Some((n, vec![(*lines.get(&line)?).to_owned()]));
    (1..).zip(kernels()).filter_map(words).collect()
}

/// The modules of each program, under the number that the program has alone.
fn taken(ptx: &str, part: &[&Source]) -> Option<Vec<Threads>> {
    let entries = Entries::of(ptx);
    let of = |(n, source): (usize, &&Source)| {
        (0..source.threads.len()).map(|t| module(&entries, n, t)).collect::<Option<Threads>>()
    };
    part.iter().enumerate().map(of).collect()
}

/// The kernel of a thread as a module, without the shared variables of other programs.
fn module(entries: &Entries<'_>, program: usize, thread: usize) -> Option<String> {
    let name = kernel_name(program, thread);
    let text = entries.alone(&name)?;
    let own = format!("moire_s{program}_");
    let kept = text.lines().filter(|l| !l.contains("moire_s") || l.contains(&own));
    let text: String = kept.flat_map(|l| [l, "\n"]).collect();
    Some(text.replace(&name, &kernel_name(0, thread)).replace(&own, "moire_s0_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_the_same_text_whatever_stands_before_it() {
        let module = |n: usize| {
            format!(
                ".version 8.6\n.target sm_90\n.shared .align 4 .u32 moire_s3_0;\n.shared .align 4 .u32 moire_s{n}_1;\n\
                 .visible .entry moire_{n}_0_(\n)\n{{\n\tld.shared.u32 %r1, [moire_s{n}_1];\n\tbra $L__BB{n}_2;\n}}\n"
            )
        };
        let alone = |ptx: &str, program| super::module(&Entries::of(ptx), program, 0);
        let one = alone(&module(0), 0).unwrap();
        assert_eq!(Some(&one), alone(&module(7), 7).as_ref());
        assert!(one.contains("[moire_s0_1]") && !one.contains("moire_s3"), "{one}");
        assert_eq!(alone(&module(7), 6), None);
    }
}
