//! Loaded models by their specification: `NAME` or `NAME:VARIANT=VALUE,..`.
//!
//! Contract: a model is loaded once while it is in use. At most [`MAX_KEPT`] models are kept, however many a client asks
//! for; one more replaces the model that was asked for longest ago. A specification that does not load is not kept.

use moire_cat::{LoadError, Model, Variants};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most models kept: those of a plan (64 at most), and those of the oracles themselves.
const MAX_KEPT: usize = 128;

/// The cache of loaded models.
#[derive(Debug, Default)]
pub(super) struct Models(Mutex<Loaded>);

#[derive(Debug, Default)]
struct Loaded {
    /// Each model with the number of the question that it answered last.
    by_spec: BTreeMap<String, (u64, Arc<Model>)>,
    questions: u64,
}

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A setting of the specification is not `NAME=VALUE`.
    #[error("`{word}` in `{spec}` is no NAME=VALUE")]
    Setting {
        /// The setting.
        word: String,
        /// The specification.
        spec: String,
    },
    /// The model does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
}

fn load(spec: &str) -> Result<Model, ModelError> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let mut variants = Variants::new();
    for word in rest.split(',').filter(|w| !w.is_empty()) {
        let (k, v) = word
            .split_once('=')
            .ok_or_else(|| ModelError::Setting { word: word.to_owned(), spec: spec.to_owned() })?;
        variants.insert(k.into(), v.into());
    }
    Ok(moire_models::load(name, &variants)?)
}

impl Models {
    /// The model of a specification.
    ///
    /// # Errors
    /// There is no such model, or it has no such switch or value.
    pub(super) fn get(&self, spec: &str) -> Result<Arc<Model>, ModelError> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Loaded { by_spec, questions } = &mut *loaded;
        *questions += 1;
        if let Some((last, model)) = by_spec.get_mut(spec) {
            *last = *questions;
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(load(spec)?);
        if by_spec.len() >= MAX_KEPT
            && let Some(oldest) = by_spec.iter().min_by_key(|(_, (last, _))| *last).map(|(s, _)| s.clone())
        {
            by_spec.remove(&oldest);
        }
        by_spec.insert(spec.to_owned(), (*questions, Arc::clone(&model)));
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many specifications as are wanted, all of one model.
    fn spec(n: usize) -> String {
        format!("sc:{}", ",".repeat(n))
    }

    #[test]
    fn however_many_are_asked_for_few_are_kept_and_those_in_use_stay() {
        let models = Models::default();
        let used = models.get("ptx:Q6=B").unwrap();
        let first = models.get(&spec(0)).unwrap();
        for n in 1..2 * MAX_KEPT {
            models.get(&spec(n)).unwrap();
            assert!(models.get("nothing").is_err() && models.get("ptx:Q6").is_err());
            assert!(Arc::ptr_eq(&used, &models.get("ptx:Q6=B").unwrap()), "{n}");
        }
        assert_eq!(models.0.lock().unwrap().by_spec.len(), MAX_KEPT);
        let newest = models.get(&spec(2 * MAX_KEPT - 1)).unwrap();
        assert!(Arc::ptr_eq(&newest, &models.get(&spec(2 * MAX_KEPT - 1)).unwrap()));
        let again = models.get(&spec(0)).unwrap();
        assert!(!Arc::ptr_eq(&first, &again), "the first went");
        assert_eq!(first.canonical_text(), again.canonical_text());
    }
}
