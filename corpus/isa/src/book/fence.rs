//! Fences.

use crate::entry::{refuse, since};
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;

instructions! {
    #[doc = "Orders the accesses of a thread."]
    Fence = "fence", section "membar-fence", since (70, Any);
    slots { keep order: FenceOrder; keep restrict: Option<Restrict>; keep scope: Scope; }
    operands {}
    rules {
        restrict.is_some() && scope != Scope::Cluster => refuse("a restricted fence has the scope .cluster");
        restrict == Some(Restrict::Cta) && order != FenceOrder::Release
            => refuse("`.sync_restrict::shared::cta` goes with .release");
        restrict == Some(Restrict::Cluster) && order != FenceOrder::Acquire
            => refuse("`.sync_restrict::shared::cluster` goes with .acquire");
        restrict == Some(Restrict::ClusterRead)
            => refuse("`.sync_restrict::shared::cluster::read` is for fences of proxies");
    }

    #[doc = "Orders accesses through aliases (9.5)."]
    FenceAlias = "fence.alias", section "membar-fence", since (95, Sm(90));
    slots { keep order: RedOrder; keep read: AliasRead; abstain scope: Scope; }
    operands {}
    rules {
        order != RedOrder::Release || scope != Scope::Sys
            => refuse("it is `fence.alias.release.sync_restrict::read.sys`");
    }

    #[doc = "Makes the initialisation of mbarriers visible in the cluster."]
    FenceInit = "fence.mbarrier_init", section "membar-fence", since (80, Sm(90));
    ends ["release", "cluster"]
    slots {} operands {} rules {}

    #[doc = "Orders accesses through different proxies or aliases."]
    FenceProxy = "fence.proxy", section "membar-fence", since (75, Any);
    slots {
        keep pair: Option<ProxyPair>;
        keep alias: Alias;
        keep space: Option<ProxySpace>;
        keep order: Option<ProxyOrder>;
        keep restrict: Option<Restrict>;
        keep scope: Option<Scope>;
    }
    operands {
        known addr: Option<Address> = (acquires_map(pair, order), Space::Generic);
        known bytes: Option<Number> = (acquires_map(pair, order), ());
    }
    rules {
        alias.is() != pair.is_none_or(fabric)
            => refuse("`.alias` stands alone or goes with the fabric proxy");
        space.is_some() && pair.is_none() => refuse("a space goes with two proxies");
        pair == Some(ProxyPair::Async) && order.is_some()
            => refuse("`.async` goes both ways and has no order");
        order.is_some() != scope.is_some() => refuse("an order goes with a scope, and a scope with an order");
        pair.is_some_and(|p| p != ProxyPair::Async) && order.is_none()
            => refuse("an order and a scope are needed");
        bytes.is_some_and(|n| n.0 != 128) => refuse("a tensor map has 128 bytes");
        pair.is_none() && (order == Some(ProxyOrder::AcqRel) || scope.is_some_and(|s| s != Scope::Sys))
            => refuse("it is .acquire.sys or .release.sys");
        pair.is_none() && order.is_some() => since(94, Sm(90));
        pair.is_some_and(fabric) && order != Some(ProxyOrder::AcqRel) && scope != Some(Scope::Sys)
            => refuse("one direction goes with .sys");
        pair == Some(ProxyPair::AsyncGeneric) && order == Some(ProxyOrder::Acquire)
            && !(restrict == Some(Restrict::Cluster) && scope == Some(Scope::Cluster))
            => refuse("it is .acquire.sync_restrict::shared::cluster.cluster");
        pair == Some(ProxyPair::AsyncGeneric) && order == Some(ProxyOrder::Release)
            && !matches!((restrict, scope), (Some(Restrict::Cta), Some(Scope::Cluster))
            | (Some(Restrict::ClusterRead), Some(Scope::Cta | Scope::Cluster)))
            => refuse("it is .release.sync_restrict::shared::cta.cluster");
        acquires_map(pair, order) && (restrict.is_some() || space.is_some())
            => refuse("an acquiring fence of a tensor map is not restricted");
    }

    #[doc = "The old fence."]
    Membar = "membar", section "membar-fence", since (70, Any);
    slots { keep level: MembarLevel; } operands {} rules {}

    #[doc = "The old fence of proxies."]
    MembarProxies = "membar.proxy", section "membar-fence", since (75, Any);
    slots { keep proxy: MembarProxy; } operands {} rules {}

}

fn fabric(pair: ProxyPair) -> bool {
    matches!(pair, ProxyPair::FabricFabric | ProxyPair::FabricGeneric | ProxyPair::GenericFabric)
}

/// The fence that makes a tensor map usable names it.
fn acquires_map(pair: Option<ProxyPair>, order: Option<ProxyOrder>) -> bool {
    pair == Some(ProxyPair::TensormapGeneric) && order == Some(ProxyOrder::Acquire)
}
