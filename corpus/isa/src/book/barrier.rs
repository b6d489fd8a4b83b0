//! Barriers of a CTA, of a warp, of a cluster; mbarriers.

use crate::entry::{refuse, since};
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;
use crate::slot::Pair;

instructions! {
    #[doc = "Makes an mbarrier."]
    MbarrierInit = "mbarrier.init", section "mbarrier-init", since (70, Any);
    ends ["b64"]
    slots { abstain layout: Option<Layout>; keep space: BarrierSpace; }
    operands { known addr: Address = space.into(); known count: Value = Width::Int(32); }
    rules {
        addr.strays(Space::SharedCta) => refuse("an mbarrier lies in shared memory");
        space == BarrierSpace::SharedCluster => refuse("an mbarrier is made in its own CTA");
        count.imm().is_some_and(|n| !(1..=0xf_ffff).contains(&n)) => refuse("the count is out of range");
    }

    #[doc = "Ends an mbarrier."]
    MbarrierInval = "mbarrier.inval", section "mbarrier-inval", since (70, Any);
    ends ["b64"]
    slots { keep space: BarrierSpace; }
    operands { known addr: Address = space.into(); }
    rules {
        addr.strays(Space::SharedCta)
            => refuse("an mbarrier lies in shared memory");
        space == BarrierSpace::SharedCluster => refuse("an mbarrier ends in its own CTA");
    }

    #[doc = "Arrives at an mbarrier."]
    MbarrierArrive = form: ArriveForm, section "mbarrier-arrive", since (70, Any);
    ends ["b64"]
    slots {
        keep no_complete: NoComplete;
        keep order: Pair<ArriveOrder>;
        keep space: BarrierSpace;
        abstain multicast: Option<Multicast>;
    }
    operands {
        write state: OrSink<Register> = Width::Int(64);
        known addr: Unified = space.into();
        known tx: Option<Value> = (form.tx(), Width::Int(32));
        known count: Maybe<Value> = (if form.tx() { usize::MAX } else { usize::from(multicast.is_some()) },
            Width::Int(32));
        known mask: Option<Value> = (multicast.is_some(), Width::Int(32));
    }
    rules {
        addr.strays(Space::SharedCta) => refuse("an mbarrier lies in shared memory");
        addr.unified && space != BarrierSpace::Generic => refuse("`.unified` is for generic addresses");
        matches!(order.scope, Some(Scope::Gpu | Scope::Sys))
            => refuse("an mbarrier has the scopes .cta and .cluster");
        no_complete.is() && (form.tx() || order.order == ArriveOrder::Relaxed
            || order.scope == Some(Scope::Cluster) || space == BarrierSpace::SharedCluster)
            => refuse("`.noComplete` goes with .release.cta and an object of this CTA");
        no_complete.is() && count.0.is_none() => refuse("`.noComplete` has a count");
        count.0.as_ref().and_then(Value::imm).is_some_and(|n| n < 1) => refuse("a count is positive");
        state.0.is_some() && space == BarrierSpace::SharedCluster
            => refuse("a remote arrival returns no state: write the sink `_`");
        multicast.is_some() && !(multicast == Some(Multicast::Mask32) && space != BarrierSpace::SharedCta)
            => refuse("`.multicast::cluster::32b` goes with .shared::cluster");
        state.0.is_none() && form == ArriveForm::Arrive => since(71, Any);
        !no_complete.is() && count.0.is_some() && multicast.is_none() => since(80, Sm(90));
        order.scope == Some(Scope::Cta) && !form.tx() && order.order == ArriveOrder::Release
            && space != BarrierSpace::SharedCluster
            => since(80, Any);
        order.order == ArriveOrder::Relaxed => since(86, Sm(90));
    }

    #[doc = "Expects bytes at an mbarrier, or completes them."]
    MbarrierTx = form: TxForm, section "mbarrier-expect-tx", since (80, Sm(90));
    ends ["b64"]
    slots { keep order: Pair<CountOrder>; keep space: BarrierSpace; abstain multicast: Option<Multicast>; }
    operands {
        known addr: Address = space.into();
        known bytes: Value = Width::Int(32);
        known mask: Option<Value> = (multicast.is_some(), Width::Int(32));
    }
    rules {
        addr.strays(Space::SharedCta) => refuse("an mbarrier lies in shared memory");
        matches!(order.scope, Some(Scope::Gpu | Scope::Sys))
            => refuse("an mbarrier has the scopes .cta and .cluster");
        multicast.is_some() && !(multicast == Some(Multicast::Mask32) && space != BarrierSpace::SharedCta
            && form == TxForm::Complete)
            => refuse("`.multicast::cluster::32b` goes with .complete_tx and .shared::cluster");
    }

    #[doc = "Asks, without waiting or for a while, whether a phase of an mbarrier is complete."]
    MbarrierWait = form: WaitForm, section "mbarrier-test-wait-try-wait", since (70, Any);
    ends ["b64"]
    slots { abstain phase: Option<PhaseType>; keep order: Pair<WaitOrder>; keep space: BarrierSpace; }
    operands {
        write done: Answer = (Width::Bits(1), (phase == Some(PhaseType::Primary)).then_some(Width::Bits(1)));
        write report: Early<Register> = ("[", false, Width::Bits(8));
        known addr: Unified = space.into();
        known state: Value = if form.parity() { Width::Int(32) } else { Width::Int(64) };
        known limit: Maybe<Value> = (if form.sleeps() { 0 } else { usize::MAX }, Width::Int(32));
    }
    rules {
        addr.strays(Space::SharedCta) => refuse("an mbarrier lies in shared memory");
        addr.unified && space != BarrierSpace::Generic => refuse("`.unified` is for generic addresses");
        matches!(order.scope, Some(Scope::Gpu | Scope::Sys))
            => refuse("an mbarrier has the scopes .cta and .cluster");
        space == BarrierSpace::SharedCluster => refuse("a wait is for an mbarrier of this CTA");
        phase == Some(PhaseType::Conditional) && !form.parity()
            => refuse("`.phase_type::conditional` goes with .parity");
        report.0.is_some() && phase != Some(PhaseType::Primary)
            => refuse("a report goes with .phase_type::primary");
        form.parity() && state.imm().is_some_and(|n| n != 0 && n != 1)
            => refuse("a parity is 0 or 1");
        order.order == WaitOrder::Relaxed => since(86, Sm(90));
    }

    #[doc = "Tells the layout of an mbarrier."]
    MbarrierLayout = "mbarrier.check_layout", section "mbarrier-check-layout", since (93, Sm(90));
    ends ["b64"]
    slots { abstain layout: Layout; keep space: BarrierSpace; }
    operands { write dst: Register = Width::Bits(1); known addr: Address = space.into(); }
    rules { space == BarrierSpace::SharedCluster => refuse("it asks of an mbarrier of this CTA"); }

    #[doc = "Takes the number of arrivals that are pending from the state of an mbarrier."]
    MbarrierPending = "mbarrier.pending_count", section "mbarrier-pending-count", since (70, Any);
    ends ["b64"]
    slots {}
    operands { write count: Register = Width::Int(32); known state: Value = Width::Int(64); }
    rules {}

    #[doc = "Waits for other threads of the CTA."]
    BarSync = form: BarSyncForm, section "bar", since (70, Any);
    slots { keep aligned: Aligned; }
    operands { known id: Value = Width::Int(32); known count: Maybe<Value> = (0, Width::Int(32)); }
    rules {
        aligned.is() && form == BarSyncForm::Bar => refuse("`bar` is always aligned");
        id.imm().is_some_and(|n| !(0..16).contains(&n)) => refuse("barriers are 0 to 15");
        count.0.as_ref().and_then(Value::imm).is_some_and(|n| n % 32 != 0)
            => refuse("the count is a multiple of 32");
    }

    #[doc = "Arrives at a barrier of the CTA."]
    BarArrive = form: BarArriveForm, section "bar", since (70, Any);
    slots { keep aligned: Aligned; }
    operands { known id: Value = Width::Int(32); known count: Value = Width::Int(32); }
    rules {
        aligned.is() && form == BarArriveForm::Bar => refuse("`bar` is always aligned");
        id.imm().is_some_and(|n| !(0..16).contains(&n)) => refuse("barriers are 0 to 15");
        count.imm().is_some_and(|n| n % 32 != 0 || n == 0)
            => refuse("the count is a multiple of 32, and not 0");
    }

    #[doc = "Waits for other threads of the CTA, and combines their predicates."]
    BarRed = form: BarRedForm, section "bar", since (70, Any);
    slots { keep op: BarOp; keep aligned: Aligned; keep ty: BarTy; }
    operands {
        write dst: Register = Width::Int(if ty == BarTy::Pred { 1 } else { 32 });
        known id: Value = Width::Int(32);
        known count: Maybe<Value> = (1, Width::Int(32));
        known pred: Pred = ();
    }
    rules {
        (op == BarOp::Popc) != (ty == BarTy::U32) => refuse("it is .popc.u32, .and.pred or .or.pred");
        aligned.is() && form == BarRedForm::Bar => refuse("`bar` is always aligned");
        id.imm().is_some_and(|n| !(0..16).contains(&n)) => refuse("barriers are 0 to 15");
        count.0.as_ref().and_then(Value::imm).is_some_and(|n| n % 32 != 0)
            => refuse("the count is a multiple of 32");
    }

    #[doc = "Waits for lanes of the warp."]
    WarpSync = "bar.warp.sync", section "bar-warp-sync", since (70, Any);
    slots {} operands { known mask: Value = Width::Int(32); } rules {}

    #[doc = "Arrives at the barrier of the cluster."]
    ClusterArrive = "barrier.cluster.arrive", section "barrier-cluster", since (80, Sm(90));
    slots { keep order: ClusterArriveOrder; keep aligned: Aligned; } operands {} rules {}

    #[doc = "Waits at the barrier of the cluster."]
    ClusterWait = "barrier.cluster.wait", section "barrier-cluster", since (80, Sm(90));
    slots { keep order: ClusterWaitOrder; keep aligned: Aligned; } operands {} rules {}

}
