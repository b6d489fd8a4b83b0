//! Text of one instruction: words with positions, a cursor over operands, refusals that point at a byte.
//!
//! Contract: blanks and comments may stand between any two tokens, and before a dot of the name (ptxas accepts both).

use crate::kind::Kind;
use crate::operand::Known;
use std::borrow::Cow;

/// Why a text is no instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Byte in the text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What may be meant.
    pub hint: Option<String>,
}

/// Symbols from here on are parameters of calls. A kernel writes those, and not its own.
pub const OF_CALLS: u32 = 1 << 31;

/// The names that a reader knows: registers and variables of a litmus thread, or of a function of a module.
pub trait Env {
    /// What a name stands for. `None`: the name is not declared, and the text is refused. A reader of texts that declare
    /// no registers makes one here.
    fn resolve(&mut self, name: &str) -> Option<Known>;

    /// The index of a label, a function, a table or a prototype, which may be declared later.
    fn label(&mut self, name: &str) -> u32;
}

/// The names of what [`Env`] gave indices to.
pub trait Names {
    /// The name of a register.
    fn register(&self, index: u32) -> Cow<'_, str>;
    /// The name of a variable or a parameter.
    fn symbol(&self, index: u32) -> Cow<'_, str>;
    /// The name of a label, a function, a table or a prototype.
    fn label(&self, index: u32) -> Cow<'_, str>;
}

/// The qualifiers that no slot has taken yet.
#[derive(Debug)]
pub struct Bag<'t> {
    /// Words, each with its byte.
    pub(crate) words: Vec<(&'t str, usize)>,
    /// Words as written, where a value has several.
    pub(crate) spelled: Vec<&'static str>,
    /// Byte behind the name.
    pub(crate) end: usize,
}

impl Bag<'_> {
    /// Takes the first word from `from` on that a kind has, and tells where it stood.
    pub(crate) fn take(&mut self, kind: &'static Kind, from: usize) -> Option<(usize, u8)> {
        let mut rest = self.words.iter().enumerate().skip(from);
        let (at, row) = rest.find_map(|(i, (word, _))| Some((i, kind.row(word)?)))?;
        self.words.remove(at);
        let usual = kind.usual(row.tag).is_some_and(|usual| usual.word == row.word);
        if !usual || kind.default == Some(row.tag) {
            self.spelled.push(row.word);
        }
        Some((at, row.tag))
    }

    /// Takes the word of a kind, or what is meant without a word.
    pub(crate) fn word(&mut self, kind: &'static Kind, name: &str) -> Result<u8, Refusal> {
        match self.take(kind, 0) {
            Some((_, tag)) => Ok(tag),
            None => kind.default.ok_or_else(|| self.missing(kind, name)),
        }
    }

    /// Takes a word that must stand and means nothing.
    pub(crate) fn fixed(&mut self, word: &'static str, name: &str) -> Result<(), Refusal> {
        let Some(at) = self.words.iter().position(|(w, _)| *w == word) else {
            return Err(self.refusal(format!("{name} needs .{word}"), Some(format!("add `.{word}`"))));
        };
        self.words.remove(at);
        Ok(())
    }

    pub(crate) fn missing(&self, kind: &'static Kind, name: &str) -> Refusal {
        let known: Vec<&str> = kind.words().collect();
        let hint = self.words.iter().find_map(|(word, _)| nearest(word, &known));
        let hint = hint.map(|near| format!("did you mean `.{near}`?"));
        self.refusal(format!("{name} needs {}", dotted(&known)), hint)
    }

    fn refusal(&self, message: String, hint: Option<String>) -> Refusal {
        Refusal { at: self.end, message, hint }
    }

    /// Refuses what is left; `known` are the words that the entry has.
    pub(crate) fn finish(
        &self,
        name: &str,
        known: impl FnOnce() -> Vec<&'static str>,
    ) -> Result<(), Refusal> {
        let Some((word, at)) = self.words.first() else { return Ok(()) };
        let known = known();
        let message = if known.contains(word) {
            format!("`.{word}` follows another qualifier of its kind")
        } else {
            format!("`.{word}` is not a qualifier of {name}")
        };
        let hint = nearest(word, &known).map(|near| format!("did you mean `.{near}`?"));
        Err(Refusal { at: *at, message, hint })
    }
}

/// `.a or .b`
pub(crate) fn dotted(words: &[&str]) -> String {
    words.iter().map(|w| format!(".{w}")).collect::<Vec<_>>().join(" or ")
}

/// The known word with the least edit distance, if it is near.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let best = known.iter().map(|k| (strsim::levenshtein(word, k), *k)).min()?;
    (best.0 > 0 && best.0 <= 1 + word.len() / 4).then_some(best.1)
}

/// A cursor over one instruction.
pub struct Cursor<'t, 'e> {
    pub(crate) text: &'t str,
    /// Byte of the next token, or of blanks before it.
    pub(crate) at: usize,
    pub(crate) env: &'e mut dyn Env,
    /// How many operands were read.
    pub(crate) count: usize,
}

impl<'t, 'e> Cursor<'t, 'e> {
    pub(crate) fn new(text: &'t str, env: &'e mut dyn Env) -> Self {
        Cursor { text, at: 0, env, count: 0 }
    }

    /// The text behind blanks and comments.
    pub(crate) fn rest(&mut self) -> &'t str {
        loop {
            let rest = self.text[self.at..].trim_start();
            self.at = self.text.len() - rest.len();
            let comment = match rest.get(..2) {
                Some("//") => rest.find('\n').unwrap_or(rest.len()),
                Some("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                _ => return rest,
            };
            self.at += comment;
        }
    }

    /// Whether this comes next.
    pub(crate) fn peek(&mut self, mark: &str) -> bool {
        self.rest().starts_with(mark)
    }

    /// Whether this is how the next operand begins.
    pub(crate) fn begins(&mut self, mark: &str) -> bool {
        let before = self.at;
        let comma = self.count > 0 && self.eat(",");
        let found = (comma || self.count == 0) && self.peek(mark);
        self.at = before;
        found
    }

    /// Steps over this if it comes next.
    pub(crate) fn eat(&mut self, mark: &str) -> bool {
        let found = self.peek(mark);
        self.at += if found { mark.len() } else { 0 };
        found
    }

    pub(crate) fn want(&mut self, mark: &str) -> Result<(), Refusal> {
        if self.eat(mark) { Ok(()) } else { self.fail(format!("expected `{mark}`")) }
    }

    /// Whether the instruction ends here.
    pub(crate) fn done(&mut self) -> bool {
        let rest = self.rest();
        rest.is_empty() || rest.starts_with(';')
    }

    /// Before an operand: the comma behind the one before.
    pub(crate) fn next(&mut self) -> Result<(), Refusal> {
        if self.count > 0 {
            self.want(",")?;
        }
        self.count += 1;
        Ok(())
    }

    /// A name or a number.
    pub(crate) fn token(&mut self) -> Result<&'t str, Refusal> {
        let rest = self.rest();
        let end = token_end(rest);
        if end == 0 {
            return self.fail("expected an operand".into());
        }
        self.at += end;
        Ok(&rest[..end])
    }

    pub(crate) fn fail<T>(&self, message: String) -> Result<T, Refusal> {
        Err(Refusal { at: self.at, message, hint: None })
    }

    /// How many operands are left.
    pub(crate) fn left(&mut self) -> usize {
        if self.done() {
            return 0;
        }
        let (mut depth, mut commas) = (0usize, 0);
        for c in self.rest().chars().take_while(|c| *c != ';') {
            match c {
                '[' | '{' | '(' => depth += 1,
                ']' | '}' | ')' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => commas += 1,
                _ => {}
            }
        }
        // A comma that stands before the next operand is not one behind it.
        if self.count == 0 { commas + 1 } else { commas }
    }
}

/// Length of the name or number at the beginning of a text.
fn token_end(text: &str) -> usize {
    let sign = usize::from(text.starts_with('-'));
    let number = text[sign..].starts_with(|c: char| c.is_ascii_digit())
        && !text[sign + 1..].starts_with(['x', 'X', 'f', 'F', 'd', 'D']);
    let mut last = ' ';
    let inside = |c: char, last: char, i: usize| {
        c.is_ascii_alphanumeric()
            || "_$.".contains(c)
            || (c == '%' && i == 0)
            || (number && "+-".contains(c) && "eE".contains(last))
    };
    for (i, c) in text[sign..].char_indices() {
        if !inside(c, last, i) {
            return if i == 0 { 0 } else { sign + i };
        }
        last = c;
    }
    if text.len() == sign { 0 } else { text.len() }
}
