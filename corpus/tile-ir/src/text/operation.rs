//! Reads an operation piece by piece, as the book tells it.

use super::control::{branch, counted, endless};
use super::generic::generic;
use super::literal::constant;
use super::own::{assumption, tensor_view};
use super::reader::{Read, Reader, because};
use crate::book::{FORMS, Form, Gives, Piece, States, Text};
use crate::field::{FieldMut, Named};
use crate::words::{Stated, Word};
use crate::{Reason, Scope, Type, Value};
use moire_program::text::scan::{Parsed, closest};

pub(super) fn operation(r: &mut Reader<'_>) -> Parsed<Read> {
    if r.scan.peek("\"") {
        return generic(r);
    }
    let at = r.scan.at;
    let full = r.scan.word("an operation", ".")?;
    let word = full.strip_prefix("cuda_tile.").unwrap_or(full);
    let Some(form) = Form::of_word(word) else {
        let known: Vec<&str> = FORMS.iter().map(|form| form.word).collect();
        let hint = closest(word, &known).map(|k| format!("did you mean `{k}`?"));
        return Err(because(
            Reason::Operation,
            r.scan.error_at(at, format!("unknown operation `{word}`"), hint),
        ));
    };
    match form.text {
        Text::Pieces(pieces) => in_pieces(r, form, pieces),
        Text::Constant => constant(r),
        Text::TensorView => tensor_view(r),
        Text::If => branch(r),
        Text::For => counted(r),
        Text::Loop => endless(r),
    }
}

/// Reads the pieces of a text, each into the field that it names.
fn in_pieces(r: &mut Reader<'_>, form: &Form, pieces: &[Piece]) -> Parsed<Read> {
    let mut op = (form.blank)();
    let mut reading =
        Reading { r, fields: op.fields_mut(), gives: form.gives, values: Vec::new(), types: None };
    for piece in pieces {
        reading.piece(piece)?;
    }
    // A text without types has tokens as results.
    let types = reading.types.unwrap_or_else(|| vec![Type::Token; form.gives.len()]);
    Ok((op, types))
}

struct Reading<'r, 'a, 'f> {
    r: &'r mut Reader<'a>,
    fields: Vec<Named<FieldMut<'f>>>,
    gives: &'static [Gives],
    /// The values read so far, each with the name of its field.
    values: Vec<(&'static str, Value)>,
    /// The types of the results, once they are stated.
    types: Option<Vec<Type>>,
}

impl Reading<'_, '_, '_> {
    fn piece(&mut self, piece: &Piece) -> Parsed<()> {
        match piece {
            Piece::Its(name) => self.its(name),
            Piece::Flag(name, word) => {
                let said = self.r.scan.keyword(word);
                self.fill(name, |field| {
                    if let FieldMut::Flag(flag) = field {
                        **flag = said;
                    }
                });
                Ok(())
            }
            Piece::Comma => self.r.scan.expect(","),
            Piece::More(name) => {
                if self.r.scan.take(",") {
                    self.operands(name, false)
                } else {
                    Ok(())
                }
            }
            Piece::Token(name, _) => {
                if !self.r.scan.keyword("token") {
                    return Ok(());
                }
                self.r.scan.expect("=")?;
                let at = self.r.scan.at;
                self.operands(name, false)?;
                self.agree(at, &[name], &Type::Token)
            }
            Piece::Index(name) => {
                self.r.scan.expect("[")?;
                if !self.r.scan.peek("]") {
                    self.operands(name, true)?;
                }
                self.r.scan.expect("]")
            }
            Piece::Typed(name) => {
                if !self.r.scan.peek("%") {
                    return Ok(());
                }
                self.operands(name, true)?;
                self.stated(&[States::Each(name)])
            }
            Piece::Types(states) => self.stated(states),
            Piece::Arrow => self.arrow(),
        }
    }

    /// Changes the fields with this name.
    fn fill(&mut self, name: &str, change: impl FnMut(&mut FieldMut<'_>)) {
        self.fields.iter_mut().filter(|n| n.name == name).map(|n| &mut n.field).for_each(change);
    }

    /// Reads one value, or as many as commas separate.
    fn operands(&mut self, name: &'static str, many: bool) -> Parsed<()> {
        let values = if many { self.r.values()? } else { vec![self.r.value()?] };
        self.values.extend(values.iter().map(|value| (name, *value)));
        self.fill(name, |field| match field {
            FieldMut::Operand(value) => values.iter().for_each(|v| **value = *v),
            FieldMut::Optional(value) => **value = values.first().copied(),
            FieldMut::Operands(list) => list.clone_from(&values),
            FieldMut::Word(_) | FieldMut::Scope(_) | FieldMut::Flag(_) | FieldMut::Hints(_) => {}
            FieldMut::Inbounds(_) | FieldMut::Constant(_) | FieldMut::Assumption(_) => {}
            FieldMut::Block(_) | FieldMut::OptionalBlock(_) => {}
        });
        Ok(())
    }

    fn of(&self, names: &[&str]) -> Vec<Value> {
        self.values.iter().filter(|(name, _)| names.contains(name)).map(|(_, value)| *value).collect()
    }

    /// Checks that all values of these fields have this type.
    fn agree(&self, at: usize, names: &[&str], ty: &Type) -> Parsed<()> {
        let values = self.of(names);
        self.r.agree(at, &values, &vec![ty.clone(); values.len()])
    }

    /// A field in the syntax of its kind.
    fn its(&mut self, name: &'static str) -> Parsed<()> {
        let Reading { r, fields, values, .. } = self;
        for Named { field, .. } in fields.iter_mut().filter(|n| n.name == name) {
            match field {
                FieldMut::Word(word) => word_of(r, *word)?,
                FieldMut::Scope(scope) => {
                    if !r.scan.peek("%") {
                        word_of(r, scope.insert(Scope::default()))?;
                    }
                }
                FieldMut::Hints(hints) => {
                    if r.scan.keyword("optimization_hints") {
                        r.scan.expect("=")?;
                        **hints = r.hints()?;
                    }
                }
                FieldMut::Inbounds(inbounds) => {
                    **inbounds = vec![false; values.iter().filter(|(n, _)| *n == "place.index").count()];
                    promises(r, inbounds)?;
                }
                FieldMut::Assumption(that) => **that = assumption(r)?,
                FieldMut::Operand(value) => {
                    **value = r.value()?;
                    values.push((name, **value));
                }
                FieldMut::Operands(list) => {
                    **list = if r.scan.peek(":") { Vec::new() } else { r.values()? };
                    values.extend(list.iter().map(|value| (name, *value)));
                }
                FieldMut::Flag(_) | FieldMut::Optional(_) | FieldMut::Constant(_) => {}
                FieldMut::Block(_) | FieldMut::OptionalBlock(_) => {}
            }
        }
        Ok(())
    }

    /// `: T, ..`
    fn stated(&mut self, states: &[States]) -> Parsed<()> {
        self.r.scan.expect(":")?;
        let at = self.r.scan.at;
        let needed = states.iter().map(|state| self.needed(state)).sum::<usize>();
        let open = states.iter().any(|state| matches!(state, States::Indices(_)));
        let mut types = vec![self.r.ty()?];
        while (open || types.len() < needed) && self.r.scan.take(",") {
            types.push(self.r.ty()?);
        }
        if types.len() < needed {
            let least = if open { "at least " } else { "" };
            let message = format!("expected {least}{needed} types, found {}", types.len());
            return Err(because(Reason::ValueType, self.r.scan.error_at(at, message, None)));
        }
        let mut types = types.into_iter();
        for state in states {
            let mut next = types.by_ref().take(self.needed(state));
            match state {
                States::Each(name) => self.r.agree(at, &self.of(&[name]), &next.collect::<Vec<_>>())?,
                States::One(names) => next.try_for_each(|ty| self.agree(at, names, &ty))?,
                States::Result(names) => {
                    for ty in next {
                        self.agree(at, names, &ty)?;
                        self.gives.iter().try_for_each(|gives| suits(self.r, at, *gives, &ty))?;
                        self.types = Some(vec![ty; self.gives.len()]);
                    }
                }
                States::Indices(name) => self.indices(at, name, types.as_slice())?,
                // The type of a token tells nothing.
                States::Waits(_) => {}
            }
        }
        Ok(())
    }

    /// How many types tell this, at least.
    fn needed(&self, state: &States) -> usize {
        match state {
            States::Each(name) => self.of(&[name]).len(),
            States::One(_) | States::Result(_) => 1,
            States::Indices(_) | States::Waits(_) => 0,
        }
    }

    /// One type for all indices, one for each, or none; then perhaps the type of a token.
    fn indices(&self, at: usize, name: &str, mut stated: &[Type]) -> Parsed<()> {
        let indices = self.of(&[name]);
        while let [front @ .., Type::Token] = stated {
            stated = front;
        }
        match stated {
            [] => Ok(()),
            [one] => self.agree(at, &[name], one),
            all if all.len() == indices.len() => self.r.agree(at, &indices, all),
            all => {
                let message = format!("expected {} types of indices, found {}", indices.len(), all.len());
                Err(because(Reason::IndexCount, self.r.scan.error_at(at, message, None)))
            }
        }
    }

    /// `-> T, token`
    fn arrow(&mut self) -> Parsed<()> {
        self.r.scan.expect("->")?;
        let mut types = Vec::new();
        for gives in self.gives {
            if !types.is_empty() {
                self.r.scan.expect(",")?;
            }
            let at = self.r.scan.at;
            let ty = self.r.ty()?;
            suits(self.r, at, *gives, &ty)?;
            types.push(ty);
        }
        self.types = Some(types);
        Ok(())
    }
}

/// Checks that a result can have the type stated for it.
fn suits(r: &Reader<'_>, at: usize, gives: Gives, ty: &Type) -> Parsed<()> {
    if gives.fits(ty) {
        return Ok(());
    }
    let (reason, wanted) = match gives {
        Gives::Tile | Gives::Any => (Reason::Type, "a type `tile<..>`"),
        Gives::Partition => (Reason::Type, "a type `partition_view<..>`"),
        Gives::Strided => (Reason::Type, "a type `strided_view<..>`"),
        Gives::Gather => (Reason::Type, "a type `gather_scatter_view<..>`"),
        Gives::Token => (Reason::ValueType, "the type `token`"),
        Gives::Coordinate => (Reason::ValueType, "the type `tile<i32>`"),
    };
    let message = format!("expected {wanted}, found `{ty}`");
    Err(because(reason, r.scan.error_at(at, message, None)))
}

/// A word of a vocabulary, as its operations state it. What is left out is the first word.
fn word_of(r: &mut Reader<'_>, word: &mut dyn Word) -> Parsed<()> {
    let vocabulary = word.vocabulary();
    let end = match vocabulary.stated {
        Stated::Bare => None,
        Stated::Named(name) => {
            if !r.scan.keyword(name) {
                return Ok(());
            }
            r.scan.expect("<")?;
            Some(">")
        }
        Stated::Attribute(name, kind) => {
            if !r.scan.keyword("attributes") {
                return Ok(());
            }
            r.scan.expect("{")?;
            r.keyword(name)?;
            r.scan.expect("=")?;
            r.scan.expect("#")?;
            r.scan.expect(kind)?;
            r.scan.expect("<")?;
            Some(">}")
        }
    };
    let number = r.one_of(vocabulary.what, vocabulary.words)?;
    word.become_number(u8::try_from(number).unwrap_or(u8::MAX));
    end.map_or(Ok(()), |end| end.chars().try_for_each(|c| r.scan.expect(&c.to_string())))
}

/// `inbounds = [true, false]`
fn promises(r: &mut Reader<'_>, inbounds: &mut [bool]) -> Parsed<()> {
    if !r.scan.keyword("inbounds") {
        return Ok(());
    }
    r.scan.expect("=")?;
    r.scan.expect("[")?;
    for (i, inside) in inbounds.iter_mut().enumerate() {
        if i > 0 {
            r.scan.expect(",")?;
        }
        *inside = r.scan.keyword("true");
        if !*inside {
            r.keyword("false")?;
        }
    }
    r.scan.expect("]")
}
