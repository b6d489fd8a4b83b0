//! Orders, scopes, fences and proxies.

use crate::kind::On::{Any, From as Sm};
use crate::slot::Scoped;

words! {
    /// Threads that an operation reaches.
    Scope {
        Cta = 0 "cta";
        Cluster = 1 "cluster" @ (80, Sm(90)) => Cta;
        Gpu = 2 "gpu" => Cluster;
        Sys = 3 "sys" => Gpu;
    }
    /// Order of `ld`.
    LoadOrder default Weak {
        Weak = 0 "weak";
        Relaxed = 1 "relaxed" => Weak;
        Acquire = 2 "acquire" => Relaxed;
        Volatile = 3 "volatile" => Weak;
    }
    /// Order of `st`.
    StoreOrder default Weak {
        Weak = 0 "weak";
        Relaxed = 1 "relaxed" => Weak;
        Release = 2 "release" => Relaxed;
        Volatile = 3 "volatile" => Weak;
    }
    /// Order of `atom`.
    AtomOrder default Relaxed {
        Relaxed = 0 "relaxed";
        Acquire = 1 "acquire" => Relaxed;
        Release = 2 "release" => Relaxed;
        AcqRel = 3 "acq_rel" => Acquire Release;
    }
    /// Order of `red`.
    RedOrder default Relaxed { Relaxed = 0 "relaxed"; Release = 1 "release" => Relaxed; }
    /// Order of `fence`.
    FenceOrder default AcqRel {
        Acquire = 0 "acquire" @ (86, Sm(90));
        Release = 1 "release" @ (86, Sm(90));
        AcqRel = 2 "acq_rel" => Acquire Release;
        Sc = 3 "sc" => AcqRel;
    }
    /// Order of `fence.proxy`.
    ProxyOrder {
        Acquire = 0 "acquire";
        Release = 1 "release";
        AcqRel = 2 "acq_rel" => Acquire Release;
    }
    /// Order of an arrival.
    ArriveOrder default Release {
        Relaxed = 0 "relaxed" @ (80, Sm(90)); Release = 1 "release" @ (80, Any) => Relaxed;
    }
    /// Order of a wait.
    WaitOrder default Acquire {
        Relaxed = 0 "relaxed" @ (80, Sm(90)); Acquire = 1 "acquire" @ (80, Any) => Relaxed;
    }
    /// Order of a transaction count.
    CountOrder default Relaxed { Relaxed = 0 "relaxed"; }
    /// Order of an asynchronous copy.
    CopyOrder default Weak { Weak = 0 "weak" @ (93, Sm(90)); Relaxed = 1 "relaxed" @ (93, Sm(90)); }
    /// Order of an asynchronous reduction.
    ReduceOrder default Weak { Weak = 0; Relaxed = 1 "relaxed" @ (93, Sm(90)); }
    /// What a fence is restricted to.
    Restrict {
        Cta = 0 "sync_restrict::shared::cta" @ (86, Sm(90));
        Cluster = 1 "sync_restrict::shared::cluster" @ (86, Sm(90));
        ClusterRead = 2 "sync_restrict::shared::cluster::read" @ (94, Sm(90));
    }
    /// Proxies that a fence connects.
    ProxyPair {
        Async = 0 "async" @ (80, Sm(90));
        AsyncGeneric = 1 "async::generic" @ (83, Sm(90));
        TensormapGeneric = 2 "tensormap::generic" @ (83, Sm(90));
        FabricFabric = 3 "fabric::fabric" @ (93, Sm(100));
        FabricGeneric = 4 "fabric::generic" @ (93, Sm(100));
        GenericFabric = 5 "generic::fabric" @ (93, Sm(100));
    }
    /// Where a fence of the async proxy holds.
    ProxySpace { Global = 0 "global"; SharedCta = 1 "shared::cta"; SharedCluster = 2 "shared::cluster"; }
    /// The old fence.
    MembarLevel { Cta = 0 "cta"; Gl = 1 "gl" => Cta; Sys = 2 "sys" => Gl; }
    /// Proxies of the old fence.
    MembarProxy { Alias = 0 "alias"; Async = 1 "async" @ (80, Sm(90)); }
    /// Order of `barrier.cluster.arrive`.
    ClusterArriveOrder default Release { Relaxed = 0 "relaxed"; Release = 1 "release" => Relaxed; }
    /// Order of `barrier.cluster.wait`.
    ClusterWaitOrder default Acquire { Acquire = 0 "acquire"; }
    /// Reads of aliases.
    AliasRead { Read = 0 "sync_restrict::read"; }
}

impl Scoped for LoadOrder {
    const LOOSE: &'static [Self] = &[LoadOrder::Weak, LoadOrder::Volatile];
}
impl Scoped for StoreOrder {
    const LOOSE: &'static [Self] = &[StoreOrder::Weak, StoreOrder::Volatile];
}
impl Scoped for CopyOrder {
    const LOOSE: &'static [Self] = &[CopyOrder::Weak];
}
impl Scoped for ReduceOrder {
    const LOOSE: &'static [Self] = &[ReduceOrder::Weak];
}

flags! {
    Readonly = "proxy::readonly" @ (94, Sm(90));
    Alias = "alias";
}
