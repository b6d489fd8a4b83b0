//! Orders and scopes of instructions, and what is next to them: weaker, stronger, narrower, wider.
//!
//! PTX ISA 9.2, 8.5 (scopes), 8.9 (orders of fences and accesses).

use super::{
    AsyncCopy, BarKind, FenceOrder, LoadOrder, MbarrierOp, Op, ProxyOrder, RemoteOrder, RmwOrder, Scope,
    StoreOrder,
};

/// The order of an instruction, to be read and to be changed.
#[derive(Debug, PartialEq, Eq)]
pub enum Order<'o> {
    /// Of a load.
    Load(&'o mut LoadOrder),
    /// Of a store.
    Store(&'o mut StoreOrder),
    /// Of an update.
    Update(&'o mut RmwOrder),
    /// Of a `red`, which never acquires.
    Reduction(&'o mut RmwOrder),
    /// Of a fence.
    Fence(&'o mut FenceOrder),
    /// A qualifier that makes the instruction weaker: `.relaxed`, or `.read` of a wait for bulk copies.
    Flag(&'o mut bool),
}

impl LoadOrder {
    fn scope(&mut self) -> Option<&mut Scope> {
        match self {
            LoadOrder::Relaxed(scope) | LoadOrder::Acquire(scope) | LoadOrder::SeqCst(scope) => Some(scope),
            LoadOrder::Weak | LoadOrder::Volatile | LoadOrder::MmioRelaxed | LoadOrder::MmioAcquire => None,
        }
    }

    fn weaker(self) -> Option<LoadOrder> {
        match self {
            LoadOrder::SeqCst(scope) => Some(LoadOrder::Acquire(scope)),
            LoadOrder::Acquire(scope) => Some(LoadOrder::Relaxed(scope)),
            LoadOrder::MmioAcquire => Some(LoadOrder::MmioRelaxed),
            LoadOrder::Relaxed(_) | LoadOrder::Volatile | LoadOrder::MmioRelaxed => Some(LoadOrder::Weak),
            LoadOrder::Weak => None,
        }
    }

    /// A weak load stays weak: a strong one also takes part in coherence, which is another rule.
    fn stronger(self) -> Option<LoadOrder> {
        match self {
            LoadOrder::Relaxed(scope) => Some(LoadOrder::Acquire(scope)),
            LoadOrder::MmioRelaxed => Some(LoadOrder::MmioAcquire),
            LoadOrder::Weak | LoadOrder::Volatile | LoadOrder::Acquire(_) => None,
            LoadOrder::MmioAcquire | LoadOrder::SeqCst(_) => None,
        }
    }
}

impl StoreOrder {
    fn scope(&mut self) -> Option<&mut Scope> {
        match self {
            StoreOrder::Relaxed(scope) | StoreOrder::Release(scope) | StoreOrder::SeqCst(scope) => {
                Some(scope)
            }
            StoreOrder::Weak | StoreOrder::Volatile | StoreOrder::MmioRelaxed | StoreOrder::MmioRelease => {
                None
            }
        }
    }

    fn weaker(self) -> Option<StoreOrder> {
        match self {
            StoreOrder::SeqCst(scope) => Some(StoreOrder::Release(scope)),
            StoreOrder::Release(scope) => Some(StoreOrder::Relaxed(scope)),
            StoreOrder::MmioRelease => Some(StoreOrder::MmioRelaxed),
            StoreOrder::Relaxed(_) | StoreOrder::Volatile | StoreOrder::MmioRelaxed => Some(StoreOrder::Weak),
            StoreOrder::Weak => None,
        }
    }

    fn stronger(self) -> Option<StoreOrder> {
        match self {
            StoreOrder::Relaxed(scope) => Some(StoreOrder::Release(scope)),
            StoreOrder::MmioRelaxed => Some(StoreOrder::MmioRelease),
            StoreOrder::Weak | StoreOrder::Volatile | StoreOrder::Release(_) => None,
            StoreOrder::MmioRelease | StoreOrder::SeqCst(_) => None,
        }
    }
}

impl RmwOrder {
    fn weaker(self) -> &'static [RmwOrder] {
        match self {
            RmwOrder::SeqCst => &[RmwOrder::AcqRel],
            RmwOrder::AcqRel => &[RmwOrder::Acquire, RmwOrder::Release],
            RmwOrder::Acquire | RmwOrder::Release => &[RmwOrder::Relaxed],
            RmwOrder::Relaxed => &[],
        }
    }

    fn stronger(self) -> &'static [RmwOrder] {
        match self {
            RmwOrder::Relaxed => &[RmwOrder::Acquire, RmwOrder::Release],
            RmwOrder::Acquire | RmwOrder::Release => &[RmwOrder::AcqRel],
            RmwOrder::AcqRel | RmwOrder::SeqCst => &[],
        }
    }
}

impl FenceOrder {
    fn weaker(self) -> &'static [FenceOrder] {
        match self {
            FenceOrder::Sc => &[FenceOrder::AcqRel],
            FenceOrder::AcqRel => &[FenceOrder::Acquire, FenceOrder::Release],
            FenceOrder::Acquire | FenceOrder::Release => &[],
        }
    }

    fn stronger(self) -> &'static [FenceOrder] {
        match self {
            FenceOrder::Acquire | FenceOrder::Release => &[FenceOrder::AcqRel],
            FenceOrder::AcqRel => &[FenceOrder::Sc],
            FenceOrder::Sc => &[],
        }
    }
}

impl Scope {
    /// The next narrower scope.
    pub fn narrower(self) -> Option<Scope> {
        match self {
            Scope::Sys => Some(Scope::Gpu),
            Scope::Gpu => Some(Scope::Cluster),
            Scope::Cluster => Some(Scope::Cta),
            Scope::Cta => None,
        }
    }
}

impl Order<'_> {
    /// Sets the `n`-th of the next weaker or stronger orders. Returns whether there is one.
    fn step(self, weaker: bool, n: usize) -> bool {
        fn put<T: Copy>(into: &mut T, all: impl IntoIterator<Item = T>, n: usize) -> bool {
            all.into_iter().nth(n).map(|next| *into = next).is_some()
        }
        match self {
            Order::Load(order) => put(order, if weaker { order.weaker() } else { order.stronger() }, n),
            Order::Store(order) => put(order, if weaker { order.weaker() } else { order.stronger() }, n),
            Order::Update(order) => {
                put(order, if weaker { order.weaker() } else { order.stronger() }.to_vec(), n)
            }
            Order::Reduction(order) => {
                let releases = (*order == RmwOrder::Relaxed).then_some(RmwOrder::Release);
                put(order, if weaker { order.weaker().to_vec() } else { Vec::from_iter(releases) }, n)
            }
            Order::Fence(order) => {
                put(order, if weaker { order.weaker() } else { order.stronger() }.to_vec(), n)
            }
            Order::Flag(flag) => put(flag, (*flag != weaker).then_some(weaker), n),
        }
    }
}

impl Op {
    /// Its order.
    pub fn order_mut(&mut self) -> Option<Order<'_>> {
        match self {
            Op::Load { order, .. } | Op::MultimemLoad { order, .. } => Some(Order::Load(order)),
            Op::Store { order, .. } | Op::MultimemStore { order, .. } => Some(Order::Store(order)),
            Op::Rmw { order, red: true, .. } | Op::MultimemRed { order, .. } => Some(Order::Reduction(order)),
            Op::Rmw { order, red: false, .. } => Some(Order::Update(order)),
            Op::Fence { order, .. } => Some(Order::Fence(order)),
            Op::ClusterArrive { relaxed } => Some(Order::Flag(relaxed)),
            Op::Mbarrier(m) => match &mut m.op {
                MbarrierOp::Arrive(arrive) => Some(Order::Flag(&mut arrive.relaxed)),
                MbarrierOp::Wait(wait) => Some(Order::Flag(&mut wait.relaxed)),
                MbarrierOp::Init { .. } | MbarrierOp::Inval => None,
                MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => None,
            },
            Op::AsyncCopy(AsyncCopy::BulkWait { reads_only, .. }) => Some(Order::Flag(reads_only)),
            Op::AsyncCopy(AsyncCopy::Small(_) | AsyncCopy::Bulk(_) | AsyncCopy::Prefetch(_)) => None,
            Op::AsyncCopy(AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll) => None,
            Op::AsyncCopy(AsyncCopy::Arrive { .. } | AsyncCopy::BulkCommit | AsyncCopy::Remote(_)) => None,
            register_op!() => None,
            Op::ProxyFence(_) | Op::MbarrierInitFence | Op::ProxyOrder(_) | jump_op!() => None,
            Op::Bar { .. } | Op::ClusterWait | Op::WarpSync { .. } => None,
            // A commit for the reads of A alone is an instruction of one architecture.
            Op::Tcgen05(_) | Op::Wgmma(_) | Op::Tile(_) | Op::Control(_) => None,
            Op::Book(_) => None,
        }
    }

    /// The scope that it names.
    pub fn scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            Op::Load { order, .. } | Op::MultimemLoad { order, .. } => order.scope(),
            Op::Store { order, .. } | Op::MultimemStore { order, .. } => order.scope(),
            Op::Rmw { scope, .. } | Op::MultimemRed { scope, .. } | Op::Fence { scope, .. } => Some(scope),
            Op::Mbarrier(m) => match &mut m.op {
                MbarrierOp::Arrive(arrive) => Some(&mut arrive.scope),
                MbarrierOp::Wait(wait) => Some(&mut wait.scope),
                MbarrierOp::ExpectTx { scope, .. } | MbarrierOp::CompleteTx { scope, .. } => Some(scope),
                MbarrierOp::Init { .. } | MbarrierOp::Inval => None,
            },
            Op::ProxyOrder(
                ProxyOrder::TensormapRelease { scope }
                | ProxyOrder::TensormapAcquire { scope, .. }
                | ProxyOrder::CopyTensormap { scope, .. },
            ) => Some(scope),
            Op::ProxyOrder(ProxyOrder::AsyncSpace(_) | ProxyOrder::AsyncRestricted { .. }) => None,
            Op::ProxyOrder(ProxyOrder::Restricted { .. } | ProxyOrder::AliasOneSided(_)) => None,
            Op::ProxyOrder(ProxyOrder::Fabric { .. } | ProxyOrder::ReplaceTensormap { .. }) => None,
            Op::AsyncCopy(AsyncCopy::Bulk(copy)) => copy.relaxed.as_mut(),
            Op::AsyncCopy(AsyncCopy::Remote(write)) => match &mut write.order {
                RemoteOrder::Release(scope) => Some(scope),
                RemoteOrder::Mbarrier(_) | RemoteOrder::MmioRelease => None,
            },
            Op::AsyncCopy(AsyncCopy::Small(_) | AsyncCopy::Prefetch(_) | AsyncCopy::Arrive { .. }) => None,
            Op::AsyncCopy(AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll) => None,
            Op::AsyncCopy(AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. }) => None,
            register_op!() | Op::ProxyFence(_) | Op::MbarrierInitFence | jump_op!() | barrier_op!() => None,
            Op::Tcgen05(_) | Op::Wgmma(_) | Op::Tile(_) | Op::Control(_) => None,
            Op::Book(_) => None,
        }
    }

    /// It with each of the next weaker orders. A named barrier with a count is weaker if it only arrives.
    pub fn weaker(&self) -> Vec<Op> {
        let mut out = self.steps(true);
        if let Op::Bar { kind: BarKind::Sync, id, count: count @ Some(_), instance } = self {
            out.push(Op::Bar { kind: BarKind::Arrive, id: *id, count: *count, instance: *instance });
        }
        out
    }

    /// It with each of the next stronger orders.
    pub fn stronger(&self) -> Vec<Op> {
        self.steps(false)
    }

    fn steps(&self, weaker: bool) -> Vec<Op> {
        let form = |n| {
            let mut next = self.clone();
            next.order_mut().is_some_and(|order| order.step(weaker, n)).then_some(next)
        };
        (0..).map_while(form).collect()
    }

    /// The scopes that it can name, if it names one: an mbarrier belongs to a cluster, a relaxed bulk copy stays in one, and
    /// a remote write that releases reaches further (PTX ISA 9.2, 9.7.13.15, 9.7.9.25, 9.7.9.13).
    pub fn scopes(&self) -> &'static [Scope] {
        const ALL: &[Scope] = &[Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
        if matches!(self, Op::Mbarrier(_) | Op::AsyncCopy(AsyncCopy::Bulk(_))) {
            &ALL[..2]
        } else if matches!(self, Op::AsyncCopy(AsyncCopy::Remote(_))) {
            &ALL[2..]
        } else {
            ALL
        }
    }

    /// It with another scope that it can name.
    pub fn at_scope(&self, to: Scope) -> Option<Op> {
        let mut next = self.clone();
        let scope = next.scope_mut().filter(|own| **own != to && self.scopes().contains(&to))?;
        *scope = to;
        Some(next)
    }

    /// It with the next narrower scope.
    pub fn narrower(&self) -> Option<Op> {
        let own = *self.clone().scope_mut()?;
        self.at_scope(own.narrower()?)
    }

    /// It with each wider scope.
    pub fn wider(&self) -> Vec<Op> {
        let own = self.clone().scope_mut().map(|scope| *scope);
        let wide = self.scopes().iter().filter(|to| own.is_some_and(|own| own < **to));
        wide.filter_map(|to| self.at_scope(*to)).collect()
    }
}
