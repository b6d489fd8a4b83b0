//! PTX of source programs.
//!
//! A drawn program goes to a compiler without the forms that the compiler refuses ([`form::settled`]). A program that is given
//! as a text stays as it is.

use super::Threads;
use super::cell::Cell;
use super::judge;
use super::turns::{LARGE, Stretches, Turn};
use crate::oracle::abstention::Abstention;
use crate::oracle::batches;
use moire_generate::source::source_seed;
use moire_source::Source;
use moire_source::form::{self, Forms, forms};
use moire_toolchain::Failure;
use moire_toolchain::source::{Compiler, Table, batch};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The PTX of a program, or why there is none.
type Ptx = Result<Threads, Arc<Failure>>;

/// A compiler and how it is called.
pub(super) type Called<'a> = (&'a Compiler, &'a Cell);

/// What compilers refuse, and drawn programs with their PTX: one for each compiler that was named.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Where tables are kept between runs.
    folder: Option<PathBuf>,
    tables: Mutex<Vec<(Cell, Arc<Mutex<Table>>)>>,
    batches: batches::Batches<(Turn, usize, Vec<Cell>), (Source, Vec<Ptx>, Option<Source>)>,
    stretches: Stretches,
    /// What was judged lately.
    pub(super) found: judge::Found,
}

impl Answers {
    /// Answers whose tables are kept in the user's cache.
    pub(super) fn kept() -> Answers {
        Answers { folder: moire_toolchain::source::folder(), ..Answers::default() }
    }

    /// The program at `index` of the stream `seed`, whose turn it is, as these compilers take it, the PTX that each makes, and a
    /// form that was drawn of which the first one dies. `beat` is called from time to time.
    pub(super) fn item(
        &self,
        by: &[Called<'_>],
        (seed, index, turn): (u64, u64, Turn),
        beat: &dyn Fn(),
    ) -> (Source, Vec<Result<Threads, Abstention>>, Option<Source>) {
        let cells: Vec<Cell> = by.iter().map(|(_, cell)| (*cell).clone()).collect();
        let place = turn.place(index);
        let size = self.stretches.size(seed, turn, place);
        let (source, ptx, deadly) = self.batches.item(size, &(turn, size, cells), (seed, place), |places| {
            let drawn: Vec<Source> = places.map(|place| source_seed(seed, turn.index(place))).collect();
            let wanted: Vec<Forms> = drawn.iter().map(forms).collect();
            let drawn = self.settled(by, &drawn, beat);
            let deadly =
                |forms: &Forms| by.first().and_then(|one| lock(&self.table(*one)).deadly(forms).cloned());
            let deadly: Vec<_> = wanted.iter().map(deadly).collect();
            let all: Vec<&Source> = drawn.iter().collect();
            let mut rows = vec![Vec::new(); drawn.len()];
            for one in by {
                beat();
                rows.iter_mut().zip(self.ptx(*one, &all, beat)).for_each(|(row, ptx)| row.push(ptx));
            }
            drawn.into_iter().zip(rows).zip(deadly).map(|((one, row), deadly)| (one, row, deadly)).collect()
        });
        let ptx = ptx.into_iter().zip(by).map(|(ptx, (compiler, _))| named(compiler, ptx)).collect();
        (source, ptx, deadly)
    }

    /// The PTX of each program.
    pub(super) fn compile(
        &self,
        by: Called<'_>,
        sources: &[&Source],
        beat: &dyn Fn(),
    ) -> Vec<Result<Threads, Abstention>> {
        self.ptx(by, sources, beat).into_iter().map(|one| named(by.0, one)).collect()
    }

    /// The programs as all of these compilers take them.
    fn settled(&self, by: &[Called<'_>], drawn: &[Source], beat: &dyn Fn()) -> Vec<Source> {
        form::settled(drawn, &mut |forms| self.refused(by, forms, beat))
    }

    /// Programs with a form that is refused are not compiled.
    fn ptx(&self, by: Called<'_>, sources: &[&Source], beat: &dyn Fn()) -> Vec<Ptx> {
        let (table, each) = (self.table(by), sources.iter().map(|s| forms(s)).collect::<Vec<_>>());
        let mut table = lock(&table);
        table.refused(&each.iter().flatten().map(|(name, one)| (name.clone(), one.clone())).collect(), beat);
        let refusals: Vec<_> = each.iter().map(|forms| table.refusal(forms)).collect();
        drop(table);
        let fit: Vec<&Source> =
            sources.iter().zip(&refusals).filter(|(_, why)| why.is_none()).map(|(s, _)| *s).collect();
        let mut made = batch::compile(by.0, &fit, &by.1.options(by.0), LARGE, beat).into_iter();
        let answer = |refusal: Option<Failure>| match refusal {
            Some(why) => Err(Arc::new(why)),
            None => made.next().map_or_else(
                || Err(Arc::new(Failure::NoPtx("a program has no answer".into()))),
                |one| one.map(Into::into),
            ),
        };
        refusals.into_iter().map(answer).collect()
    }

    /// Which of these forms one of the compilers refuses.
    pub(super) fn refused(&self, by: &[Called<'_>], forms: &Forms, beat: &dyn Fn()) -> BTreeSet<String> {
        by.iter().flat_map(|one| lock(&self.table(*one)).refused(forms, beat)).collect()
    }

    /// In which words a compiler refuses a form; none if it was not asked.
    pub(super) fn words(&self, by: Called<'_>, form: &Source) -> Option<String> {
        lock(&self.table(by)).words(form)
    }

    fn table(&self, (compiler, cell): Called<'_>) -> Arc<Mutex<Table>> {
        let mut all = lock(&self.tables);
        if let Some((_, table)) = all.iter().find(|(known, _)| known == cell) {
            return Arc::clone(table);
        }
        let table =
            Arc::new(Mutex::new(Table::open(compiler, &cell.options(compiler), self.folder.as_deref())));
        all.push((cell.clone(), Arc::clone(&table)));
        table
    }
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn named(compiler: &Compiler, ptx: Ptx) -> Result<Threads, Abstention> {
    ptx.map_err(|why| Abstention::SourceCompiler { kind: compiler.kind().name(), why })
}
