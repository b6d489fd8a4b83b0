//! Tokens of cat. Comments `(* *)` nest, `//` and `#` end with the line; a comment that starts with `(*|` is a declaration and kept.

use crate::error::{LoadError, Position};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(String),
    Text(String),
    Pragma(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 23] = [
    "^-1", "^+", "^*", "^?", "&&", "||", "=", "|", "&", "\\", ";", "*", "+", "?", "~", "(", ")", "[", "]",
    ",", "0", "{", "}",
];

/// Splits `text`; every token with the place it starts at. The last token is `End`.
pub(crate) fn lex(file: &str, text: &str) -> Result<Vec<(Token, Position)>, LoadError> {
    let mut out = Vec::new();
    let mut cursor = Cursor { file, text, offset: 0, at: Position { line: 1, column: 1 } };
    loop {
        cursor.skip_blank();
        let at = cursor.at;
        if cursor.rest().is_empty() {
            out.push((Token::End, at));
            return Ok(out);
        }
        if cursor.rest().starts_with("(*") {
            if let Some(pragma) = cursor.comment()? {
                out.push((Token::Pragma(pragma), at));
            }
        } else if cursor.rest().starts_with("//") || cursor.rest().starts_with('#') {
            let line = cursor.rest().find('\n').unwrap_or(cursor.rest().len());
            cursor.advance(line);
        } else {
            out.push((cursor.token()?, at));
        }
    }
}

struct Cursor<'a> {
    file: &'a str,
    text: &'a str,
    offset: usize,
    at: Position,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn advance(&mut self, bytes: usize) {
        for c in self.text[self.offset..self.offset + bytes].chars() {
            if c == '\n' {
                self.at = Position { line: self.at.line + 1, column: 1 };
            } else {
                let bytes = u32::try_from(c.len_utf8()).expect("a character has at most four bytes");
                self.at.column = self.at.column.saturating_add(bytes);
            }
        }
        self.offset += bytes;
    }

    fn skip_blank(&mut self) {
        let blank = self.rest().len() - self.rest().trim_start().len();
        self.advance(blank);
    }

    /// Skips a (nested) comment; the text of a `(*| .. *)` one.
    fn comment(&mut self) -> Result<Option<String>, LoadError> {
        let (start, from) = (self.at, self.offset);
        let mut depth = 0usize;
        loop {
            if self.rest().starts_with("(*") {
                depth += 1;
                self.advance(2);
            } else if self.rest().starts_with("*)") {
                depth -= 1;
                self.advance(2);
                if depth == 0 {
                    let whole = &self.text[from + 2..self.offset - 2];
                    return Ok(whole.strip_prefix('|').map(|text| text.trim().to_owned()));
                }
            } else if let Some(c) = self.rest().chars().next() {
                self.advance(c.len_utf8());
            } else {
                return Err(LoadError::new(self.file, start, "this comment is never closed").hint("add `*)`"));
            }
        }
    }

    fn token(&mut self) -> Result<Token, LoadError> {
        let rest = self.rest();
        let first = rest.chars().next().expect("the caller saw a character");
        if first == '"' {
            let Some(end) = rest[1..].find('"') else {
                return Err(LoadError::new(self.file, self.at, "this string is never closed"));
            };
            let word = rest[1..=end].to_owned();
            self.advance(end + 2);
            return Ok(Token::Text(word));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let length = name_length(rest);
            let word = rest[..length].to_owned();
            self.advance(length);
            return Ok(Token::Name(word));
        }
        for symbol in SYMBOLS {
            if rest.starts_with(symbol) {
                self.advance(symbol.len());
                return Ok(Token::Symbol(symbol));
            }
        }
        Err(LoadError::new(
            self.file,
            self.at,
            format!("`{}` is not part of the language", first.escape_default()),
        ))
    }
}

/// Names may hold `-` and `.` between letters and digits: `po-loc`, `axiom-Causality`.
fn name_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'\'';
    let mut i = 1;
    while i < bytes.len() {
        let inner = matches!(bytes[i], b'-' | b'.') && bytes.get(i + 1).is_some_and(|b| word(*b));
        if !word(bytes[i]) && !inner {
            break;
        }
        i += 1;
    }
    i
}
