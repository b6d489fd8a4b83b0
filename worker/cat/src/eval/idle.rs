//! Memory of evaluators, from one program to the next: for small programs getting it costs as much as using it.
//!
//! Contract: a scene taken from here has no universe, so nothing can be asked of what was in it, and entering one sets
//! everything anew. A thread keeps little, for the models it judged last: [`MODELS`] times [`SCENES`] times [`WORDS`].

use super::Scene;
use crate::inputs::Inputs;
use crate::model::Model;
use crate::vocabulary::rels;
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// Models judged by turns.
const MODELS: usize = 4;
/// Scenes that are kept for one.
const SCENES: usize = 2;
/// Words of values that one may have.
const WORDS: usize = 16_384;

thread_local! {
    /// By model and width, what was left last at the end.
    static IDLE: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

struct Idle<const W: usize> {
    /// Registers and groups are those of this model.
    model: Arc<Model>,
    scenes: Vec<Scene<W>>,
    common: Common<W>,
}

/// Room for what two graphs have in common.
type Common<const W: usize> = Option<Box<Inputs<W>>>;

/// What was left for this model and width.
pub(super) fn take<const W: usize>(model: &Arc<Model>) -> (Vec<Scene<W>>, Common<W>) {
    let own = |idle: &Box<dyn Any>| {
        idle.downcast_ref::<Idle<W>>().is_some_and(|idle| Arc::ptr_eq(&idle.model, model))
    };
    let found = IDLE.with_borrow_mut(|all| Some(all.remove(all.iter().position(own)?)));
    let idle = found.and_then(|idle| idle.downcast::<Idle<W>>().ok());
    idle.map(|idle| (idle.scenes, idle.common)).unwrap_or_default()
}

/// Leaves memory for later.
pub(super) fn leave<const W: usize>(
    model: Arc<Model>,
    scenes: impl Iterator<Item = Scene<W>>,
    common: Common<W>,
) {
    let small = scenes.filter(|s| s.machine.room() * W <= WORDS).take(SCENES);
    let scenes = small.map(|s| Scene { universe: None, ..s }).collect();
    let common = common.filter(|c| c.rels.height * rels::ALL.len() * W <= WORDS);
    IDLE.with_borrow_mut(|all| {
        all.drain(..(all.len() + 1).saturating_sub(MODELS));
        all.push(Box::new(Idle { model, scenes, common }));
    });
}
