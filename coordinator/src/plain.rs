//! Text from outside, made fit to be shown: names, reasons, paths and programs that others wrote.
//!
//! Contract: control characters (C0 but newline and tab, DEL, C1) and characters that turn the direction of text become
//! escapes such as `\u001b`, which a terminal shows and does not obey. Inside JSON strings these escapes mean the same
//! characters, so JSON stays what it was. Everything that commands print goes through [`PlainWriter`].

use std::fmt::{self, Display, Write};

/// Whether a terminal, or a reader, could take this character for something else than text.
fn acts(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && c != '\n' && c != '\t' || turns
}

/// Shows a value without its control characters.
#[derive(Clone, Copy, Debug)]
pub struct Plain<T>(pub T);

impl<T: Display> Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(PlainWriter(f), "{}", self.0)
    }
}

/// Writes text without its control characters.
pub struct PlainWriter<W>(pub W);

impl<W: Write> Write for PlainWriter<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| acts(*c)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "\\u{:04x}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_shown_and_not_obeyed() {
        let bad = "a\u{1b}[2J\u{1b}]0;title\u{7}b\rc\u{9b}31m\u{202e}d\u{7f}";
        assert_eq!(
            Plain(bad).to_string(),
            "a\\u001b[2J\\u001b]0;title\\u0007b\\u000dc\\u009b31m\\u202ed\\u007f"
        );
        let good = "moire \"t\"\n\tst.weak.u32 [x], 1; é 😀";
        assert_eq!(Plain(good).to_string(), good);
        assert!(('\0'..='\u{ffff}').map(|c| Plain(c).to_string()).all(|text| !text.chars().any(acts)));
    }

    #[test]
    fn json_stays_what_it_was() {
        let text: String = ('\0'..='\u{2100}').collect();
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(serde_json::from_str::<String>(&Plain(json).to_string()).unwrap(), text);
    }
}
