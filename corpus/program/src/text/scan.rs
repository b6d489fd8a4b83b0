//! A cursor over a text: reads blanks, words and numbers, and makes errors with positions.

use super::ParseError;
use crate::limits::NAME_BYTES;

/// The syntax of comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comments {
    /// `// ..`, `/* .. */` and `# ..`.
    C,
    /// `(* .. *)`, `<< .. >>` and `// ..`.
    Litmus,
    /// `// ..`.
    Slashes,
}

/// A cursor over a text.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    /// The whole text.
    pub source: &'a str,
    /// Offset of the next byte.
    pub at: usize,
    comments: Comments,
    /// The last position for which lines were counted: its offset, its line, the offset of that line.
    counted: (usize, u32, usize),
    /// Most bytes of a name.
    pub longest: usize,
}

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in bytes.
    pub column: u32,
}

/// The result of reading something.
pub type Parsed<T> = Result<T, ParseError>;

impl<'a> Scan<'a> {
    /// A cursor at the start of a text.
    pub fn new(source: &'a str, comments: Comments) -> Self {
        Scan { source, at: 0, comments, counted: (0, 1, 0), longest: NAME_BYTES }
    }

    /// The rest of the text after blanks and comments.
    pub fn rest(&mut self) -> &'a str {
        // The usual case: a few spaces, then an ASCII character that begins no comment.
        let bytes = &self.source.as_bytes()[self.at..];
        self.at += bytes.iter().take_while(|b| matches!(b, b' ' | b'\n' | b'\t' | b'\r')).count();
        let begins = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'/' | b'#' | b'(' | b'<');
        if self.source.as_bytes().get(self.at).is_some_and(begins) {
            return &self.source[self.at..];
        }
        loop {
            let rest = &self.source[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let (open, close): (&str, &str) = match self.comments {
                Comments::C if trimmed.starts_with("//") || trimmed.starts_with('#') => ("//", "\n"),
                Comments::C if trimmed.starts_with("/*") => ("/*", "*/"),
                Comments::Litmus if trimmed.starts_with("(*") => ("(*", "*)"),
                Comments::Litmus if trimmed.starts_with("<<") => ("<<", ">>"),
                Comments::Litmus | Comments::Slashes if trimmed.starts_with("//") => ("//", "\n"),
                _ => return trimmed,
            };
            let skip = open.len().min(trimmed.len());
            let end =
                trimmed[skip.min(1)..].find(close).map_or(trimmed.len(), |i| i + skip.min(1) + close.len());
            self.at += end;
        }
    }

    /// Whether nothing but blanks and comments is left.
    pub fn done(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// Whether `what` comes next.
    pub fn peek(&mut self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    /// Takes `what` if it comes next.
    pub fn take(&mut self, what: &str) -> bool {
        let hit = self.peek(what);
        if hit {
            self.at += what.len();
        }
        hit
    }

    /// Takes the word `what` if it comes next as a whole word.
    pub fn keyword(&mut self, what: &str) -> bool {
        let rest = self.rest();
        let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$');
        let hit = rest.starts_with(what) && rest[what.len()..].chars().next().is_none_or(ends);
        if hit {
            self.at += what.len();
        }
        hit
    }

    /// Takes `what`.
    ///
    /// # Errors
    /// If something else comes next.
    pub fn expect(&mut self, what: &str) -> Parsed<()> {
        if self.take(what) { Ok(()) } else { Err(self.expected(&format!("`{what}`"))) }
    }

    /// Reads a word of letters, digits, `_ $ %` and the ASCII characters in `extra`.
    pub fn word(&mut self, expected: &str, extra: &str) -> Parsed<&'a str> {
        let rest = self.rest();
        let inside = |b: &u8| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%') || extra.as_bytes().contains(b)
        };
        let length = rest.bytes().take_while(inside).count();
        if length == 0 {
            return Err(self.expected(expected));
        }
        if length > self.longest {
            return Err(self.error(format!("a name may have at most {} bytes", self.longest), None));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// Reads a word that does not start with a digit.
    pub fn name(&mut self, expected: &str) -> Parsed<&'a str> {
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.expected(expected));
        }
        self.word(expected, "")
    }

    /// Reads a decimal or hexadecimal number, with an optional sign.
    pub fn number(&mut self) -> Parsed<i128> {
        let start = self.at;
        let negative = self.take("-");
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let digits = rest[..length].trim_end_matches(['U', 'u']);
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => digits.parse::<i128>(),
        };
        match value {
            Ok(v) if length > 0 && v <= i128::from(u64::MAX) => {
                self.at += length;
                Ok(if negative { -v } else { v })
            }
            Ok(_) => Err(self.error("this number does not fit 64 bits".into(), None)),
            Err(_) if length > 0 && digits.starts_with(|c: char| c.is_ascii_digit()) => {
                Err(self
                    .error(format!("`{}` is not a number that fits 64 bits", &rest[..length.min(40)]), None))
            }
            Err(_) => {
                self.at = start;
                Err(self.expected("a number"))
            }
        }
    }

    /// An error at the next word.
    pub fn error(&mut self, message: String, hint: Option<String>) -> ParseError {
        self.rest();
        ParseError::at(self.source, self.at, message, hint)
    }

    /// An error at the next word, which says what was expected there.
    pub fn expected(&mut self, what: &str) -> ParseError {
        let rest = self.rest();
        let found: String = rest.chars().take_while(|c| !c.is_whitespace()).take(24).collect();
        let found = if found.is_empty() { "the end of the text".to_owned() } else { format!("`{found}`") };
        self.error(format!("expected {what}, found {found}"), None)
    }

    /// An error at byte `at`.
    pub fn error_at(&self, at: usize, message: String, hint: Option<String>) -> ParseError {
        ParseError::at(self.source, at, message, hint)
    }

    /// The position of the next word. Counts lines from the last call on, which makes reading linear in the text's length.
    pub fn spot(&mut self) -> Spot {
        self.rest();
        if self.at < self.counted.0 {
            self.counted = (0, 1, 0);
        }
        let (from, mut line, mut start) = self.counted;
        for (i, _) in self.source[from..self.at].match_indices('\n') {
            line += 1;
            start = from + i + 1;
        }
        self.counted = (self.at, line, start);
        Spot { line, column: u32::try_from(self.at - start + 1).unwrap_or(u32::MAX) }
    }
}

/// The known word closest to `word`, if close enough to be a typing error.
pub fn closest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let distance = |a: &str, b: &str| {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut diagonal = row[0];
            row[0] = i + 1;
            for (j, y) in b.iter().enumerate() {
                let swap = diagonal + usize::from(x != y);
                diagonal = row[j + 1];
                row[j + 1] = swap.min(row[j] + 1).min(diagonal + 1);
            }
        }
        row[b.len()]
    };
    let near = known.iter().map(|k| (distance(word, k), *k)).filter(|(d, k)| *d <= 1 + k.len() / 4);
    near.min().map(|(_, k)| k)
}
