//! Functions of a module (`.func`): their parameters, and where their bodies stand, so that calls can be inlined.

use super::variable::{element, extent};
use moire_program::text::scan::{Parsed, Scan};
use std::collections::BTreeMap;

/// A function with a body.
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// The names of its results.
    pub(super) results: Vec<String>,
    /// The names of its parameters.
    pub(super) params: Vec<String>,
    /// Offsets of the opening brace and behind the closing one.
    pub(super) body: (usize, usize),
}

/// Functions by name.
pub(super) type Functions = BTreeMap<String, Function>;

/// The functions of a module that have a body and a head that can be read.
pub(super) fn functions(scan: &Scan<'_>) -> Functions {
    let mut scan = scan.clone();
    let (mut out, mut depth, mut open) = (Functions::new(), 0usize, None);
    while let Some(c) = scan.rest().chars().next() {
        if depth == 0 && scan.keyword(".func") {
            let start = scan.clone();
            open = head(&mut scan).ok();
            if open.is_none() {
                scan = start;
            }
            continue;
        }
        let at = scan.at;
        scan.at += c.len_utf8();
        match c {
            '"' => scan.at += scan.source[scan.at..].find('"').map_or(0, |end| end + 1),
            ';' if depth == 0 => open = None,
            '{' => {
                if let Some((_, Function { body, .. })) = open.as_mut().filter(|_| depth == 0) {
                    body.0 = at;
                }
                depth += 1;
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if let Some((name, function)) = open.take_if(|_| depth == 0) {
                    let body = (function.body.0, scan.at);
                    out.insert(name, Function { body, ..function });
                }
            }
            _ => {}
        }
    }
    out
}

/// Reads name, results and parameters of a function.
fn head(scan: &mut Scan<'_>) -> Parsed<(String, Function)> {
    let results = formals(scan)?;
    let name = scan.name("the name of a function")?.to_owned();
    let params = formals(scan)?;
    Ok((name, Function { results, params, body: (0, 0) }))
}

/// `(.param .b32 a, .param .align 8 .b8 b[16])`, or nothing.
fn formals(scan: &mut Scan<'_>) -> Parsed<Vec<String>> {
    let mut out = Vec::new();
    if !scan.take("(") {
        return Ok(out);
    }
    while !scan.take(")") {
        scan.expect(".param")?;
        element(scan)?;
        out.push(scan.name("the name of a parameter")?.to_owned());
        extent(scan)?;
        if !scan.take(",") && !scan.peek(")") {
            return Err(scan.expected("`,` or `)`"));
        }
    }
    Ok(out)
}
