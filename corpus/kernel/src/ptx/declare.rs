//! Reads directives and declarations of a module, and the heads of its kernels.

use super::body::body;
use super::function::{Functions, functions};
use super::module::{KERNELS, Kernel, Module, Param, Variable};
use super::variable::{element, extent, small, variable};
use moire_program::ir::{Content, Placement, Space};
use moire_program::limits::OBJECT_BYTES;
use moire_program::text::build::{Builder, ThreadBuilder};
use moire_program::text::scan::{Parsed, Scan, closest};
use std::sync::Arc;

/// The parts of the module read so far.
struct Reading {
    version: Option<(u32, u32)>,
    target: Option<String>,
    /// Objects that every kernel sees.
    shared: Builder,
    variables: Vec<Variable>,
    kernels: Vec<Kernel>,
    functions: Functions,
}

const TOP: [&str; 19] = [
    "version",
    "target",
    "address_size",
    "visible",
    "extern",
    "weak",
    "common",
    "entry",
    "func",
    "global",
    "const",
    "shared",
    "file",
    "section",
    "pragma",
    "alias",
    "reg",
    "local",
    "param",
];

pub(super) fn module(scan: &mut Scan<'_>) -> Parsed<Module> {
    let mut r = Reading {
        version: None,
        target: None,
        shared: Builder::new(""),
        variables: Vec::new(),
        kernels: Vec::new(),
        functions: functions(scan),
    };
    while !scan.done() {
        top(scan, &mut r)?;
    }
    let (Some(version), Some(target)) = (r.version, r.target) else {
        let hint = "a PTX module starts with `.version 9.0` and `.target sm_100a`".to_owned();
        return Err(scan.error_at(0, "this module has no .version or no .target".into(), Some(hint)));
    };
    if r.kernels.is_empty() {
        return Err(scan.error_at(0, "this module has no kernel (.entry)".into(), None));
    }
    Ok(Module { version, target, kernels: r.kernels })
}

fn top(scan: &mut Scan<'_>, r: &mut Reading) -> Parsed<()> {
    scan.rest();
    let at = scan.at;
    if !scan.take(".") {
        return Err(scan.expected("a directive such as .version, .target, .entry"));
    }
    match scan.word("a directive", "")? {
        "version" => {
            let text = scan.word("a version such as 9.0", ".")?;
            let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            r.version = Some(parts.ok_or_else(|| {
                scan.error_at(at, format!("`{text}` is not a version of PTX"), Some("for example 9.0".into()))
            })?);
        }
        "target" => {
            r.target = Some(scan.word("an architecture such as sm_100a", "")?.to_owned());
            while scan.take(",") {
                scan.word("a target option", "")?;
            }
        }
        "address_size" => drop(scan.number()?),
        "visible" | "extern" | "weak" | "common" => {}
        "entry" => kernel(scan, r)?,
        "func" => function(scan)?,
        word @ ("global" | "const" | "shared") => {
            variable(scan, &mut r.shared, &mut r.variables, word)?;
        }
        "file" | "section" | "pragma" | "alias" => skip(scan),
        word => {
            let hint = closest(word, &TOP).map(|k| format!("did you mean `.{k}`?"));
            return Err(scan.error_at(at, format!("unknown directive `.{word}` of a module"), hint));
        }
    }
    Ok(())
}

/// Skips balanced braces up to the end of a statement.
fn skip(scan: &mut Scan<'_>) {
    let mut depth = 0usize;
    while let Some(c) = scan.rest().chars().next() {
        if depth == 0 && c == '.' && scan.source[..scan.at].ends_with(['\n', '\r']) {
            return;
        }
        scan.at += c.len_utf8();
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return;
                }
            }
            ';' if depth == 0 => return,
            _ => {}
        }
    }
}

/// Skips a function: up to `;`, or over its body.
fn function(scan: &mut Scan<'_>) -> Parsed<()> {
    while let Some(c) = scan.rest().chars().next() {
        match c {
            ';' => {
                scan.at += 1;
                return Ok(());
            }
            '{' => {
                skip(scan);
                return Ok(());
            }
            c => scan.at += c.len_utf8(),
        }
    }
    Err(scan.expected("`;` or the body of the function"))
}

fn kernel(scan: &mut Scan<'_>, r: &mut Reading) -> Parsed<()> {
    scan.rest();
    let at = scan.at;
    let name = scan.name("the name of the kernel")?.to_owned();
    if r.kernels.len() == KERNELS {
        return Err(scan.error_at(at, format!("a module may have at most {KERNELS} kernels"), None));
    }
    if r.kernels.iter().any(|k| k.name == name) {
        return Err(scan.error_at(at, format!("the kernel `{name}` is defined twice"), None));
    }
    let mut builder = r.shared.clone();
    builder.program.name = name.clone();
    let mut variables = r.variables.clone();
    let mut params = Vec::new();
    if scan.take("(") && !scan.take(")") {
        loop {
            params.push(parameter(scan, &mut builder)?);
            variables.push(Variable::Param(params.len() - 1));
            if !scan.take(",") {
                break;
            }
        }
        scan.expect(")")?;
    }
    let mut kernel = Kernel {
        name,
        params,
        threads: None,
        most_threads: None,
        most_registers: None,
        least_ctas: None,
        cluster: None,
        variables,
        types: Vec::new(),
        body: Vec::new(),
        names: Vec::new(),
        tables: Vec::new(),
        program: builder.program.clone(),
        kept: Arc::default(),
    };
    head(scan, &mut kernel)?;
    if scan.take(";") {
        return Ok(());
    }
    let mut thread = ThreadBuilder::new("kernel", Placement::default());
    thread.declare_first();
    body(scan, &mut builder, &mut thread, &mut kernel, &r.functions)?;
    kernel.types = std::mem::take(&mut thread.types);
    builder.thread(scan, thread.thread)?;
    kernel.program = builder.program;
    r.kernels.push(kernel);
    Ok(())
}

fn parameter(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<Param> {
    scan.expect(".param")?;
    let (ty, _) = element(scan)?;
    let Some(ty) = ty else { return Err(scan.expected("a type such as .u64")) };
    let name = scan.name("the name of a parameter")?.to_owned();
    if builder.symbol(&name).is_some() {
        return Err(scan.error(format!("`{name}` is declared twice"), None));
    }
    let count = extent(scan)?;
    let bytes = count.flatten().unwrap_or(1).saturating_mul(ty.bytes()).clamp(1, OBJECT_BYTES);
    builder.object(scan, &name, Space::Global, bytes, Content::default())?;
    let array = count.is_some();
    Ok(Param { name, bytes, array, pointer: !array && bytes == 8 })
}

/// Reads directives such as `.reqntid 128, 1, 1`, up to the body.
fn head(scan: &mut Scan<'_>, kernel: &mut Kernel) -> Parsed<()> {
    while scan.take(".") {
        let at = scan.at;
        let word = scan.word("a directive of a kernel", "")?;
        let three = |scan: &mut Scan<'_>| -> Parsed<[u32; 3]> {
            let mut out = [1; 3];
            for (i, n) in out.iter_mut().enumerate() {
                if i > 0 && !scan.take(",") {
                    break;
                }
                *n = small(scan)?;
            }
            Ok(out)
        };
        match word {
            "reqntid" => kernel.threads = Some(three(scan)?),
            "maxntid" => kernel.most_threads = Some(three(scan)?),
            "reqnctapercluster" => kernel.cluster = Some(three(scan)?),
            "maxnreg" => kernel.most_registers = Some(small(scan)?),
            "minnctapersm" => kernel.least_ctas = Some(small(scan)?),
            "language" | "maxnctapersm" | "maxclusterrank" => {
                scan.number()?;
            }
            "explicitcluster" | "noreturn" | "blocksareclusters" | "abi_preserve" => {}
            "pragma" => {
                let end = scan.rest().find(';').unwrap_or(0);
                scan.at += end;
                scan.expect(";")?;
            }
            word => {
                let known = [
                    "reqntid",
                    "maxntid",
                    "reqnctapercluster",
                    "minnctapersm",
                    "maxnreg",
                    "maxclusterrank",
                    "explicitcluster",
                    "pragma",
                    "noreturn",
                    "blocksareclusters",
                ];
                let hint = closest(word, &known).map(|k| format!("did you mean `.{k}`?"));
                return Err(scan.error_at(at, format!("unknown directive `.{word}` of a kernel"), hint));
            }
        }
    }
    Ok(())
}
