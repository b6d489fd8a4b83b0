//! The published mapping of source programs to PTX, and the same with something lost.
//!
//! Lustig, Sahasrabuddhe, Giroux (ASPLOS 2019), section 5: an access keeps its order and scope, and a `seq_cst` one has a
//! `fence.sc` in front and acquires and releases itself. What comes out is again a source program, of orders that PTX has, so
//! that it is lowered ([`crate::lower`]) and explored under the model of PTX. A compare-exchange has one order in PTX, the
//! join of its two. Loads and stores of 128 bits are a compare-exchange and an exchange, because PTX may tear them.
//!
//! A loss is what a compiler does wrong: it says of each site what is lost there.

use crate::syntax::{Access, Exchange, Order, Source, Space, Step, Update, Value};
use moire_program::ir::{AtomOp, Scope};

/// The sort of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write.
    Update,
    /// A compare-exchange.
    Cas,
    /// A fence.
    Fence,
}

/// An atomic operation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its number, in the order of the text.
    pub at: usize,
    /// What it is.
    pub sort: Sort,
    /// Its order; of a compare-exchange that on success.
    pub order: Order,
    /// The threads for which it is atomic.
    pub scope: Scope,
    /// The width of its object in bits; 0 of a fence.
    pub bits: u8,
    /// The space of its object; global of a fence.
    pub space: Space,
}

/// What is lost at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lost {
    /// All order: it is relaxed, and a fence is none.
    Order,
    /// It does not acquire.
    Acquire,
    /// It does not release.
    Release,
    /// The fence in front of a `seq_cst` access.
    Lead,
    /// `fence.sc` is `fence.acq_rel`.
    Sequence,
    /// The scope: it is the next narrower one.
    Scope,
    /// A load or a store is a weak one.
    Strength,
    /// An exchange is a load and a store.
    Atomicity,
    /// A compare-exchange has the order of its success alone.
    Failure,
}

/// The program that the mapping makes of a program. `lost` says what is lost at a site.
pub fn mapped(source: &Source, lost: &dyn Fn(&Site) -> Option<Lost>) -> Source {
    let mut at = 0;
    let mut out = source.clone();
    for thread in &mut out.threads {
        let mut mapping = Mapping { source, lost, at: &mut at };
        thread.body = mapping.block(&thread.body);
    }
    out
}

/// The atomic operations of a program.
pub fn sites(source: &Source) -> Vec<Site> {
    let all = std::cell::RefCell::new(Vec::new());
    mapped(source, &|site| {
        all.borrow_mut().push(*site);
        None
    });
    all.into_inner()
}

struct Mapping<'a> {
    source: &'a Source,
    lost: &'a dyn Fn(&Site) -> Option<Lost>,
    at: &'a mut usize,
}

impl Mapping<'_> {
    fn block(&mut self, steps: &[Step]) -> Vec<Step> {
        steps.iter().flat_map(|step| self.step(step)).collect()
    }

    fn step(&mut self, step: &Step) -> Vec<Step> {
        match step {
            Step::If { register, equals, then } => {
                vec![Step::If { register: *register, equals: *equals, then: self.block(then) }]
            }
            Step::Load { access: Access::Plain, .. } | Step::Store { access: Access::Plain, .. } => {
                vec![step.clone()]
            }
            Step::Load { access: Access::Atomic { order, scope, .. }, dst, object } => {
                self.load((*dst, *object), *order, *scope)
            }
            Step::Store { access: Access::Atomic { order, scope, .. }, value, object } => {
                self.store((*object, *value), *order, *scope)
            }
            Step::Update(update) => self.update(update),
            Step::Cas(cas) => self.cas(cas),
            Step::Fence { order, scope } => self.fence(*order, *scope),
        }
    }

    /// An operation as it is emitted.
    fn emitted(&mut self, sort: Sort, object: Option<usize>, order: Order, scope: Scope) -> Emitted {
        let object = object.and_then(|o| self.source.objects.get(o));
        let (bits, space) = object.map_or((0, Space::Global), |o| (o.bits, o.space));
        let site = Site { at: *self.at, sort, order, scope, bits, space };
        *self.at += 1;
        Emitted::of(order, scope, (self.lost)(&site))
    }

    fn load(&mut self, (dst, object): (usize, usize), order: Order, scope: Scope) -> Vec<Step> {
        let e = self.emitted(Sort::Load, Some(object), order, scope);
        if self.source.objects[object].bits == 128 && e.lost != Some(Lost::Strength) {
            let (expected, desired) = (0, Value::Number(0));
            let (success, failure) = (e.reading(), e.reading());
            let scope = e.scope;
            return e.behind(Step::Cas(Exchange { dst, object, expected, desired, success, failure, scope }));
        }
        e.behind(Step::Load { dst, object, access: e.access(e.reading()) })
    }

    fn store(&mut self, (object, value): (usize, Value), order: Order, scope: Scope) -> Vec<Step> {
        let e = self.emitted(Sort::Store, Some(object), order, scope);
        if self.source.objects[object].bits == 128 && e.lost != Some(Lost::Strength) {
            let (op, order, scope) = (AtomOp::Exch, e.writing(), e.scope);
            return e.behind(Step::Update(Update { dst: None, op, object, value, order, scope }));
        }
        e.behind(Step::Store { object, value, access: e.access(e.writing()) })
    }

    fn update(&mut self, u: &Update) -> Vec<Step> {
        let e = self.emitted(Sort::Update, Some(u.object), u.order, u.scope);
        if let (Some(Lost::Atomicity), AtomOp::Exch, Some(dst)) = (e.lost, u.op, u.dst) {
            let load = Step::Load { dst, object: u.object, access: e.access(e.reading()) };
            let store = Step::Store { object: u.object, value: u.value, access: e.access(e.writing()) };
            return e.lead.iter().cloned().chain([load, store]).collect();
        }
        e.behind(Step::Update(Update { order: e.order, scope: e.scope, ..u.clone() }))
    }

    fn cas(&mut self, c: &Exchange) -> Vec<Step> {
        // The site has the order on success, and so may lose the other one.
        let mut e = self.emitted(Sort::Cas, Some(c.object), c.success, c.scope);
        if e.lost != Some(Lost::Failure) {
            e = Emitted::of(join(c.success, c.failure), c.scope, e.lost);
        }
        let failure = e.reading();
        e.behind(Step::Cas(Exchange { success: e.order, failure, scope: e.scope, ..c.clone() }))
    }

    fn fence(&mut self, order: Order, scope: Scope) -> Vec<Step> {
        let e = self.emitted(Sort::Fence, None, order, scope);
        let order = if order == Order::SeqCst && e.keeps_sequence() { order } else { e.order };
        if order == Order::Relaxed { Vec::new() } else { vec![Step::Fence { order, scope: e.scope }] }
    }
}

/// An operation as it is emitted: the fence in front, its own order and its scope.
struct Emitted {
    lead: Option<Step>,
    order: Order,
    scope: Scope,
    lost: Option<Lost>,
}

impl Emitted {
    fn of(order: Order, scope: Scope, lost: Option<Lost>) -> Self {
        let scope = match lost {
            Some(Lost::Scope) => scope.narrower().unwrap_or(scope),
            _ => scope,
        };
        let lead = match lost {
            Some(Lost::Order | Lost::Lead | Lost::Strength) => None,
            Some(Lost::Sequence) => Some(Order::AcqRel),
            _ => Some(Order::SeqCst),
        };
        let lead = lead.filter(|_| order == Order::SeqCst).map(|order| Step::Fence { order, scope });
        let acquires = order.acquires() && !matches!(lost, Some(Lost::Order | Lost::Acquire));
        let releases = order.releases() && !matches!(lost, Some(Lost::Order | Lost::Release));
        Emitted { lead, order: with(acquires, releases), scope, lost }
    }

    fn keeps_sequence(&self) -> bool {
        !matches!(self.lost, Some(Lost::Order | Lost::Sequence | Lost::Acquire | Lost::Release))
    }

    fn reading(&self) -> Order {
        with(self.order.acquires(), false)
    }

    fn writing(&self) -> Order {
        with(false, self.order.releases())
    }

    fn access(&self, order: Order) -> Access {
        if self.lost == Some(Lost::Strength) {
            return Access::Plain;
        }
        Access::Atomic { order, scope: self.scope, volatile: false }
    }

    fn behind(&self, step: Step) -> Vec<Step> {
        self.lead.iter().cloned().chain([step]).collect()
    }
}

/// The order that acquires and releases so.
fn with(acquires: bool, releases: bool) -> Order {
    match (acquires, releases) {
        (true, true) => Order::AcqRel,
        (true, false) => Order::Acquire,
        (false, true) => Order::Release,
        (false, false) => Order::Relaxed,
    }
}

/// The least order that is as strong as both.
fn join(a: Order, b: Order) -> Order {
    if [a, b].contains(&Order::SeqCst) {
        return Order::SeqCst;
    }
    with(a.acquires() || b.acquires(), a.releases() || b.releases())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse, print};

    fn body(text: &str, lost: Option<Lost>) -> String {
        let source =
            parse(&format!("source \"t\"\n.global .b32 x;\nP0 (cta 0) {{ {text} }}\n")).expect("reads");
        let steps = print(&mapped(&source, &|_| lost));
        steps.lines().filter_map(|l| l.strip_prefix("  ")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_order_becomes_one_of_ptx() {
        assert_eq!(body("store.seq_cst.gpu x, 1;", None), "fence.seq_cst.gpu; store.release.gpu x, 1;");
        assert_eq!(body("r0 = load.acquire.gpu x;", None), "r0 = load.acquire.gpu x;");
        let cas = body("r0 = cas.release.acquire.gpu x, 0, 1;", None);
        assert_eq!(cas, "r0 = cas.acq_rel.acquire.gpu x, 0, 1;");
        assert_eq!(body("fence.seq_cst.gpu;", None), "fence.seq_cst.gpu;");
    }

    #[test]
    fn each_loss_loses_what_it_says() {
        let store = |lost| body("store.seq_cst.gpu x, 1;", Some(lost));
        assert_eq!(store(Lost::Order), "store.relaxed.gpu x, 1;");
        assert_eq!(store(Lost::Lead), "store.release.gpu x, 1;");
        assert_eq!(store(Lost::Sequence), "fence.acq_rel.gpu; store.release.gpu x, 1;");
        assert_eq!(store(Lost::Scope), "fence.seq_cst.cluster; store.release.cluster x, 1;");
        assert_eq!(store(Lost::Strength), "store.plain x, 1;");
        assert_eq!(body("fence.seq_cst.gpu;", Some(Lost::Order)), "");
        assert_eq!(body("fence.seq_cst.gpu;", Some(Lost::Sequence)), "fence.acq_rel.gpu;");
        let cas = body("r0 = cas.release.acquire.gpu x, 0, 1;", Some(Lost::Failure));
        assert_eq!(cas, "r0 = cas.release.relaxed.gpu x, 0, 1;");
        let exch = body("r0 = exch.acquire.gpu x, 1;", Some(Lost::Atomicity));
        assert_eq!(exch, "r0 = load.acquire.gpu x; store.relaxed.gpu x, 1;");
    }
}
