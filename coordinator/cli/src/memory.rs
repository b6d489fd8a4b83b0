//! Memory that this process may use, and what there is.

use std::fs::read_to_string;

/// Least memory of a lease, in bytes.
pub(crate) const LEAST: u64 = 256 << 20;
/// What is assumed where the system says nothing.
const UNKNOWN: u64 = 4 << 30;

/// Three quarters of the memory of this control group or machine, in bytes.
pub(crate) fn default() -> u64 {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = files.iter().filter_map(|file| read_to_string(file).ok()?.trim().parse::<u64>().ok());
    group.chain(machine).min().unwrap_or(UNKNOWN) / 4 * 3
}

/// The memory that `/proc/meminfo` names, in bytes.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Limits the data of this process to so many bytes: an allocation beyond them fails.
///
/// # Errors
/// The system refuses.
#[cfg(unix)]
pub(crate) fn limit(bytes: u64) -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Data).maximum;
    let current = Some(most.map_or(bytes, |most| most.min(bytes)));
    // A core dump of a process that ran out of memory is of no use.
    let core = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
    setrlimit(Resource::Core, core)?;
    Ok(setrlimit(Resource::Data, Rlimit { current, maximum: most })?)
}

/// There is no such limit.
#[cfg(not(unix))]
pub(crate) fn limit(_bytes: u64) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_machine_is_read() {
        assert_eq!(total("MemTotal:       16301272 kB\nMemFree: 1 kB\n"), Some(16_301_272 << 10));
        assert_eq!(total("MemFree: 1 kB"), None);
        assert!(default() > LEAST);
    }
}
