//! Losses that are planted in machine code, to see that a comparison with the PTX notices them.
//!
//! Contract: a loss stands at the first place that fits, so it depends on the text alone. Not each one must be noticed: the
//! machine may do more than the PTX asks for.

use super::{Listing, entries};

/// A kind of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A fence is gone.
    Fence,
    /// A fence or a strong access has a narrower scope.
    Scope,
    /// A fence and the access before it, or behind it, have changed places.
    Order,
}

impl Planted {
    /// All kinds.
    pub const ALL: [Planted; 3] = [Planted::Fence, Planted::Scope, Planted::Order];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Planted::Fence => "machine-fence-dropped",
            Planted::Scope => "machine-scope-narrowed",
            Planted::Order => "machine-order-swapped",
        }
    }

    /// The machine code of the kernels of a text of PTX with one such loss; `None` where no place fits.
    pub fn put(self, ptx: &str, code: &Listing) -> Option<Listing> {
        let own = entries(ptx).filter_map(|(name, ..)| code.kernels.get_key_value(name));
        let mut out = Listing {
            kernels: own.map(|(name, lines)| (name.clone(), lines.clone())).collect(),
            slots: code.slots.clone(),
        };
        out.kernels.values_mut().any(|lines| self.put_in(lines)).then_some(out)
    }

    fn put_in(self, lines: &mut Vec<String>) -> bool {
        match self {
            Planted::Fence => {
                let at = lines.iter().position(|line| is_fence(line));
                at.map(|at| lines.remove(at)).is_some()
            }
            Planted::Scope => lines.iter_mut().any(|line| match narrower(line) {
                Some(text) => {
                    *line = text;
                    true
                }
                None => false,
            }),
            Planted::Order => {
                let pair = |at: &usize| is_fence(&lines[*at]) != is_fence(&lines[at + 1]);
                let pair = |at: &usize| pair(at) && [0, 1].iter().all(|n| is_memory(&lines[at + n]));
                let at = (0..lines.len().saturating_sub(1)).find(pair);
                at.into_iter().for_each(|at| lines.swap(at, at + 1));
                at.is_some()
            }
        }
    }
}

/// The first word of an instruction, behind its guard.
fn word(line: &str) -> &str {
    let rest = line.strip_prefix('@').and_then(|rest| rest.split_once(' ')).map_or(line, |(_, rest)| rest);
    rest.trim_start().split(['.', ' ']).next().unwrap_or_default()
}

fn is_fence(line: &str) -> bool {
    word(line) == "MEMBAR"
}

fn is_memory(line: &str) -> bool {
    is_fence(line) || matches!(word(line), "LD" | "LDG" | "ST" | "STG" | "ATOM" | "ATOMG" | "RED" | "REDG")
}

/// The instruction with the next narrower scope, if it has a scope that is wider than a CTA.
fn narrower(line: &str) -> Option<String> {
    let words =
        [(".SYS", ".GPU"), (".STRONG.GPU", ".STRONG.SM"), (".ALL.GPU", ".ALL.CTA"), (".SC.GPU", ".SC.CTA")];
    let (wide, narrow) = words.into_iter().find(|(wide, _)| is_memory(line) && line.contains(wide))?;
    Some(line.replacen(wide, narrow, 1))
}
