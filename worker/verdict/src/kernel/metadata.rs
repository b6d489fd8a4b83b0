//! Metadata of compilers beside a module: Triton writes `NAME.json` beside `NAME.ptx`.

use serde_json::Value;

/// Threads of a warp.
const WARP: u64 = 32;

/// The shape of a launch, as far as the metadata say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) block: Option<[u32; 3]>,
    pub(super) cluster: Option<[u32; 3]>,
}

impl Metadata {
    /// Reads the metadata of a compiler. What cannot be read says nothing.
    pub(super) fn of(text: &str) -> Self {
        let Ok(Value::Object(all)) = serde_json::from_str(text) else { return Metadata::default() };
        let Some(warps) = all.get("num_warps").and_then(Value::as_u64) else { return Metadata::default() };
        let threads = warps.checked_mul(WARP).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        let dims = all.get("cluster_dims").and_then(Value::as_array);
        let dims: Option<Vec<u32>> =
            dims.and_then(|d| d.iter().map(|n| u32::try_from(n.as_u64()?).ok()).collect());
        let cluster = dims.and_then(|d| <[u32; 3]>::try_from(d).ok()).filter(|d| d.iter().all(|n| *n > 0));
        Metadata { block: threads.map(|n| [n, 1, 1]), cluster }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triton_says_warps_and_clusters() {
        let text = r#"{"name":"k","num_warps":8,"num_ctas":2,"cluster_dims":[2,1,1],"shared":1024}"#;
        let all = Metadata { block: Some([256, 1, 1]), cluster: Some([2, 1, 1]) };
        assert_eq!(Metadata::of(text), all);
        for other in ["", "[]", "{}", r#"{"num_warps":-1}"#, r#"{"cluster_dims":[2,1,1]}"#] {
            assert_eq!(Metadata::of(other), Metadata::default(), "{other}");
        }
        assert_eq!(Metadata::of(r#"{"num_warps":4,"cluster_dims":[0,1]}"#).cluster, None);
    }
}
