//! The model-pair oracle: outcomes under one model against outcomes under another.
//!
//! Sequential consistency is the strongest model there is, so every other must allow its outcomes. Two versions of
//! one model may differ: that is shown, not blamed. A program whose model says "undefined" allows everything, which is
//! no disagreement.

use super::Broken;
use super::answer::Answer;
use moire_explore::Outcome;

/// Every broken rule between the answers; neighbours in the list are compared.
pub(super) fn broken(answers: &[(String, Answer)]) -> Vec<Broken> {
    let mut out = Vec::new();
    for pair in answers.windows(2) {
        let [(a, left), (b, right)] = pair else { continue };
        if left.undefined || right.undefined || left.cut || right.cut {
            continue;
        }
        let strong = |spec: &str| spec == "sc" || spec.starts_with("sc:");
        let lost: Option<&Outcome> = left.outcomes.difference(&right.outcomes).next();
        let gained = right.outcomes.difference(&left.outcomes).next();
        let models = vec![a.clone(), b.clone()];
        let (direction, outcome) = match (strong(a), lost, gained) {
            (true, Some(lost), _) => ("subset", (0, lost.clone())),
            (false, Some(lost), _) => ("difference", (0, lost.clone())),
            (false, None, Some(gained)) => ("difference", (1, gained.clone())),
            _ => continue,
        };
        out.push(Broken { oracle: "model-pair", direction, models, outcome: Some(outcome), cause: None });
    }
    out
}
