//! Words of caches and policies.

use crate::kind::On::{Any, From as Sm};

words! {
    /// Where a line is brought.
    PrefetchTo {
        L1 = 0 "L1"; L2 = 1 "L2"; EvictLast = 2 "L2::evict_last" @ (74, Any);
        EvictNormal = 3 "L2::evict_normal" @ (74, Any);
        Tensormap = 4 "tensormap" @ (80, Sm(90)); L1b32 = 5 "L1::32B" @ (94, Sm(90));
    }
    /// Space of a prefetch.
    PrefetchSpace default Generic {
        Generic = 0; Global = 1 "global"; Local = 4 "local"; Const = 5 "const" @ (80, Sm(90));
        Param = 6 "param" @ (80, Sm(90));
    }
    /// Space that may be global.
    GlobalSpace default Generic { Generic = 0; Global = 1 "global"; }
    /// Priority of a fraction of accesses.
    Primary {
        Last = 0 "L2::evict_last"; Normal = 1 "L2::evict_normal"; First = 2 "L2::evict_first";
        Unchanged = 3 "L2::evict_unchanged";
    }
    /// Priority of the others.
    Secondary default Usual { Usual = 0; First = 1 "L2::evict_first"; Unchanged = 2 "L2::evict_unchanged"; }
}

flags! {
    ValidAddr = "valid_addr";
}
