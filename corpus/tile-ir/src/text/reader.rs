//! A cursor over the text of a function: reads words, numbers and values, and knows the types of values.

use crate::{Function, Op, Reason, Type, VALUES, Value};
use moire_program::text::ParseError;
use moire_program::text::scan::{Parsed, Scan, closest};
use std::collections::HashMap;

/// The cursor, with the function read so far.
pub(super) struct Reader<'a> {
    pub(super) scan: Scan<'a>,
    pub(super) function: Function,
    /// Values by name. The results of one operation may share a name: `%0:2`.
    pub(super) names: HashMap<&'a str, Vec<Value>>,
    /// Names in the order of their definition. A block removes its own at its end.
    pub(super) defined: Vec<&'a str>,
    pub(super) depth: usize,
    pub(super) ops: usize,
}

/// An operation with the types of its results.
pub(super) type Read = (Op, Vec<Type>);

/// Adds the reason to an error.
pub(super) fn because(reason: Reason, mut error: ParseError) -> ParseError {
    error.0.rule = Some(reason.name());
    error
}

impl<'a> Reader<'a> {
    pub(super) fn new(scan: Scan<'a>) -> Self {
        let function = Function::entry("", Vec::new());
        Reader { scan, function, names: HashMap::new(), defined: Vec::new(), depth: 0, ops: 0 }
    }

    /// Takes `what` if it stands here as a whole word; it may contain dots.
    pub(super) fn word(&mut self, what: &str) -> bool {
        let (before, found) = (self.scan.at, self.scan.word("", ".").unwrap_or_default());
        let hit = found.strip_prefix("cuda_tile.").unwrap_or(found) == what || found == what;
        if !hit {
            self.scan.at = before;
        }
        hit
    }

    /// `@name`
    pub(super) fn symbol(&mut self) -> Parsed<&'a str> {
        self.scan.expect("@")?;
        self.scan.word("a name", ".-")
    }

    /// `%name`; the name may contain a minus sign, as in the name of a negative constant.
    pub(super) fn value_name(&mut self) -> Parsed<&'a str> {
        if !self.scan.peek("%") {
            return Err(self.wants_value());
        }
        let rest = self.scan.rest();
        let inside = |(i, c): (usize, char)| match c {
            '-' => !rest[i + 2..].starts_with('>'),
            c => c.is_ascii_alphanumeric() || "_$.".contains(c),
        };
        let length = 1 + rest[1..].char_indices().find(|c| !inside(*c)).map_or(rest.len() - 1, |(i, _)| i);
        if length < 2 {
            return Err(self.fault(Reason::Syntax, "expected a name after `%`".into()));
        }
        if length > self.scan.longest {
            return Err(
                self.fault(Reason::Limit, format!("a name may have at most {} bytes", self.scan.longest))
            );
        }
        self.scan.at += length;
        Ok(&rest[..length])
    }

    fn wants_value(&mut self) -> ParseError {
        let error = self.scan.expected("a value such as `%0`");
        because(Reason::Value, error)
    }

    /// `%0` or `%0#1`; the value must be defined.
    pub(super) fn value(&mut self) -> Parsed<Value> {
        let name = self.value_name()?;
        let at = self.scan.at;
        let which = if self.scan.source[at..].starts_with('#') {
            self.scan.expect("#")?;
            self.count()?
        } else {
            0
        };
        let found = self.names.get(name).and_then(|g| g.get(which)).copied();
        found.ok_or_else(|| {
            let message = format!("`{name}` is not defined here");
            because(Reason::Name, self.scan.error_at(at - name.len(), message, None))
        })
    }

    /// One or more values, separated by commas.
    pub(super) fn values(&mut self) -> Parsed<Vec<Value>> {
        let mut out = vec![self.value()?];
        while self.scan.take(",") {
            out.push(self.value()?);
        }
        Ok(out)
    }

    pub(super) fn fresh(&mut self, ty: Type) -> Parsed<Value> {
        if self.function.types.len() == VALUES {
            return Err(self.fault(Reason::Limit, format!("a function may have at most {VALUES} values")));
        }
        Ok(self.function.fresh(ty))
    }

    pub(super) fn define(&mut self, name: &'a str, values: Vec<Value>) -> Parsed<()> {
        if self.names.insert(name, values).is_some() {
            return Err(self.fault(Reason::Name, format!("`{name}` is defined twice")));
        }
        self.defined.push(name);
        Ok(())
    }

    /// The type of a value of this function.
    pub(super) fn of(&self, value: Value) -> &Type {
        &self.function.types[value.index()]
    }

    /// Checks that each value has the type stated for it.
    pub(super) fn agree(&self, at: usize, values: &[Value], stated: &[Type]) -> Parsed<()> {
        for (value, stated) in values.iter().zip(stated) {
            let ty = self.of(*value);
            if ty != stated {
                let message = format!("a value has type `{ty}`, but the text states `{stated}`");
                return Err(because(Reason::ValueType, self.scan.error_at(at, message, None)));
            }
        }
        Ok(())
    }

    /// An error at the current position.
    pub(super) fn fault(&mut self, reason: Reason, message: String) -> ParseError {
        because(reason, self.scan.error(message, None))
    }

    /// Reads one of `words` and gives its position. The error names `what` was expected and lists the words.
    pub(super) fn one_of(&mut self, what: &str, words: &[&'static str]) -> Parsed<usize> {
        let at = self.scan.at;
        let word = self.scan.word(what, "")?;
        words.iter().position(|known| *known == word).ok_or_else(|| {
            let hint = closest(word, words).map(|k| format!("did you mean `{k}`?"));
            let message = format!("unknown {what} `{word}`; expected one of {}", words.join(", "));
            because(Reason::Word, self.scan.error_at(at, message, hint))
        })
    }

    /// Reads a natural number.
    pub(super) fn digits(&mut self) -> Parsed<u64> {
        let rest = self.scan.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..length].parse().map_err(|_| self.scan.expected("a number that fits 64 bits"))?;
        self.scan.at += length;
        Ok(number)
    }

    /// Reads a natural number that fits `usize`.
    pub(super) fn count(&mut self) -> Parsed<usize> {
        let before = self.scan.at;
        let number = self.digits()?;
        usize::try_from(number).map_err(|_| {
            self.scan.at = before;
            self.scan.expected("a number that counts something")
        })
    }

    /// Reads a word that must stand here.
    pub(super) fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.scan.keyword(word) { Ok(()) } else { Err(self.scan.expected(&format!("`{word}`"))) }
    }
}
