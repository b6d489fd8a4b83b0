//! Declarations: switches, profiles, features, settings and licences, each a comment that starts with `(*|`.

use super::{Loaded, Loader, SWITCHES};
use crate::contract::{Feature, Settings};
use crate::error::{LoadError, Position, closest};
use crate::licence::{Kind, Licence, Refused};
use crate::model::{Profile, Switch};
use crate::node::Type;
use crate::parse::expression;
use crate::syntax::{Expr, ExprKind};

/// The words a declaration starts with.
const WORDS: [&str; 5] = ["switch", "profile", "feature", "setting", "licence"];

/// Joins the lines of a text to one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where a declaration stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    at: Position,
}

impl Place<'_> {
    fn error(self, message: impl Into<String>) -> LoadError {
        LoadError::new(self.file, self.at, message)
    }

    fn misread(self, form: &str) -> LoadError {
        self.error("this declaration is not understood").hint(format!("write `(*| {form} *)`"))
    }

    /// An error about a word that is not among the known ones.
    fn unknown(self, what: &str, word: &str, known: &[&str]) -> LoadError {
        let error = self.error(format!("there is no {what} `{word}`"));
        match closest(word, known.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("known are {}", known.join(", "))),
        }
    }
}

impl Loader<'_> {
    /// Reads a declaration. Its first word says which kind it is.
    pub(super) fn declaration(&mut self, file: &str, at: Position, text: &str) -> Loaded<()> {
        let place = Place { file, at };
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (head, doc) = rest.split_once(" : ").unwrap_or((rest, ""));
        match word {
            "switch" => self.switch(place, head, doc),
            "profile" => self.profile(place, head, doc),
            "feature" => self.feature(place, head),
            "setting" => self.setting(place, head),
            "licence" => self.licence(place, head),
            _ => Err(place.unknown("declaration", word, &WORDS)),
        }
    }

    /// `profile practice = TQ5=B TQ7=B : one line`, before the switches it sets
    fn profile(&mut self, place: Place<'_>, head: &str, doc: &str) -> Loaded<()> {
        Self::limit(place.file, place.at, self.model.profiles.len(), SWITCHES, "profiles")?;
        let bad = || place.misread("profile NAME = SWITCH=VALUE .. : what it is");
        if doc.is_empty() {
            return Err(bad());
        }
        let (name, settings) = head.split_once('=').ok_or_else(bad)?;
        let one = |w: &str| w.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())).ok_or_else(bad);
        let settings = settings.split_whitespace().map(one).collect::<Loaded<Vec<_>>>()?;
        self.model.profiles.push(Profile { name: name.trim().into(), settings, doc: one_line(doc) });
        Ok(())
    }

    /// The value that the caller requested for a switch, by its name or by a profile that sets it.
    fn asked(&self, switch: &str) -> Option<&String> {
        let chosen = self.requested.get(super::PROFILE);
        let profile = self.model.profiles.iter().find(|p| Some(&p.name) == chosen);
        let settings = profile.into_iter().flat_map(|p| &p.settings);
        let of_profile = settings.filter(|s| s.0 == switch).map(|s| &s.1).next();
        self.requested.get(switch).or(of_profile)
    }

    /// `switch Q6 = A | B | C default A contests B : one line`
    fn switch(&mut self, place: Place<'_>, head: &str, doc: &str) -> Loaded<()> {
        Self::limit(place.file, place.at, self.model.switches.len(), SWITCHES, "switches")?;
        let bad = || place.misread("switch NAME = A | B default A contests B : what it is");
        if doc.is_empty() {
            return Err(bad());
        }
        let (name, rest) = head.split_once('=').ok_or_else(bad)?;
        let (values, rest) = rest.split_once("default").ok_or_else(bad)?;
        let (default, contesting) = rest.split_once("contests").unwrap_or((rest, ""));
        let words = |s: &str| -> Vec<String> {
            s.split(['|', '/', ' ', '\n', '\r', '\t']).filter(|w| !w.is_empty()).map(str::to_owned).collect()
        };
        let switch = Switch {
            name: name.trim().into(),
            values: words(values),
            default: default.trim().into(),
            contesting: words(contesting),
            doc: one_line(doc),
        };
        let named = |v: &String| switch.values.contains(v);
        if !named(&switch.default) || !switch.contesting.iter().all(named) {
            return Err(bad());
        }
        let value = match self.asked(&switch.name) {
            Some(v) if named(v) => v.clone(),
            Some(v) => {
                return Err(place
                    .error(format!("switch {} has no value `{v}`", switch.name))
                    .hint(format!("its values are {}", switch.values.join(", "))));
            }
            None => switch.default.clone(),
        };
        self.model.variants.insert(switch.name.clone(), value);
        self.model.switches.retain(|s| s.name != switch.name);
        self.model.switches.push(switch);
        Ok(())
    }

    /// `feature copies : one line`
    fn feature(&mut self, place: Place<'_>, head: &str) -> Loaded<()> {
        let word = head.trim();
        let Some(feature) = Feature::ALL.into_iter().find(|f| f.word() == word) else {
            return Err(place.unknown("feature", word, &Feature::ALL.map(Feature::word)));
        };
        self.model.features.insert(feature);
        Ok(())
    }

    /// `setting wide-accesses = if "Q2=A" then whole else halves : one line`
    fn setting(&mut self, place: Place<'_>, head: &str) -> Loaded<()> {
        let form = "setting NAME = VALUE : what it is";
        let (name, value) = head.split_once('=').ok_or_else(|| place.misread(form))?;
        let name = name.trim();
        let Some((_, values)) = Settings::ALL.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Settings::ALL.iter().map(|(known, _)| *known).collect();
            return Err(place.unknown("setting", name, &known));
        };
        let value = self.value(place, &expression(place.file, place.at, value)?)?;
        if !self.model.settings.set(name, &value) {
            return Err(place.unknown(&format!("value of {name}"), &value, values));
        }
        Ok(())
    }

    /// The word to which an expression evaluates under the current switches (words and conditionals only).
    fn value(&self, place: Place<'_>, expr: &Expr) -> Loaded<String> {
        match &expr.kind {
            ExprKind::Name(word) => Ok(word.clone()),
            ExprKind::If(test, yes, no) => {
                let chosen = if self.test(place.file, test)? { yes } else { no };
                self.value(place, chosen)
            }
            _ => Err(place.error("the value of a setting is a word").hint("conditions choose between words")),
        }
    }

    /// `licence late-stores = RELATION by CHECK : one line`
    fn licence(&mut self, place: Place<'_>, head: &str) -> Loaded<()> {
        Self::limit(place.file, place.at, self.model.licences.len(), SWITCHES, "licences")?;
        let bad = || place.misread("licence NAME = RELATION by CHECK : what follows from the check");
        let (name, rest) = head.split_once('=').ok_or_else(bad)?;
        let (relation, check) = rest.rsplit_once(" by ").ok_or_else(bad)?;
        let (name, check) = (name.trim(), check.trim());
        let Some(kind) = Kind::ALL.into_iter().find(|k| k.word() == name) else {
            return Err(place.unknown("licence", name, &Kind::ALL.map(Kind::word)));
        };
        let node = self.expr(place.file, &expression(place.file, place.at, relation)?)?;
        if self.model.facts(node).ty != Type::Relation {
            return Err(place.error("a licence is about a relation, found a set"));
        }
        let text = one_line(relation);
        let claimed =
            Licence { kind, relation: node, text, by: check.into(), granted: Err(Refused::NoCheck) };
        self.model.licences.retain(|l| l.kind != kind);
        self.model.licences.push(claimed);
        Ok(())
    }
}
