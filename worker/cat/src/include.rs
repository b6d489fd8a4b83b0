//! Files that a model text includes, and where they were found.

/// A file of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What error messages call it; for a file beside others its path.
    pub name: String,
    /// Part of the program, and no file of a user.
    pub shipped: bool,
}

/// A file that was included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// The file that includes it.
    pub from: Source,
    /// The name it is included by.
    pub path: String,
    /// What was found.
    pub found: Source,
}

impl Include {
    /// Whether a user's file got a shipped one, because there was none beside it.
    pub fn falls_back(&self) -> bool {
        self.found.shipped && !self.from.shipped
    }
}

impl std::fmt::Display for Include {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "include \"{}\": ", self.path)?;
        match (self.falls_back(), self.found.shipped) {
            (true, _) if self.found.name != self.path => f.write_str(&self.found.name),
            (true, _) => write!(f, "the shipped one (none beside {})", self.from.name),
            (_, true) => f.write_str("the shipped one"),
            _ => f.write_str(&self.found.name),
        }
    }
}
