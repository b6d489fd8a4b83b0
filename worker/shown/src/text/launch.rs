//! The launch that a verdict is about, and how much of the kernel it runs.

use super::findings::joined;
use moire_verdict::kernel::{AnyData, Covered, Launched, Looped, Shared, Statement, Taken, Uncovered};

/// Most lines of one kind; JSON has all.
const LISTED: usize = 12;
/// Behind what only another launch reaches.
const BUT: &str = " but by another launch that is clean";

/// The launch, and what is taken for granted.
pub fn text(launch: &Launched, taken: &[Taken]) -> String {
    let mut out = launched("launch of", launch);
    out.extend(launch.then.iter().map(|then| launched(&format!("grid {} is", then.number), then)));
    if launch.assumed {
        out += &format!("    repeat with: {}\n", launch.command);
    }
    let one = if launch.cluster.is_some() { "one cluster" } else { "one tile block" };
    out.extend(launch.alone.iter().map(|why| format!("    {one} only: {why}\n")));
    out.extend(launch.all().map(assumed));
    for other in launch.smaller.iter().chain(&launch.more) {
        out += &format!("    {}: {}\n", other.verdicts.line(), other.command);
    }
    let loops =
        launch.all().filter_map(|l| l.coverage.as_ref()).flat_map(|c| &c.loops).filter(|l| l.counts());
    let loops: Vec<String> = loops.map(trips).collect();
    if !loops.is_empty() {
        out += &format!("    trip counts: {}\n", brief(&loops));
    }
    out.extend(launch.every.iter().map(|every| format!("    {}\n", every.text())));
    out.extend(launch.parts.iter().filter(|p| p.len() > 1).map(|p| alike(p)));
    out.extend(launch.any_data.iter().map(any_data));
    out.extend(taken.iter().take(LISTED).map(|taken| format!("    {}\n", granted(taken))));
    let more = taken.len().saturating_sub(LISTED);
    if more > 0 {
        out += &format!("    taken for granted: {more} more, see --format json\n");
    }
    out
}

/// A launch with its sizes and parameters.
fn launched(head: &str, launch: &Launched) -> String {
    let mut words = vec![format!("grid {}", launch.grid.text())];
    words.extend(launch.cluster.iter().map(|s| format!("cluster {}", s.text())));
    words.extend(launch.block.iter().map(|s| format!("block {}", s.text())));
    words.extend(launch.params.iter().map(|p| p.text()));
    let same = |s: &Shared| format!("parameter {} is parameter {} of grid {}", s.index, s.of, s.grid);
    words.extend(launch.same.iter().map(same));
    format!("  {head} {}: {}\n", launch.entry, words.join(", "))
}

/// Which values of parameters are assumed, and what they decide.
fn assumed(launch: &Launched) -> String {
    let mut out = String::new();
    for param in launch.params.iter().filter(|p| p.origin.is_assumed()) {
        let of = if launch.number > 0 { format!("{}:", launch.number) } else { String::new() };
        let what = param.what().replace("parameter ", &format!("parameter {of}"));
        let says = |decides| format!("    assumed: {what} = {}, which decides {decides}\n", param.value);
        out.extend(param.decides.iter().map(says));
    }
    out
}

/// What happens for data that nobody knows.
fn any_data(any: &AnyData) -> String {
    match any.possible.as_slice() {
        [] => format!("    for any data: {}; both ways are explored\n", any.why),
        all => format!(
            "    could happen, if data decides so: {}; both ways are explored, also those to which no data leads\n",
            all.join(", ")
        ),
    }
}

/// What bounds the answer, in a sentence with the line of the first.
pub fn uncovered(covered: &Covered) -> Option<(String, u32)> {
    let line = covered.uncovered.first()?.line;
    let all: Vec<String> = covered.uncovered.iter().map(missing).collect();
    Some((
        format!("{} places are not covered by the launches that were judged: {}", all.len(), brief(&all)),
        line,
    ))
}

/// `bar.sync (line 12) never runs, it does with --grid 3`
fn missing(missing: &Uncovered) -> String {
    let Uncovered { line, text, misses, options } = missing;
    let options = options.as_ref().map_or(String::new(), |o| format!(", it does with {o}"));
    format!("{text} (line {line}) {misses}{options}")
}

/// What of the kernel the launch does not run.
pub(super) fn covered(launch: &Launched) -> String {
    let Some(covered) = &launch.coverage else { return String::new() };
    let grid = if launch.number > 0 { format!(" of grid {}", launch.number) } else { String::new() };
    let classes = [
        ("synchronising instructions", &covered.synchronising),
        ("stores", &covered.stores),
        ("branches", &covered.branches),
    ];
    let there = classes.iter().filter(|(_, class)| class.all > 0);
    let counts: Vec<String> =
        there.map(|(plural, class)| format!("{} of {} {plural}", class.reached, class.all)).collect();
    if counts.is_empty() {
        return String::new();
    }
    let of = covered.of.as_ref().map_or(String::new(), |command| format!(" by {command}"));
    let mut out = format!("  coverage{grid}: {} reached{of}\n", counts.join(", "));
    for one in covered.uncovered.iter().take(LISTED) {
        out += &format!("    not covered: {}\n", missing(one));
    }
    for (n, (plural, class)) in classes.iter().enumerate().filter(|(_, c)| !c.1.missed.is_empty()) {
        let missed: Vec<String> = class.missed.iter().map(statement).collect();
        let but = if n == 0 && covered.uncovered.is_empty() { BUT } else { "" };
        out += &format!("    {plural} never reached{but}: {}\n", brief(&missed));
    }
    let once = covered.loops.iter().filter(|l| l.counts() && l.passes[1] < 2);
    let once: Vec<String> = once.map(|l| format!("lines {} to {}", l.first, l.last)).collect();
    if !once.is_empty() {
        out += &format!("    loops around synchronisation that no warp runs twice: {}\n", brief(&once));
    }
    if covered.awaited > 0 && covered.wrapped == 0 {
        out += "    no ring wraps: no mbarrier is waited for in a second phase\n";
    }
    out
}

/// `bar.sync (line 12)`
fn statement(statement: &Statement) -> String {
    format!("{} (line {})", statement.text, statement.line)
}

/// `lines 12 to 30: 2`, `lines 12 to 30: 0 to 3`
fn trips(l: &Looped) -> String {
    let [fewest, most] = l.passes;
    let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let always = if l.steady { " in every launch" } else { "" };
    format!("lines {} to {}: {count}{always}", l.first, l.last)
}

/// Clusters that are explored as one.
fn alike(clusters: &[Vec<u32>]) -> String {
    let all: Vec<String> = clusters.iter().map(|c| joined(c, "+")).collect();
    format!(
        "    clusters {} touch nothing in common and run the same program: it is explored once\n",
        brief(&all)
    )
}

/// The first few, and how many more.
fn brief(all: &[String]) -> String {
    let more = all.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    all[..all.len().min(LISTED)].join(", ") + &more
}

/// Something that is taken for granted, with its line where it has one.
pub(super) fn granted(Taken { line, text }: &Taken) -> String {
    let named = *line == 0 || text.starts_with(&format!("line {line} "));
    let place = if named { String::new() } else { format!("line {line}: ") };
    format!("taken for granted: {place}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_end_with_their_number() {
        let many: Vec<String> = (0..15).map(|n| n.to_string()).collect();
        assert!(brief(&many).ends_with("11 and 3 more"));
    }
}
