//! What is wrong with a text, where, and what to do.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth saying; the program is read all the same.
    Note,
    /// Suspicious; the program is judged all the same.
    Warning,
    /// The program is rejected.
    Error,
}

/// One remark with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// 1-based; 0 when it concerns no single line.
    pub line: u32,
    /// 1-based, in bytes.
    pub column: u32,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// How bad.
    pub severity: Severity,
    /// The rule of [`crate::validate`] that says so.
    pub rule: Option<&'static str>,
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// A text that is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub Diagnostic);

impl ParseError {
    /// An error at byte `offset` of `source`.
    pub fn at(source: &str, offset: usize, message: String, hint: Option<String>) -> Self {
        let mut end = offset.min(source.len());
        while !source.is_char_boundary(end) {
            end -= 1;
        }
        let before = &source[..end];
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let line = narrow(before.matches('\n').count() + 1);
        let column = narrow(before.len() - before.rfind('\n').map_or(0, |i| i + 1) + 1);
        ParseError(Diagnostic { line, column, message, hint, severity: Severity::Error, rule: None })
    }
}
