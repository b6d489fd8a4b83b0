//! What the tests share: models, programs, the verification of advice.

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, judge};
use moire_mend::{Advice, Budget, Models, Planted, Why, mend_planted, order};
use moire_models::{Beside, load};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::path::{Path, PathBuf};

/// A model, and the same with the flags of the order.
pub(crate) struct Under {
    pub(crate) model: Model,
    order: Model,
}

impl Under {
    pub(crate) fn new(name: &str) -> Self {
        Under::with(name, &Variants::new())
    }

    fn with(name: &str, switches: &Variants) -> Self {
        let model = load(name, switches).expect("a shipped model");
        let text = order::text(&format!("{name}.cat"));
        let order =
            moire_cat::load("order.cat", &text, &Beside(|_: &Path| None), switches).expect("the order loads");
        Under { model, order }
    }

    /// A model, and each contested reading of it.
    pub(crate) fn readings(name: &str) -> Vec<Self> {
        let own = Under::new(name);
        let switches: Vec<_> = own.model.switches().to_vec();
        let values = switches.iter().flat_map(|s| s.contesting.iter().map(|v| (s.name.clone(), v.clone())));
        let others: Vec<Under> = values.map(|set| Under::with(name, &[set].into_iter().collect())).collect();
        [own].into_iter().chain(others).collect()
    }

    pub(crate) fn judge(&self, program: &Program) -> Judgement {
        judge(program, &self.model, &limits(), Questions { witnesses: false, about: About::All })
    }

    pub(crate) fn models(&self) -> Models<'_> {
        Models { model: &self.model, order: &self.order, second: None }
    }

    pub(crate) fn mend(&self, program: &Program, planted: Option<Planted>) -> Result<Advice, Why> {
        let judgement = self.judge(program);
        let budget = Budget { explorations: 800, ..Budget::of(judgement.summary.checks) };
        mend_planted(program, &judgement, self.models(), &limits(), (budget, planted), &|| true)
    }

    pub(crate) fn is_clean(&self, program: &Program) -> bool {
        self.judge(program).is_clean()
    }
}

pub(crate) fn limits() -> Limits {
    Limits { leaves: 20_000, checks: 400_000, steps: 4_000_000, ..Limits::default() }
}

pub(crate) fn read(text: &str) -> Program {
    parse(text, Format::detect("", text)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The programs below a folder of the corpus, by name.
pub(crate) fn programs(folder: &str) -> Vec<(PathBuf, String)> {
    let mut out = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus").join(folder), &mut out);
    out.sort();
    let text = |path: &PathBuf| std::fs::read_to_string(path).expect("the program can be read");
    out.iter().map(|path| (path.clone(), text(path))).collect()
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            walk(&path, out);
        } else if path.extension().is_some_and(|e| e == "litmus") {
            out.push(path);
        }
    }
}
