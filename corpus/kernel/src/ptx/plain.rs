//! Instructions without an operation of litmus texts, as words and operands.

use super::body::Body;
use super::book::OUTSIDE;
use super::module::{Arg, Plain};
use super::words::special;
use moire_isa::operand::Piece;
use moire_isa::{Instr, OF_CALLS, Value};
use moire_program::ir::{Reg, SymbolId};

/// A piece that lives on its own.
#[derive(Clone, Copy)]
enum Token {
    Mark(&'static str),
    Value(Value),
    Label(u32),
}

impl Body<'_, '_> {
    pub(super) fn plain(&self, instr: &Instr) -> Plain {
        let mut words: Vec<String> = instr.name().split('.').map(str::to_owned).collect();
        words.extend(instr.words().iter().map(|word| word.0.to_owned()));
        let mut operands: Vec<Vec<Token>> = Vec::new();
        let mut last = usize::MAX;
        instr.pieces(&mut |n, piece| {
            if n != last {
                operands.push(Vec::new());
                last = n;
            }
            let token = match piece {
                Piece::Mark(mark) => Token::Mark(mark),
                Piece::Value(value) => Token::Value(*value),
                Piece::Label(label) => Token::Label(label),
            };
            if let Some(tokens) = operands.last_mut() {
                tokens.push(token);
            }
        });
        let ty = words.last().cloned().unwrap_or_default();
        let args = operands.iter().map(|tokens| self.arg(&mut &tokens[..], &ty)).collect();
        Plain { words, args }
    }

    fn arg(&self, rest: &mut &[Token], ty: &str) -> Arg {
        let Some((first, behind)) = rest.split_first() else { return Arg::Other };
        *rest = behind;
        let first = match first {
            Token::Mark("[") => return self.bracketed(rest, ty),
            Token::Mark("{") => return self.braced(rest, ty),
            Token::Mark("!") => match self.arg(rest, ty) {
                Arg::Reg(r) => return Arg::Not(r),
                _ => return Arg::Other,
            },
            Token::Mark("_") => Arg::Sink,
            Token::Mark("") => return self.arg(rest, ty),
            Token::Mark(_) => return Arg::Other,
            Token::Value(value) => self.valued(*value, ty),
            Token::Label(index) => Arg::Name(self.name_of(*index).to_owned()),
        };
        let Some((Token::Mark("|"), behind)) = rest.split_first() else { return first };
        *rest = behind;
        let half = |arg: Arg| if let Arg::Reg(r) = arg { Some(r) } else { None };
        Arg::Pair(half(first), half(self.arg(rest, ty)))
    }

    fn bracketed(&self, rest: &mut &[Token], ty: &str) -> Arg {
        let base = self.arg(rest, ty);
        let offset = match rest {
            [Token::Mark("+"), Token::Value(Value::Imm(n)), ..] => *n,
            _ => 0,
        };
        Arg::Address(Box::new(base), offset)
    }

    fn braced(&self, rest: &mut &[Token], ty: &str) -> Arg {
        let mut all = Vec::new();
        while let Some((first, behind)) = rest.split_first() {
            match first {
                Token::Mark("}") => {
                    *rest = behind;
                    break;
                }
                Token::Mark(", ") => *rest = behind,
                Token::Mark(_) | Token::Value(_) | Token::Label(_) => all.push(self.arg(rest, ty)),
            }
        }
        Arg::Vector(all)
    }

    fn valued(&self, value: Value, ty: &str) -> Arg {
        match value {
            Value::Reg(reg) => u16::try_from(reg.index).map_or(Arg::Other, |n| Arg::Reg(Reg(n))),
            Value::Imm(n) => Arg::Imm(n.cast_unsigned()),
            Value::Single(bits) if ty == "f64" => Arg::Imm(f64::from(f32::from_bits(bits)).to_bits()),
            Value::Single(bits) => Arg::Imm(bits.into()),
            Value::Double(bits) => match ty {
                "f64" | "b64" => Arg::Imm(bits),
                #[expect(clippy::cast_possible_truncation, reason = "the assembler rounds to the type")]
                "f32" => Arg::Imm((f64::from_bits(bits) as f32).to_bits().into()),
                _ => Arg::Other,
            },
            Value::Symbol(index, _) if index >= OF_CALLS => Arg::Other,
            Value::Symbol(index, _) if index >= OUTSIDE => {
                Arg::Name(self.name_of(index - OUTSIDE).to_owned())
            }
            Value::Symbol(index, offset) => {
                u16::try_from(index).map_or(Arg::Other, |n| Arg::Symbol(SymbolId(n), offset))
            }
            Value::Special(of) => special(&of.name()).map_or(Arg::Other, Arg::Special),
            Value::Sink => Arg::Sink,
        }
    }
}
