//! Tells what was found before everything is known.
//!
//! Contract: nothing is told within the first second, and at most one line a file, on stderr. The answer on stdout does not
//! depend on it.

use super::patience::used;
use moire_console::output::Format;
use moire_execution::leaf::Finding;
use moire_explore::judge::{Seen, flag_verdict};
use moire_program::ir::Program;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time before anything is told; most answers are there by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is found of one file so far, and the time that explanations have.
pub(super) struct Teller {
    text: bool,
    begin: Instant,
    found: RefCell<Option<String>>,
    told: Cell<bool>,
    /// A larger launch decides whether a hang stands.
    doubts: Cell<bool>,
    explain: Duration,
    /// The processor time of this thread when the explanations began.
    explained: Cell<Option<Duration>>,
}

impl Teller {
    pub(super) fn new(format: Format, explain: Duration) -> Self {
        Teller {
            text: format == Format::Text,
            begin: Instant::now(),
            found: RefCell::default(),
            told: Cell::new(false),
            doubts: Cell::new(false),
            explain,
            explained: Cell::new(None),
        }
    }

    /// Keeps the first thing that is wrong, and tells it when it is time.
    pub(super) fn see(&self, name: &str, program: &Program, seen: &Seen<'_>) {
        if self.text && self.found.borrow().is_none() {
            let seen = Seen { hangs: seen.hangs && !self.doubts.get(), ..*seen };
            *self.found.borrow_mut() = first(name, program, &seen);
        }
        self.tell();
    }

    /// From now on hangs are told only if no larger launch decides about them.
    pub(super) fn doubt(&self, larger: bool) {
        self.doubts.set(larger);
    }

    /// Forgets what is found, if it is not told yet: a larger launch decides.
    pub(super) fn forget(&self) {
        *self.found.borrow_mut() = None;
    }

    fn tell(&self) {
        if self.told.get() || self.begin.elapsed() < PATIENCE {
            return;
        }
        if let Some(found) = &*self.found.borrow() {
            self.told.set(true);
            eprintln!("{found}");
        }
    }

    /// Whether explanations have time left. Their processor time begins when this is first asked, so a busy machine changes nothing.
    pub(super) fn more(&self) -> bool {
        self.tell();
        let now = used();
        let began = self.explained.get().unwrap_or(now);
        self.explained.set(Some(began));
        now.saturating_sub(began) < self.explain
    }
}

/// `ring.ptx: race so far (line 51 of warp0 and line 60 of warp1); this is execution 1, the exploration continues`
fn first(name: &str, program: &Program, seen: &Seen<'_>) -> Option<String> {
    let thread = |t: u16| program.threads.get(usize::from(t)).map_or("?", |t| t.name.as_str());
    let place = |f: &Finding| {
        let places: BTreeSet<String> =
            f.places.iter().map(|p| format!("line {} of {}", p.line, thread(p.thread))).collect();
        places.into_iter().collect::<Vec<_>>().join(" and ")
    };
    let what = match seen.findings.first() {
        Some(finding) => format!("{} so far ({})", flag_verdict(&finding.flag).word(), place(finding)),
        None if seen.hangs => "hang so far".to_owned(),
        None => return None,
    };
    Some(format!("{name}: {what}; this is execution {}, the exploration continues", seen.executions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_execution::leaf::Place;

    #[test]
    fn the_first_finding_is_named() {
        let finding = Finding { flag: "weak-race".into(), places: vec![Place { thread: 3, line: 7 }] };
        let findings = BTreeSet::from([finding]);
        let seen = Seen { executions: 1, hangs: true, findings: &findings };
        let text = first("k.ptx", &Program::default(), &seen).unwrap();
        assert!(text.starts_with("k.ptx: race so far (line 7 of ?)"), "{text}");
        let none = BTreeSet::new();
        assert_eq!(
            first("k", &Program::default(), &Seen { executions: 9, hangs: false, findings: &none }),
            None
        );
    }
}
