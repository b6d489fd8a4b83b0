//! The cost of a process besides time: memory as the kernel counts it, and instructions as callgrind counts them.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

/// Reads a value of `/proc/self/status`, such as `VmRSS` or `VmHWM`, in MiB; `None` if there is no such file.
pub(super) fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(name))?;
    line.trim_start_matches(':').trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kb| kb >> 10)
}

/// Formats the same value as text; `-` if there is none.
pub(super) fn mib(name: &str) -> String {
    memory(name).map_or_else(|| "-".to_owned(), |m| m.to_string())
}

/// Processor time of this process, and of its children that have ended, in seconds: fields 14 to 17 of `/proc/self/stat`, in
/// hundredths (`USER_HZ`).
pub(super) fn processor_time() -> Result<(f64, f64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read the processor time")?;
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
    let ticks = |n: usize| rest.as_ref()?.get(n)?.parse::<u32>().ok();
    let of = |n: usize| f64::from(ticks(n).unwrap_or(0) + ticks(n + 1).unwrap_or(0)) / 100.0;
    Ok((of(11), of(13)))
}

/// Resets the kernel's peak of memory. If that fails, the peak is that of the process so far.
pub(super) fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Counts the instructions of `moire ARGS` from start to end. The count does not depend on the load of the machine.
pub(super) fn instructions(args: &[&str]) -> Result<u64> {
    let exe = std::env::current_exe().context("cannot find this program")?;
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(exe)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .context(
            "cannot start valgrind, which counts instructions; install it or leave out --instructions",
        )?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let counted = said.lines().find_map(|l| l.split_once("Collected :")?.1.trim().parse().ok());
    match counted.filter(|_| ran.status.success()) {
        Some(count) => Ok(count),
        None => bail!("valgrind counted nothing for `moire {}`:\n{}", args.join(" "), said.trim_end()),
    }
}
