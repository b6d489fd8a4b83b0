//! Remarks about a text: the fault, its position, and a remedy.

/// The severity of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information; the program is read anyway.
    Note,
    /// Suspicious; the program is explored anyway.
    Warning,
    /// The program is rejected.
    Error,
}

/// One remark and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Line, from 1; 0 if the remark concerns no single line.
    pub line: u32,
    /// Column, from 1, in bytes.
    pub column: u32,
    /// The fault: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The severity.
    pub severity: Severity,
    /// The rule of [`crate::validate`] that made the remark.
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

/// The reason why a text is not a program.
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
