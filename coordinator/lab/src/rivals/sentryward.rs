//! SentryWard: what it is told of a launch, and what it says.

use super::{Said, Told, timed};
use anyhow::{Context, Result};
use moire_kernel::ptx::{self, Kernel, Param};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Bytes of a tensor map.
const MAP: u32 = 128;
/// Dynamic shared memory of a kernel that does not say how much it needs: all that a CTA may have.
const SHARED: u64 = 232_448;

/// The version of an installed SentryWard, from the package beside its program.
pub(super) fn version(program: &Path) -> Option<String> {
    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok().filter(|o| o.status.success())
    };
    quiet(Command::new(program).arg("--help"))?;
    let python = program.with_file_name("python3");
    let ask = "from importlib.metadata import version; print(version('sentryward'))";
    let told = quiet(Command::new(python).args(["-c", ask]));
    Some(
        told.map_or("of an unknown version".into(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned()),
    )
}

/// What it says of a module for the launch that we chose. None: we read no launch.
pub(super) fn ask(program: &Path, path: &Path, launch: &Value, budget: Duration) -> Result<Option<Told>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let Ok(module) = ptx::parse(&text) else { return Ok(None) };
    let Some(kernel) = module.kernels.iter().find(|k| launch["entry"] == k.name.as_str()) else {
        return Ok(None);
    };
    let input = std::env::temp_dir().join(format!("moire-rivals-{}.json", std::process::id()));
    std::fs::write(&input, told(kernel, launch, &text).to_string())?;
    let mut command = Command::new(program);
    command.arg(path).arg("--input").arg(&input).args(["--timeout", &budget.as_secs().max(1).to_string()]);
    let (ended, seconds) = timed(command, budget + Duration::from_secs(5))?;
    std::fs::remove_file(&input)?;
    let said = ended.map_or(Said::Open("no answer in time".into()), |(_, out)| said(&out.join("\n")));
    Ok(Some(Told { said, seconds }))
}

/// The input that describes a launch.
fn told(kernel: &Kernel, launch: &Value, text: &str) -> Value {
    let (mut declarations, mut arguments) = (Vec::new(), Vec::new());
    for (index, param) in kernel.params.iter().enumerate() {
        let all = launch["parameters"].as_array().into_iter().flatten();
        let values: Vec<&Value> = all.filter(|p| p["index"] == index).collect();
        for (n, value) in values.iter().enumerate() {
            let next = values.get(n + 1).and_then(|v| v["at"].as_u64()).unwrap_or(u64::from(param.bytes));
            let ty = match value["at"].as_u64() {
                Some(at) => format!("u{}", field(at, next)),
                None if text.contains(&format!(".f32 {}", param.name)) => "f32".to_owned(),
                None => format!("u{}", param.bytes * 8),
            };
            let offset = value["at"].as_u64().unwrap_or(0);
            arguments
                .push(json!({"parameter": index, "offset": offset, "type": ty, "value": value["value"]}));
        }
        if values.iter().all(|v| v["at"].as_u64().is_some_and(|at| at >= 8)) {
            declarations.extend(declared(index, param));
        }
    }
    let size = |of: &str| launch[of]["size"].clone();
    let shared = if text.contains(".extern .shared") { SHARED } else { 0 };
    json!({
        "schema": "spverify.kernel-input/v1", "entry": kernel.name,
        "launch": {"grid_dim": size("grid"), "block_dim": size("block"), "cluster_dim": size("cluster"),
                   "dynamic_shared_bytes": shared},
        "declarations": declarations, "arguments": arguments,
    })
}

/// The bits of a field of a structure, which ends before the `next` one: a launch does not tell them.
fn field(at: u64, next: u64) -> u64 {
    8 * [4, 2].into_iter().find(|bytes| at.is_multiple_of(*bytes) && at + bytes <= next).unwrap_or(1)
}

/// A parameter without a value: a pointer, a tensor map, or a structure that begins with a pointer.
fn declared(index: usize, param: &Param) -> Option<Value> {
    let object = format!("p{index}");
    if param.array && param.bytes == MAP {
        return Some(json!({"parameter": index, "type": "tensor_map", "object": object}));
    }
    (param.pointer || param.array && param.bytes >= 8)
        .then(|| json!({"parameter": index, "type": "pointer", "space": "global", "object": object}))
}

fn said(out: &str) -> Said {
    let Ok(told) = serde_json::from_str::<Value>(out) else { return Said::Open("no answer".into()) };
    let result = told["result"].as_str().unwrap_or_default().to_owned();
    match result.as_str() {
        "race_free" | "verified" => Said::Clean,
        "potential_race" | "not_wellsynced" | "invalid_lifecycle" => Said::Wrong(result),
        _ => Said::Open(told["diagnostics"][0]["code"].as_str().map_or(result, str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_told_with_its_values_and_pointers() {
        let text = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n, \
                    .param .align 64 .b8 m[128])\n{\nret;\n}\n";
        let module = ptx::parse(text).unwrap();
        let launch = json!({"grid": {"size": [2, 1, 1]}, "block": {"size": [32, 1, 1]}, "cluster": {"size": [1, 1, 1]},
                            "parameters": [{"index": 1, "at": null, "value": 3}]});
        let told = told(&module.kernels[0], &launch, text);
        assert_eq!(told["launch"]["grid_dim"], json!([2, 1, 1]));
        assert_eq!(told["arguments"], json!([{"parameter": 1, "offset": 0, "type": "u32", "value": 3}]));
        let kinds: Vec<&Value> =
            told["declarations"].as_array().unwrap().iter().map(|d| &d["type"]).collect();
        assert_eq!(kinds, ["pointer", "tensor_map"]);
    }

    #[test]
    fn fields_do_not_overlap() {
        assert_eq!([(0, 1), (2, 4), (0, 16), (6, 16)].map(|(at, next)| field(at, next)), [8, 16, 32, 16]);
    }

    #[test]
    fn only_a_proof_is_clean() {
        assert_eq!(said(r#"{"result":"race_free"}"#), Said::Clean);
        assert_eq!(said(r#"{"result":"potential_race"}"#), Said::Wrong("potential_race".into()));
        assert_eq!(said(r#"{"result":"unsupported","diagnostics":[{"code":"x"}]}"#), Said::Open("x".into()));
        assert_eq!(said("Traceback"), Said::Open("no answer".into()));
    }
}
