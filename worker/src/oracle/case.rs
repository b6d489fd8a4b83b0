//! An item on its way through the oracles, with the answers that they share.

use super::about::Takes;
use super::abstention::Abstention;
use super::answer::{Answer, explored_planted};
use super::models::Models;
use crate::job::{Cancel, Item, ItemReport, Source};
use moire_explore::planted::Planted;
use moire_generate::{Profile, Stream};
use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::rc::Rc;
use std::sync::Arc;

/// What every run of an oracle works with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) models: &'a Models,
    pub(super) cancel: &'a Cancel,
    /// A bug of the explorer, for tests.
    pub(super) planted: Option<Planted>,
}

/// An item on its way through the oracles.
pub(super) struct Case<'a> {
    pub(super) item: &'a Item,
    pub(super) context: Context<'a>,
    pub(super) report: ItemReport,
    /// The program of the item; `None` for a kernel and for a source program.
    pub(super) program: Option<Arc<Program>>,
    /// See [`Case::answers`].
    answers: Option<Rc<[(String, Answer)]>>,
    /// Models of the plan without an answer, and why.
    unanswered: Vec<(String, String)>,
}

impl<'a> Case<'a> {
    pub(super) fn new(item: &'a Item, context: Context<'a>) -> Result<Self, Abstention> {
        let program = match (Takes::of(&item.source), &item.source) {
            (Takes::Kernels | Takes::Sources, _) => None,
            (Takes::Programs, Source::Generated { seed, profile, index }) => {
                Some(Stream::new(*seed, profile.parse::<Profile>()?).item(*index))
            }
            (Takes::Programs, Source::Text(text)) => Some(parse(text, Format::detect("", text))?),
        };
        let mut report = ItemReport::default();
        if let Some(program) = &program {
            report.program = canonical(program).id.0;
        }
        Ok(Self {
            item,
            context,
            report,
            program: program.map(Arc::new),
            answers: None,
            unanswered: Vec::new(),
        })
    }

    /// The explorer's answers under the models of the plan, in their order. They are computed once for all oracles.
    /// Models without an answer are left out; a cancelled item has no answers.
    pub(super) fn answers(&mut self) -> Rc<[(String, Answer)]> {
        if let Some(answers) = &self.answers {
            return Rc::clone(answers);
        }
        let mut answers = Vec::new();
        let specs = specs(self.item);
        for (spec, answer) in self.program.iter().flat_map(|p| explored_each(p, &specs, self.context)) {
            match answer {
                Ok(answer) => {
                    self.report.engines.push(answer.report(&format!("explorer/{spec}")));
                    answers.push((spec, answer));
                }
                Err(why) => {
                    abstain(&mut self.report, &why);
                    self.unanswered.push((spec, why.to_string()));
                }
            }
        }
        if self.context.cancel.is_cancelled() {
            answers.clear();
        }
        Rc::clone(self.answers.insert(answers.into()))
    }

    /// The verdict of the explorer under a model, if [`Case::answers`] asked it already.
    pub(super) fn said(&self, spec: &str) -> Option<Result<String, Abstention>> {
        let answer = self.answers.iter().flat_map(|all| all.iter()).find(|(s, _)| s == spec);
        let why = self.unanswered.iter().find(|(s, _)| s == spec);
        let why = why.map(|(_, why)| Err(Abstention::Undecided(why.clone())));
        answer.map(|(_, answer)| Ok(answer.verdict())).or(why)
    }

    /// Counts an abstention in the report.
    pub(super) fn abstain(&mut self, why: &Abstention) {
        abstain(&mut self.report, why);
    }
}

/// Counts an abstention, by the text of its reason.
pub(super) fn abstain(report: &mut ItemReport, why: &Abstention) {
    *report.abstentions.entry(why.to_string()).or_insert(0) += 1;
}

/// The models of the plan; where it names none, those of the stream, or of a text those of PTX threads.
fn specs(item: &Item) -> Vec<String> {
    if !item.plan.models.is_empty() {
        return item.plan.models.clone();
    }
    let of = match &item.source {
        Source::Generated { profile, .. } => profile.parse().unwrap_or(Profile::Core),
        Source::Text(_) => Profile::Core,
    };
    of.about().models.iter().map(|name| (*name).to_owned()).collect()
}

/// The explorer's answer under each model, until the item is cancelled.
pub(super) fn explored_each(
    program: &Program,
    specs: &[String],
    context: Context<'_>,
) -> Vec<(String, Result<Answer, Abstention>)> {
    let mut out = Vec::new();
    for spec in specs {
        if context.cancel.is_cancelled() {
            break;
        }
        let model = context.models.get(spec).map_err(Abstention::from);
        out.push((spec.clone(), model.and_then(|m| explored_planted(program, &m, context.planted))));
        context.cancel.tick();
    }
    out
}
