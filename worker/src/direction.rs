//! Directions of rules: how a rule compares its two sides, and so what it means that the rule is broken.
//!
//! Messages, stores and reports hold the word of a direction. The word is read once, where it comes in.

use std::fmt;
use std::str::FromStr;

/// How a rule compares its sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Both sides answer the same.
    #[default]
    Equal,
    /// Each outcome of the stricter side is an outcome of the other.
    Subset,
    /// One side ends if the other does.
    Progress,
    /// The only side has a property.
    Property,
    /// The sides may differ; the difference is shown and is no bug.
    Difference,
}

impl Direction {
    /// Every direction.
    pub const ALL: [Self; 5] = [Self::Equal, Self::Subset, Self::Progress, Self::Property, Self::Difference];

    /// The word in messages, stores and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Subset => "subset",
            Self::Progress => "progress",
            Self::Property => "property",
            Self::Difference => "difference",
        }
    }

    /// Whether a broken rule of this direction is a bug of one side.
    pub fn is_bug(self) -> bool {
        self != Self::Difference
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A word that names no direction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a direction; expected equal, subset, progress, property or difference")]
pub struct UnknownDirection(String);

impl FromStr for Direction {
    type Err = UnknownDirection;

    fn from_str(word: &str) -> Result<Self, UnknownDirection> {
        Self::ALL.into_iter().find(|d| d.word() == word).ok_or_else(|| UnknownDirection(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_read_as_its_direction_and_no_other_word_is() {
        for direction in Direction::ALL {
            assert_eq!(direction.to_string().parse(), Ok(direction));
        }
        let error = "Subset".parse::<Direction>().unwrap_err().to_string();
        assert!(Direction::ALL.iter().all(|d| error.contains(d.word())), "{error}");
    }
}
