//! Reads operands of instructions that are kept as words.

use super::module::Arg;
use super::words::special;
use moire_program::ir::Reg;
use moire_program::text::build::{Builder, ThreadBuilder};
use moire_program::text::scan::{Parsed, Scan};

/// The names in scope of an operand.
pub(super) struct Names<'n> {
    pub(super) builder: &'n Builder,
    pub(super) thread: &'n mut ThreadBuilder,
}

/// Reads operands up to the semicolon.
pub(super) fn operands(scan: &mut Scan<'_>, names: &mut Names<'_>) -> Parsed<Vec<Arg>> {
    let mut out = Vec::new();
    if scan.peek(";") {
        return Ok(out);
    }
    loop {
        if out.len() > 64 {
            return Err(scan.error("an instruction may have at most 64 operands".into(), None));
        }
        out.push(operand(scan, names, 0)?);
        if !scan.take(",") {
            return Ok(out);
        }
    }
}

fn operand(scan: &mut Scan<'_>, names: &mut Names<'_>, depth: usize) -> Parsed<Arg> {
    if depth > 2 {
        return Err(scan.error("braces and brackets are nested too deep".into(), None));
    }
    if scan.take("{") {
        let mut all = Vec::new();
        while !scan.take("}") {
            if all.len() > 512 {
                return Err(scan.error("a vector may have at most 512 elements".into(), None));
            }
            all.push(operand(scan, names, depth + 1)?);
            if !scan.take(",") && !scan.peek("}") {
                return Err(scan.expected("`,` or `}`"));
            }
        }
        return Ok(Arg::Vector(all));
    }
    if scan.take("[") {
        let base = operand(scan, names, depth + 1)?;
        let mut offset = 0i64;
        if scan.take("+") || scan.peek("-") {
            offset = number_of_bytes(scan)?;
        }
        // Coordinates and further parts of a texture address.
        while scan.take(",") {
            operand(scan, names, depth + 1)?;
        }
        scan.expect("]")?;
        return Ok(Arg::Address(Box::new(base), offset));
    }
    if scan.take("(") {
        while !scan.take(")") {
            operand(scan, names, depth + 1)?;
            scan.take(",");
        }
        return Ok(Arg::Other);
    }
    let rest = scan.rest();
    if rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with('-') {
        return immediate(scan);
    }
    if scan.take("!") {
        return Ok(Arg::Not(register(scan, names)?));
    }
    if scan.keyword("_") {
        if scan.take("|") {
            return Ok(Arg::Pair(None, Some(register(scan, names)?)));
        }
        return Ok(Arg::Sink);
    }
    named(scan, names)
}

fn named(scan: &mut Scan<'_>, names: &mut Names<'_>) -> Parsed<Arg> {
    scan.rest();
    let start = scan.at;
    let word = scan.word("an operand", ".")?;
    if let Some(special) = special(word) {
        return Ok(Arg::Special(special));
    }
    if let Some(part) = names.thread.known(word).filter(|_| word.contains('.')) {
        return Ok(Arg::Reg(part));
    }
    // Otherwise a name ends before a dot.
    scan.at = start;
    let word = scan.word("an operand", "")?;
    if let Some(symbol) = names.builder.symbol(word) {
        let offset = if scan.take("+") { number_of_bytes(scan)? } else { 0 };
        return Ok(Arg::Symbol(symbol, offset));
    }
    if !word.starts_with('%') && names.thread.known(word).is_none() {
        return Ok(Arg::Name(word.to_owned()));
    }
    scan.at = start;
    let reg = register(scan, names)?;
    if scan.peek("|") && !scan.peek("||") {
        scan.expect("|")?;
        let second = if scan.keyword("_") { None } else { Some(register(scan, names)?) };
        return Ok(Arg::Pair(Some(reg), second));
    }
    Ok(Arg::Reg(reg))
}

fn register(scan: &mut Scan<'_>, names: &mut Names<'_>) -> Parsed<Reg> {
    let start = {
        scan.rest();
        scan.at
    };
    let word = scan.name("a register")?.to_owned();
    let end = std::mem::replace(&mut scan.at, start);
    let reg = names.thread.reg(scan, &word)?;
    scan.at = end;
    Ok(reg)
}

/// Reads an integer in any base, or `0f..`, `0d..`.
fn immediate(scan: &mut Scan<'_>) -> Parsed<Arg> {
    scan.rest();
    let at = scan.at;
    let negative = scan.take("-");
    let word = scan.word("a number", "")?;
    let digits = word.trim_end_matches('U');
    let value = if let Some(bits) = digits.strip_prefix("0f").or_else(|| digits.strip_prefix("0F")) {
        u64::from_str_radix(bits, 16).ok().filter(|_| bits.len() == 8)
    } else if let Some(bits) = digits.strip_prefix("0d").or_else(|| digits.strip_prefix("0D")) {
        u64::from_str_radix(bits, 16).ok().filter(|_| bits.len() == 16)
    } else if let Some(bits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u64::from_str_radix(bits, 16).ok()
    } else if let Some(bits) = digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")) {
        u64::from_str_radix(bits, 2).ok()
    } else if digits.len() > 1 && digits.starts_with('0') && !word.contains('.') {
        u64::from_str_radix(digits, 8).ok()
    } else {
        digits.parse().ok()
    };
    match value {
        Some(v) => Ok(Arg::Imm(if negative { v.wrapping_neg() } else { v })),
        None => Err(scan.error_at(at, format!("`{word}` is not a number that fits 64 bits"), None)),
    }
}

/// Reads the offset behind an address. Refuses a number that does not fit 64 signed bits.
fn number_of_bytes(scan: &mut Scan<'_>) -> Parsed<i64> {
    let at = scan.at;
    let offset = scan.number()?;
    i64::try_from(offset)
        .map_err(|_| scan.error_at(at, format!("an offset of {offset} is out of range"), None))
}
