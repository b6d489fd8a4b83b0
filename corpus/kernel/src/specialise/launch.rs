//! The shape of a launch: its checks, and its warps.

use super::actual::Actual;
use super::assumed::Assumed;
use super::need::Need;
use super::stream::Queued;
use super::touch::{CTA_BITS, Mem};
use super::word::Word;
use crate::Refusal;
use crate::ptx::Kernel;
use moire_program::limits::THREADS;
use std::collections::BTreeMap;

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// CTAs along each axis.
    pub grid: [u32; 3],
    /// Threads of a CTA along each axis.
    pub block: [u32; 3],
    /// CTAs of a cluster along each axis.
    pub cluster: [u32; 3],
    /// The values of parameters, by position.
    pub params: BTreeMap<u16, u64>,
    /// The values of fields of parameters that are structures, by position and first byte.
    pub fields: BTreeMap<(u16, u32), u64>,
    /// The numbers of words of global memory that decide something, if they are numbers of the launch and no data.
    pub words: Option<BTreeMap<Word, u64>>,
    /// What is known of the parameters of a launch that happened. Values in `params` and `fields` come before it.
    pub actual: Actual,
    /// What is assumed of parameters. Those that have no value get one for which it holds.
    pub assumed: Vec<Assumed>,
    /// Without the readings of practice ([`super::Practice`]).
    pub letter: bool,
    /// Its place among several launches on one stream, which [`super::lower_queue`] gives it.
    pub queued: Queued,
}

/// Whether a parameter is a structure.
fn is_field(kernel: &Kernel, index: u16) -> bool {
    kernel.params.get(usize::from(index)).is_some_and(|p| p.array)
}

impl Launch {
    /// Makes a launch of the given shape. The directives of the kernel give a missing block or cluster; a missing grid is one
    /// cluster.
    ///
    /// # Errors
    /// The shape does not fit the kernel, or has too many warps.
    pub fn of(
        kernel: &Kernel,
        grid: Option<[u32; 3]>,
        block: Option<[u32; 3]>,
        cluster: Option<[u32; 3]>,
        params: BTreeMap<u16, u64>,
    ) -> Result<Launch, Refusal> {
        let cluster = cluster.or(kernel.cluster).unwrap_or([1; 3]);
        let launch = Launch {
            grid: grid.unwrap_or(cluster),
            block: block.or(kernel.threads).or(kernel.most_threads).ok_or_else(|| {
                Refusal::Launch("the kernel does not say how many threads a CTA has; give --block".into())
            })?,
            cluster,
            params,
            fields: BTreeMap::new(),
            words: None,
            actual: Actual::default(),
            assumed: Vec::new(),
            letter: false,
            queued: Queued::default(),
        };
        launch.fits(kernel)?;
        Ok(launch)
    }

    /// The launch with another value of a parameter, or of the field of one that starts at this byte.
    #[must_use]
    pub fn with(&self, kernel: &Kernel, (index, at): (u16, u32), value: u64) -> Launch {
        let mut out = self.clone();
        match is_field(kernel, index) {
            true => out.fields.insert((index, at), value),
            false => out.params.insert(index, value),
        };
        out
    }

    /// The memory that the accesses of this launch to one touch.
    pub(super) fn memory(&self, mem: Mem) -> Mem {
        match self.actual.memory(mem) {
            Mem::Param(n) => Mem::Param(self.queued.memory(n)),
            Mem::Variable(n) => Mem::Variable(self.queued.variable(n)),
            other => other,
        }
    }

    /// The value of a parameter, or of the field of one that starts at this byte.
    pub fn value(&self, kernel: &Kernel, (index, at): (u16, u32)) -> Option<u64> {
        let field = || self.fields.get(&(index, at));
        (if is_field(kernel, index) { field() } else { self.params.get(&index) }).copied()
    }

    /// The launch with another value of what is needed.
    #[must_use]
    pub fn given(&self, kernel: &Kernel, need: &Need, value: u64) -> Launch {
        if !need.behind {
            return self.with(kernel, (need.index, need.at), value);
        }
        let mut out = self.clone();
        let word = Word { pointer: (need.index, need.at), at: None };
        out.words.get_or_insert_default().insert(word, value);
        out
    }

    /// The value of what is needed.
    pub fn found(&self, kernel: &Kernel, need: &Need) -> Option<u64> {
        let word = Word { pointer: (need.index, need.at), at: None };
        match need.behind {
            true => self.words.as_ref()?.get(&word).copied(),
            false => self.value(kernel, (need.index, need.at)),
        }
    }

    pub(super) fn fits(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let refuse = |text: String| Err(Refusal::Launch(text));
        let shape = |s: [u32; 3]| format!("{},{},{}", s[0], s[1], s[2]);
        if self.grid.iter().chain(&self.block).chain(&self.cluster).any(|n| *n == 0) {
            return refuse("sizes of a launch are at least 1".into());
        }
        for (what, wanted, given) in
            [("block", kernel.threads, self.block), ("cluster", kernel.cluster, self.cluster)]
        {
            if let Some(wanted) = wanted.filter(|w| *w != given) {
                return refuse(format!(
                    "the kernel asks for --{what} {}, not {}",
                    shape(wanted),
                    shape(given)
                ));
            }
        }
        let count = |s: [u32; 3]| s.iter().map(|n| u64::from(*n)).product::<u64>();
        if kernel.most_threads.is_some_and(|most| count(self.block) > count(most)) || count(self.block) > 1024
        {
            return refuse(format!("a CTA of {} threads is more than the kernel allows", count(self.block)));
        }
        if self.grid.iter().zip(&self.cluster).any(|(g, c)| g % c != 0) {
            return refuse(format!(
                "a grid of {} has no whole clusters of {}",
                shape(self.grid),
                shape(self.cluster)
            ));
        }
        let warps = count(self.grid).saturating_mul(count(self.block).div_ceil(32));
        if warps > THREADS as u64 {
            return refuse(format!("{warps} warps are more than {THREADS}; choose a smaller grid"));
        }
        let words = || self.words.iter().flat_map(|words| words.keys().map(|w| w.pointer));
        let fields = || self.fields.keys().copied().chain(words());
        let mut indices = self.params.keys().copied().chain(fields().map(|f| f.0));
        if let Some(index) = indices.find(|i| usize::from(*i) >= kernel.params.len()) {
            return refuse(format!("there is no parameter {index}; the kernel has {}", kernel.params.len()));
        }
        let outside = |f: &(u16, u32)| kernel.params[usize::from(f.0)].bytes <= f.1;
        if let Some((index, at)) = fields().find(outside) {
            return refuse(format!("parameter {index} has no byte {at}"));
        }
        self.as_assumed(kernel)
    }

    /// Whether CTAs have one axis.
    pub(super) fn is_flat(&self) -> bool {
        self.block[1] == 1 && self.block[2] == 1
    }

    /// All warps, in the order of CTAs.
    pub(super) fn warps(&self) -> Vec<Here> {
        let [gx, gy, gz] = self.grid;
        let mut out = Vec::new();
        let threads: u32 = self.block.iter().product();
        for (z, y, x) in (0..gz).flat_map(|z| (0..gy).flat_map(move |y| (0..gx).map(move |x| (z, y, x)))) {
            for warp in 0..threads.div_ceil(32) {
                let lanes = (threads - 32 * warp).min(32);
                out.push(Here::new(self, [x, y, z], warp, lanes));
            }
        }
        out
    }
}

/// The place of a warp in its launch.
#[derive(Clone, Debug)]
pub(super) struct Here {
    pub(super) ctaid: [u32; 3],
    /// The number of the grid on its stream.
    pub(super) grid: u32,
    /// The number of the CTA in the grid, behind that of the grid (`CTA_BITS`).
    pub(super) cta: u32,
    /// The number of the cluster in the grid.
    pub(super) cluster: u32,
    /// The rank of the CTA in its cluster.
    pub(super) rank: u32,
    pub(super) warp: u32,
    /// The mask of the existing lanes.
    pub(super) lanes: u32,
    /// The CTAs of the cluster, by rank, numbered likewise.
    pub(super) peers: Vec<u32>,
}

impl Here {
    pub(super) fn new(launch: &Launch, ctaid: [u32; 3], warp: u32, count: u32) -> Self {
        let flat = |p: [u32; 3], of: [u32; 3]| p[0] + of[0] * (p[1] + of[1] * p[2]);
        let grid = launch.queued.grid;
        let c = launch.cluster;
        let in_cluster = [ctaid[0] % c[0], ctaid[1] % c[1], ctaid[2] % c[2]];
        let clusters = [launch.grid[0] / c[0], launch.grid[1] / c[1], launch.grid[2] / c[2]];
        let home = [ctaid[0] / c[0], ctaid[1] / c[1], ctaid[2] / c[2]];
        let size = c.iter().product();
        let peers = (0..size).map(|r| {
            let at = [r % c[0], r / c[0] % c[1], r / c[0] / c[1]];
            let at = [home[0] * c[0] + at[0], home[1] * c[1] + at[1], home[2] * c[2] + at[2]];
            grid << CTA_BITS | flat(at, launch.grid)
        });
        Here {
            ctaid,
            grid,
            cta: grid << CTA_BITS | flat(ctaid, launch.grid),
            cluster: flat(home, clusters),
            rank: flat(in_cluster, c),
            warp,
            lanes: if count >= 32 { u32::MAX } else { (1 << count) - 1 },
            peers: peers.collect(),
        }
    }

    /// The number of the CTA in its grid.
    pub(super) fn in_grid(&self) -> u32 {
        self.cta & ((1 << CTA_BITS) - 1)
    }

    /// The number of the cluster, behind that of its grid.
    pub(super) fn unit(&self) -> u32 {
        self.grid << CTA_BITS | self.cluster
    }
}
