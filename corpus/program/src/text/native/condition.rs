//! Conditions at the end of a native litmus text: `exists`, `~exists`, `forall`, and the `filter` for all of them.

use crate::ir::*;
use crate::text::build::{Builder, constant, expr};
use crate::text::scan::{Parsed, Scan, closest};

pub(super) fn condition(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    if scan.keyword("filter") {
        builder.program.filter = Some(asked(scan, builder)?);
        return Ok(());
    }
    let negated = scan.take("~");
    let quantifier = if scan.keyword("exists") {
        if negated { Quantifier::NotExists } else { Quantifier::Exists }
    } else if !negated && scan.keyword("forall") {
        Quantifier::ForAll
    } else {
        return Err(scan.expected("`exists`, `~exists`, `forall` or `filter`"));
    };
    let expr = asked(scan, builder)?;
    let name = if scan.keyword("as") { scan.name("a name")?.to_owned() } else { String::new() };
    builder.condition(scan, Condition { name, quantifier, expr })
}

fn asked<'a>(scan: &mut Scan<'a>, builder: &mut Builder) -> Parsed<Expr> {
    expr(scan, &mut |scan: &mut Scan<'a>| term(scan, builder))
}

fn term(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<Term> {
    if scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return constant(scan);
    }
    let at = scan.at;
    let bracket = scan.take("[");
    let mut name = scan.name("a register `P0:r1`, memory `[x]` or a number")?;
    let mut owner = None;
    if scan.take(":") {
        let found = builder.program.threads.iter().position(|t| t.name == name);
        let Some(t) = found else {
            return Err(scan.error_at(at, format!("there is no thread `{name}`"), None));
        };
        owner = Some(ThreadId::at(t));
        name = scan.name("a register or a name")?;
        if !bracket {
            let regs = &builder.program.threads[t].regs;
            let Some(r) = regs.iter().position(|r| r.name == name) else {
                let known: Vec<&str> = regs.iter().map(|r| r.name.as_str()).collect();
                let hint = closest(name, &known).map(|k| format!("did you mean `{k}`?"));
                return Err(scan.error_at(at, format!("this thread has no register `{name}`"), hint));
            };
            return Ok(Term::Reg(ThreadId::at(t), Reg::at(r)));
        }
    }
    let Some(symbol) = builder.symbol(name) else {
        return Err(scan.error_at(
            at,
            format!("`{name}` is not declared"),
            Some("a register is written `P0:r1`".into()),
        ));
    };
    let object = &builder.program.objects[builder.program.symbols[symbol.index()].object.index()];
    if object.space == Space::Tensor {
        let hint = "load it into registers and ask for those".to_owned();
        return Err(scan.error_at(at, "a condition cannot read tensor memory".into(), Some(hint)));
    }
    let offset = if bracket && scan.take("+") { scan.number()? } else { 0 };
    // The default width is the largest of 1, 2, 4 and 8 bytes that fits the object.
    let mut bytes = 1u8 << object.bytes.clamp(1, 8).ilog2();
    if bracket {
        scan.expect("]")?;
        if scan.take(".b") {
            bytes = match scan.number()? {
                8 => 1,
                16 => 2,
                32 => 4,
                64 => 8,
                n => {
                    return Err(
                        scan.error(format!("memory is compared in 8, 16, 32 or 64 bits, not {n}"), None)
                    );
                }
            };
        }
    }
    let last = i128::from(object.bytes) - i128::from(bytes);
    let Some(offset) = u32::try_from(offset).ok().filter(|offset| i128::from(*offset) <= last) else {
        return Err(scan.error_at(at, format!("`{name}` has only {} bytes", object.bytes), None));
    };
    Ok(Term::Mem { symbol, offset, bytes, thread: owner })
}
