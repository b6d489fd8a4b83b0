//! Words of asynchronous copies.

use crate::kind::On::{From as Sm, Only};

words! {
    /// `.global`, which must stand.
    GlobalWord { Global = 1 "global"; }
    /// Levels of a small copy.
    SmallLevel { Ca = 0 "ca"; Cg = 1 "cg"; }
    /// How a bulk copy tells that it is complete.
    Completion { Mbarrier = 0 "mbarrier::complete_tx::bytes"; Group = 1 "bulk_group"; }
    /// What an mbarrier reports of a copy.
    Report {
        Disabled = 0 "mbarrier::report::disabled" @ (94, Only(&[107]));
        Per16x8 = 1 "mbarrier::report::validity::per_16bytes::8" @ (94, Only(&[107]));
        Per16x80 = 2 "mbarrier::report::validity::per_16bytes::80" @ (94, Only(&[107]));
        Per16x8000 = 3 "mbarrier::report::validity::per_16bytes::8000" @ (94, Only(&[107]));
        Per16x80000000 = 4 "mbarrier::report::validity::per_16bytes::80000000" @ (94, Only(&[107]));
        PerElement = 5 "mbarrier::report::validity::per_element::ff" @ (94, Only(&[107]));
    }
    /// Dimensions of a tensor.
    Dims { D1 = 1 "1d"; D2 = 2 "2d"; D3 = 3 "3d"; D4 = 4 "4d"; D5 = 5 "5d"; }
    /// How coordinates select.
    Mode default Tile {
        Tile = 0 "tile"; Gather4 = 1 "tile::gather4" @ (86, Sm(100));
        Scatter4 = 2 "tile::scatter4" @ (86, Only(&[100, 103, 107, 110]));
        Im2col = 3 "im2col"; Im2colW = 4 "im2col::w" @ (86, Sm(100));
        Im2colW128 = 5 "im2col::w::128" @ (86, Only(&[100, 103, 107, 110]));
        NoOffsets = 6 "im2col_no_offs"; NoOffsetsW = 7 "im2col_no_offs::w" @ (94, Only(&[107]));
    }
    /// What of the map the instruction says anew, besides the address.
    Override {
        Dim = 0 "override::global_dim" @ (94, Only(&[107]));
        DimStride = 1 "override::global_dim_stride" @ (94, Only(&[107]));
    }
    /// What a wait for bulk groups is about.
    WaitFor default All {
        All = 0 => Read;
        Read = 1 "read";
        Cta = 2 "sync_restrict::shared::cta" @ (86, Sm(90));
        Cluster = 3 "sync_restrict::shared::cluster" @ (86, Sm(90));
        Async = 4 "sync_restrict::proxy::async" @ (95, Sm(90));
    }
}

flags! {
    NewAddress = "override::global_address" @ (94, Only(&[107]));
    CpMask = "cp_mask" @ (86, Sm(100));
    IgnoreOob = "ignore_oob" @ (92, Sm(90));
    B128 = "b128" @ (93, Sm(90));
    EvictLast = "L2::evict_last" @ (93, Only(&[107]));
}
