//! Special registers (PTX ISA 9.2, chapter 10), a closed list.

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Special(u8);

/// Names without numbers in them; the position is the tag on disk.
const NAMES: [&str; 46] = [
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%clusterid.x",
    "%clusterid.y",
    "%clusterid.z",
    "%nclusterid.x",
    "%nclusterid.y",
    "%nclusterid.z",
    "%cluster_ctaid.x",
    "%cluster_ctaid.y",
    "%cluster_ctaid.z",
    "%cluster_nctaid.x",
    "%cluster_nctaid.y",
    "%cluster_nctaid.z",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%lanemask_eq",
    "%lanemask_lt",
    "%lanemask_le",
    "%lanemask_gt",
    "%lanemask_ge",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%aggr_smem_size",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%smid",
    "%nsmid",
    "%gridid",
];

/// Names added since; the position behind `NAMES` is the tag on disk.
const FURTHER: [&str; 7] = [
    "%is_explicit_cluster",
    "%current_graph_exec",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
];

/// `%envreg0` to `%envreg31` have the tags from here on.
const ENVREG: u8 = 100;
/// `%pm0` to `%pm7`, and behind them `%pm0_64` to `%pm7_64`.
const PM: u8 = 140;

impl Special {
    /// The register of a name, `%` included.
    #[must_use]
    pub fn of(name: &str) -> Option<Special> {
        if !name.starts_with('%') {
            return None;
        }
        let named = NAMES.iter().chain(&FURTHER).position(|n| *n == name);
        named.and_then(|at| u8::try_from(at).ok()).or_else(|| numbered(name)).map(Special)
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> String {
        let at = usize::from(self.0);
        match self.0 {
            PM.. if self.0 >= PM + 8 => format!("%pm{}_64", self.0 - PM - 8),
            PM.. => format!("%pm{}", self.0 - PM),
            ENVREG.. => format!("%envreg{}", self.0 - ENVREG),
            _ => NAMES.iter().chain(&FURTHER).nth(at).map_or(String::new(), |n| (*n).to_owned()),
        }
    }

    /// Number on disk; never changes.
    #[must_use]
    pub fn tag(self) -> u8 {
        self.0
    }
}

fn numbered(name: &str) -> Option<u8> {
    let below = |text: &str, most: u8| text.parse::<u8>().ok().filter(|n| *n < most);
    if let Some(number) = name.strip_prefix("%envreg") {
        return below(number, 32).map(|n| ENVREG + n);
    }
    let number = name.strip_prefix("%pm")?;
    match number.strip_suffix("_64") {
        Some(number) => below(number, 8).map(|n| PM + 8 + n),
        None => below(number, 8).map(|n| PM + n),
    }
}
