//! Instructions as both languages write them: `@!P0 OP.WORD.WORD a, [b+4], {c, d}`.

use super::value::{State, Value};

/// An instruction in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instr {
    /// The register of the guard, and whether it is negated.
    pub(super) guard: Option<(String, bool)>,
    /// The words of the operation.
    pub(super) words: Vec<String>,
    pub(super) operands: Vec<String>,
}

impl Instr {
    pub(super) fn read(text: &str) -> Instr {
        let (guard, rest) = match text.strip_prefix('@') {
            Some(rest) => {
                let (register, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let plain = register.trim_start_matches('!');
                (Some((plain.to_owned(), plain != register)), rest.trim_start())
            }
            None => (None, text),
        };
        let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let words = name.split('.').map(str::to_owned).collect();
        Instr { guard, words, operands: parts(operands) }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }

    /// The first word, or the first ones.
    pub(super) fn is(&self, name: &str) -> bool {
        name.split('.').zip(self.words.iter().map(String::as_str).chain([""; 4])).all(|(a, b)| a == b)
    }

    pub(super) fn name(&self) -> String {
        self.words.join(".")
    }

    pub(super) fn operand(&self, n: usize) -> &str {
        self.operands.get(n).map_or("", String::as_str)
    }

    /// The truth value of the guard.
    pub(super) fn holds(&self, state: &mut State) -> Option<Value> {
        let (register, negated) = self.guard.as_ref()?;
        let value = truth(register, state);
        Some(if *negated { value.not() } else { value })
    }
}

/// The truth value in a register; `PT` and `UPT` of the machine are true.
pub(super) fn truth(register: &str, state: &mut State) -> Value {
    let plain = register.trim_start_matches('!');
    let value = if matches!(plain, "PT" | "UPT") { Value::number(1) } else { state.get(plain) };
    if plain == register { value } else { value.not() }
}

/// Operands, apart at the commas outside of brackets.
fn parts(text: &str) -> Vec<String> {
    let (mut out, mut depth) = (vec![String::new()], 0i32);
    for c in text.chars() {
        depth += match c {
            '[' | '{' | '(' => 1,
            ']' | '}' | ')' => -1,
            _ => 0,
        };
        match (c, depth) {
            (',', 0) => out.push(String::new()),
            _ => out.iter_mut().last().into_iter().for_each(|last| last.push(c)),
        }
    }
    out.iter_mut().for_each(|part| *part = part.trim().to_owned());
    out.retain(|part| !part.is_empty());
    out
}

/// A number as both languages write it; one of 64 bits without a sign is that of the same bits.
pub(super) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let digits = digits.trim_end_matches('U');
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    let number = number.cast_signed();
    Some(if negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        let one = Instr::read("@!P0 ATOMG.E.CAS.STRONG.GPU PT, R2, [R4.64+0x8], R6, R7");
        assert_eq!(one.guard, Some(("P0".into(), true)));
        assert_eq!((one.words.len(), one.operands.len(), one.operand(2)), (5, 5, "[R4.64+0x8]"));
        assert!(one.is("ATOMG.E") && one.has("GPU") && !one.is("ATOMG.CAS"));
        let two = Instr::read("st.global.v2.u32 [m0], {r1, r2}");
        assert_eq!(two.operands, ["[m0]", "{r1, r2}"]);
        assert_eq!(number("-0x10"), Some(-16));
        assert_eq!(number("18446744073709551615U"), Some(-1));
        assert_eq!(number("m0"), None);
    }
}
