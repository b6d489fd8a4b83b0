//! The model that programs are judged under, and those it is compared with.

use crate::mending;
use crate::question::{Library, Question};
use crate::readings::Profiles;
use anyhow::Result;
use moire_cat::{Model, PROFILE, Switch, Variants};
use moire_mend::Models;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A model that files are judged under, and those it is compared with.
pub struct Asked {
    pub(crate) name: String,
    /// The model.
    pub model: Model,
    pub(crate) profiles: Profiles,
    library: Library,
    /// The same model with other switches, as far as it was asked for.
    loaded: Mutex<BTreeMap<Variants, Arc<Model>>>,
    /// Settings of single switches that contest its own.
    pub(crate) others: Vec<(String, Model)>,
    /// The same model with the order of execution, once it was asked for.
    order: OnceLock<Option<Model>>,
    /// The contested readings, once they were asked for.
    readings: OnceLock<Vec<Reading>>,
}

/// The model with one switch at a contesting value.
pub(crate) struct Reading {
    pub(crate) model: Model,
    /// The same with the order of execution, once it was asked for.
    order: OnceLock<Option<Model>>,
}

impl Asked {
    /// The model of that name; for `compiled` modules under its profile, if no profile is named.
    ///
    /// # Errors
    /// There is no such model, or it does not load.
    pub fn new(question: &Question, name: &str, compiled: bool, library: Library) -> Result<Self> {
        let mut profile = question.profile.clone();
        let mut model = (library.load)(name, &chosen(question, profile.as_deref()))?;
        let named = profile.is_some() || model.variants().contains_key(PROFILE);
        let both = compiled && !named && !model.profiles().is_empty();
        if both {
            profile = model.profiles().first().map(|p| p.name.clone());
            model = (library.load)(name, &chosen(question, profile.as_deref()))?;
        }
        let profiles = Profiles::new(question, &model, both);
        let others = match question.contest {
            true => flipped(question, name, (&model, profile.as_deref()), library)?,
            false => Vec::new(),
        };
        let (name, order, readings) = (name.to_owned(), OnceLock::new(), OnceLock::new());
        Ok(Asked { name, model, profiles, library, loaded: Mutex::default(), others, order, readings })
    }

    /// The models under which edits are tried.
    pub(crate) fn models(&self) -> Option<Models<'_>> {
        let load = || mending::order_model(&self.name, self.model.variants(), self.library);
        let order = self.order.get_or_init(load).as_ref()?;
        Some(Models { model: &self.model, order, second: None })
    }

    /// Each contested reading of the model.
    pub(crate) fn readings(&self) -> &[Reading] {
        let load = || {
            let contesting = |switch: &Switch| {
                let values = switch.contesting.iter().filter(|v| self.model.variant(&switch.name) != Some(v));
                values.map(|value| (switch.name.clone(), value.clone())).collect::<Vec<_>>()
            };
            let own = self.model.variants();
            let one = |setting| {
                let variants: Variants = own.clone().into_iter().chain([setting]).collect();
                let model = (self.library.load)(&self.name, &variants).ok()?;
                Some(Reading { model, order: OnceLock::new() })
            };
            self.model.switches().iter().flat_map(contesting).filter_map(one).collect()
        };
        self.readings.get_or_init(load)
    }

    /// A reading as edits are tried under it.
    pub(crate) fn models_of<'r>(&self, reading: &'r Reading) -> Option<Models<'r>> {
        let load = || mending::order_model(&self.name, reading.model.variants(), self.library);
        let order = reading.order.get_or_init(load).as_ref()?;
        Some(Models { model: &reading.model, order, second: None })
    }

    pub(crate) fn with(&self, switches: &Variants) -> Result<Arc<Model>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = loaded.get(switches) {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new((self.library.load)(&self.name, switches)?);
        loaded.insert(switches.clone(), Arc::clone(&model));
        Ok(model)
    }
}

/// The model under each contesting value of each switch that has another value now.
fn flipped(
    question: &Question,
    name: &str,
    (model, profile): (&Model, Option<&str>),
    library: Library,
) -> Result<Vec<(String, Model)>> {
    let mut out = Vec::new();
    for switch in model.switches() {
        for value in &switch.contesting {
            if model.variant(&switch.name) != Some(value) {
                let setting = format!("{}={value}", switch.name);
                let mut switches = chosen(question, profile);
                switches.insert(switch.name.clone(), value.clone());
                out.push((setting, (library.load)(name, &switches)?));
            }
        }
    }
    Ok(out)
}

/// Settings of switches, with the profile asked for.
fn chosen(question: &Question, profile: Option<&str>) -> Variants {
    let mut out = question.switches.clone();
    out.extend(profile.map(|p| (PROFILE.to_owned(), p.to_owned())));
    out
}
