//! The readings of the PTX ISA under which a program runs: the switches of the model that the transitions can see.
//!
//! The names are those of the model `ptx` (`Q..`: chapter 8; `TQ..`: tcgen05 and copies). A value that no transition
//! implements is refused by name, so that the caller abstains.

/// Which accumulators of two products are the same (TQ2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulator {
    /// Same address, rows and columns.
    Shape,
    /// Same address.
    Base,
    /// A common cell.
    Cell,
}

/// What a pipelined pair of instructions orders (TQ3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// All accesses, and what follows from that.
    All,
    /// The accesses to the same cells, and nothing follows.
    SameCells,
    /// Nothing.
    Nothing,
}

/// Whether `dealloc` and `relinquish` of a pair wait for the other CTA (TQ18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairRelease {
    /// Both are possible.
    Either,
    /// They do not.
    Alone,
    /// They do.
    Together,
}

/// The readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// TQ1: products of different kinds pipeline.
    pub any_kind_pipelines: bool,
    /// TQ2
    pub accumulator: Accumulator,
    /// TQ3
    pub pipeline: Pipeline,
    /// TQ5: a wait is published without `fence::before_thread_sync`.
    pub bare_waits: bool,
    /// TQ6: allocator instructions need `fence::after_thread_sync`.
    pub fenced_allocator: bool,
    /// TQ7: release and acquire order completed operations.
    pub released: bool,
    /// TQ8: a commit is asynchronous.
    pub asynchronous_commit: bool,
    /// TQ9: a commit publishes its tracked operations only.
    pub bare_commit: bool,
    /// TQ10: the fence in a commit covers waits.
    pub commit_covers_waits: bool,
    /// TQ11: the instructions of one thread execute first in first out.
    pub first_out: bool,
    /// TQ12: loads and stores of a warp to the same cells are in order.
    pub moves_in_order: bool,
    /// TQ14: `bar.warp.sync` does not order execution.
    pub unordered_warp_barrier: bool,
    /// TQ15: order of execution ignores scopes.
    pub any_scope: bool,
    /// TQ16: a generic write after a tensor-core read needs a proxy fence.
    pub fenced_products: bool,
    /// TQ17: the proxy fence for an operand stands in the CTA of the instruction.
    pub fence_at_instruction: bool,
    /// TQ18
    pub pair_release: PairRelease,
    /// TQ19: instructions pipeline only in one CTA.
    pub near_pipelines: bool,
    /// TQ21: lanes that a mask leaves out are written.
    pub masked_written: bool,
    /// TQ26: allocator instructions wait for earlier ones of their thread.
    pub allocator_waits: bool,
    /// TQ27: an asynchronous arrival needs a fence after the init.
    pub fenced_init: bool,
    /// TQ28: an arrival behind `fence::before_thread_sync` waits for the products before.
    pub arrival_waits: bool,
    /// TQ29: other CTAs need not have started.
    pub unstarted: bool,
    /// TQ30: a load is complete once its registers have been read.
    pub complete_by_use: bool,
    /// TQ31: the completion of a copy orders what precedes its issue.
    pub cumulative_copies: bool,
    /// TQ32: a copy may overwrite the word of an allocation in plain order.
    pub slot_in_order: bool,
    /// TQ33: commits of one thread arrive in program order.
    pub commits_in_order: bool,
    /// Q3: `bar.warp.sync` does not synchronise.
    pub bare_warp_barrier: bool,
    /// WL: what a wait has completed is ordered by a rendezvous of lanes.
    pub lanes_complete: bool,
    /// EX: `bar.warp.sync` does not wait for lanes that have exited.
    pub exited_skipped: bool,
    /// RV: a rendezvous of lanes orders the life of an mbarrier.
    pub lanes_order_life: bool,
    /// XC: copies and products may outlive the CTA whose memory they work on.
    pub copies_outlive: bool,
    /// XM: asynchronous arrivals may outlive the CTA whose mbarrier they are at.
    pub arrivals_outlive: bool,
    /// Q4: an asynchronous event stands where it was issued.
    pub stands_at_issue: bool,
    /// Q5: a relaxed cluster barrier synchronises.
    pub relaxed_cluster_synchronises: bool,
    /// Q11: a copy over what was read through the generic proxy needs no fence (B and C; the engine sees no other proxies).
    pub free_write_after_read: bool,
}

impl Settings {
    /// The documents as written.
    pub fn letter() -> Self {
        Settings {
            any_kind_pipelines: false,
            accumulator: Accumulator::Shape,
            pipeline: Pipeline::All,
            bare_waits: false,
            fenced_allocator: false,
            released: false,
            asynchronous_commit: false,
            bare_commit: false,
            commit_covers_waits: false,
            first_out: false,
            moves_in_order: false,
            unordered_warp_barrier: false,
            any_scope: false,
            fenced_products: false,
            fence_at_instruction: false,
            pair_release: PairRelease::Either,
            near_pipelines: false,
            masked_written: false,
            allocator_waits: false,
            fenced_init: false,
            arrival_waits: false,
            unstarted: false,
            complete_by_use: false,
            cumulative_copies: false,
            slot_in_order: false,
            commits_in_order: false,
            bare_warp_barrier: false,
            lanes_complete: false,
            exited_skipped: false,
            lanes_order_life: false,
            copies_outlive: false,
            arrivals_outlive: false,
            stands_at_issue: false,
            relaxed_cluster_synchronises: false,
            free_write_after_read: false,
        }
    }

    /// The readings under which shipped kernels are right.
    pub fn practice() -> Self {
        Settings {
            bare_waits: true,
            released: true,
            commit_covers_waits: true,
            first_out: true,
            any_scope: true,
            complete_by_use: true,
            slot_in_order: true,
            commits_in_order: true,
            lanes_complete: true,
            exited_skipped: true,
            lanes_order_life: true,
            arrivals_outlive: true,
            free_write_after_read: true,
            ..Settings::letter()
        }
    }

    /// The readings that a model has selected. `variant` gives the value of a switch by name, if the model has it.
    ///
    /// # Errors
    /// The switch and its value, if no transition implements it.
    pub fn of<'a>(variant: impl Fn(&str) -> Option<&'a str>) -> Result<Self, String> {
        // Values that the transitions do not implement.
        const REFUSED: &[(&str, &[&str])] = &[
            ("TQ4", &["B", "C"]),
            ("TQ17", &["C", "D"]),
            ("TQ22", &["B"]),
            ("TQ23", &["B"]),
            ("TQ24", &["B"]),
            ("Q4", &["C"]),
            ("Q6", &["B", "C", "D"]),
            ("Q8", &["A"]),
            ("Q9", &["A"]),
        ];
        for (name, values) in REFUSED {
            if let Some(value) = variant(name).filter(|v| values.contains(v)) {
                return Err(format!("{name}={value}"));
            }
        }
        let is = |name: &str, value: &str| variant(name) == Some(value);
        let b = |name: &str| is(name, "B");
        Ok(Settings {
            any_kind_pipelines: b("TQ1"),
            accumulator: match variant("TQ2") {
                Some("B") => Accumulator::Base,
                Some("C") => Accumulator::Cell,
                _ => Accumulator::Shape,
            },
            pipeline: match variant("TQ3") {
                Some("B") => Pipeline::SameCells,
                Some("C") => Pipeline::Nothing,
                _ => Pipeline::All,
            },
            bare_waits: b("TQ5"),
            fenced_allocator: b("TQ6"),
            released: b("TQ7"),
            asynchronous_commit: b("TQ8"),
            bare_commit: b("TQ9"),
            commit_covers_waits: b("TQ10"),
            first_out: b("TQ11"),
            moves_in_order: b("TQ12"),
            unordered_warp_barrier: b("TQ14"),
            any_scope: b("TQ15"),
            fenced_products: b("TQ16"),
            fence_at_instruction: b("TQ17"),
            pair_release: match variant("TQ18") {
                Some("B") => PairRelease::Alone,
                Some("C") => PairRelease::Together,
                _ => PairRelease::Either,
            },
            near_pipelines: b("TQ19"),
            masked_written: b("TQ21"),
            allocator_waits: b("TQ26"),
            fenced_init: b("TQ27"),
            arrival_waits: b("TQ28"),
            unstarted: b("TQ29"),
            complete_by_use: b("TQ30"),
            cumulative_copies: b("TQ31"),
            slot_in_order: b("TQ32"),
            commits_in_order: b("TQ33"),
            bare_warp_barrier: b("Q3"),
            lanes_complete: b("WL"),
            exited_skipped: b("EX"),
            lanes_order_life: b("RV"),
            copies_outlive: b("XC"),
            arrivals_outlive: b("XM"),
            stands_at_issue: is("Q4", "A"),
            relaxed_cluster_synchronises: b("Q5"),
            free_write_after_read: b("Q11") || is("Q11", "C"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_select_readings_and_others_are_refused_by_name() {
        let practice = ["TQ5", "TQ7", "TQ10", "TQ11", "TQ15", "TQ30", "TQ32", "TQ33", "WL", "EX", "RV", "XM"];
        let value = |name: &str| match name {
            "Q11" => Some("C"),
            _ => practice.contains(&name).then_some("B"),
        };
        assert_eq!(Settings::of(value), Ok(Settings::practice()));
        assert_eq!(Settings::of(|name| (name == "Q8").then_some("B")), Ok(Settings::letter()));
        assert_eq!(Settings::of(|name| (name == "TQ4").then_some("C")), Err("TQ4=C".to_owned()));
    }
}
