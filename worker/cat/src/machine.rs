//! The register machine that evaluates expressions: one register (a relation, or a set in its first row) a node.
//!
//! Before a universe is judged, [`Machine::prepare`] computes what no choice changes and specialises the rest: an
//! operation with an operand that is empty in this universe (no proxy fence, no barrier, no read-modify-write)
//! disappears, and so does every copy. What is left runs without allocation and without looking at the model.

use crate::bits::{self, Row};
use crate::model::{CheckId, CheckKind, Model, Node, NodeId, Type};
use crate::plan::{Plan, Step};
use crate::syntax::Property;
use crate::vocabulary::{FIRST_DYNAMIC, rels, sets};

mod compute;
use compute::{Op, Op3};

/// Register that is always empty, and the others with a meaning of their own; nodes come after them.
pub(crate) const ZERO: u32 = 0;
const IDENTITY: u32 = 1;
pub(crate) const CO: u32 = 2;
pub(crate) const FR: u32 = 3;
pub(crate) const TORN: u32 = 4;
pub(crate) const FENCE: u32 = 5;
/// Each node has two: its own, and one above for a closure built on the closure of its fixed part.
const RESERVED: u32 = 6;
const NONE: u32 = u32::MAX;

/// A specialised step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inst {
    Compute { op: Op3, set: bool },
    Solve(u32),
    Check { id: CheckId, property: Property, negated: bool, at: u32, set: bool },
    Crossing { id: CheckId, a: u32, b: u32 },
}

#[derive(Clone, Debug, Default)]
struct SolvedGroup {
    insts: Vec<Inst>,
    /// (variable, body) registers.
    pairs: Vec<(u32, u32)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine<const W: usize> {
    pub(crate) n: usize,
    values: Vec<Row<W>>,
    /// Register of each node, `NONE` when it has none.
    at: Vec<u32>,
    pub(crate) before: Vec<Inst>,
    pub(crate) with: Vec<Inst>,
    pub(crate) leaf: Vec<Inst>,
    groups: Vec<SolvedGroup>,
    /// (base relation, register) copied at the start of a solve.
    inputs: Vec<(usize, u32)>,
    pub(crate) uses_fr: bool,
    pub(crate) uses_torn: bool,
    pub(crate) uses_fence: bool,
    nodes: u32,
}

impl<const W: usize> Machine<W> {
    pub(crate) fn new(model: &Model) -> Self {
        Machine {
            n: 0,
            values: Vec::new(),
            at: vec![NONE; model.nodes.len()],
            before: Vec::new(),
            with: Vec::new(),
            leaf: Vec::new(),
            groups: vec![SolvedGroup::default(); model.groups.len()],
            inputs: Vec::new(),
            uses_fr: false,
            uses_torn: false,
            uses_fence: false,
            nodes: u32::try_from(model.nodes.len()).unwrap_or(u32::MAX),
        }
    }

    /// Rows of a register.
    #[inline]
    pub(crate) fn rows(&self, register: u32) -> &[Row<W>] {
        let at = register as usize * self.n;
        &self.values[at..at + self.n]
    }

    #[inline]
    pub(crate) fn rows_mut(&mut self, register: u32) -> &mut [Row<W>] {
        let at = register as usize * self.n;
        &mut self.values[at..at + self.n]
    }

    /// Register of a node, if this universe computes it.
    pub(crate) fn register(&self, node: NodeId) -> Option<u32> {
        Some(self.at[node.index()]).filter(|r| *r != NONE)
    }

    /// Puts `a -> b` into a register that holds a closed relation; whether that makes a cycle.
    pub(crate) fn insert(&mut self, register: u32, a: usize, b: usize) -> bool {
        let rows = self.rows_mut(register);
        bits::insert_closed(rows, a, b);
        a == b || bits::has(&rows[b], a)
    }

    fn own(node: NodeId) -> u32 {
        RESERVED + 2 * node.0
    }

    /// Computes the fixed part and specialises the rest for a universe.
    pub(crate) fn prepare(&mut self, model: &Model, plan: &Plan, inputs: &crate::eval::Inputs<W>) {
        self.n = inputs.n;
        let registers = (RESERVED + 2 * self.nodes) as usize;
        let wanted = registers * self.n;
        if self.values.len() < wanted {
            self.values.resize(wanted, bits::empty());
        }
        self.rows_mut(ZERO).fill(bits::empty());
        for (i, row) in self.rows_mut(IDENTITY).iter_mut().enumerate() {
            *row = bits::empty();
            bits::set(row, i);
        }
        self.at.fill(NONE);
        self.inputs.clear();
        (self.uses_fr, self.uses_torn) = (false, false);
        for i in 0..plan.fixed.len() {
            self.fixed(model, plan, plan.fixed[i], inputs);
        }
        for phase in 0..3 {
            let (steps, list) = match phase {
                0 => (&plan.before, &mut self.before),
                1 => (&plan.with, &mut self.with),
                _ => (&plan.leaf, &mut self.leaf),
            };
            let mut insts = std::mem::take(list);
            insts.clear();
            for step in steps {
                self.specialise(model, plan, *step, inputs, &mut insts);
            }
            match phase {
                0 => self.before = insts,
                1 => self.with = insts,
                _ => self.leaf = insts,
            }
        }
    }

    /// Copies the relations an engine's choices decide.
    pub(crate) fn load(&mut self, inputs: &crate::eval::Inputs<W>) {
        let everyone = bits::first::<W>(self.n);
        for i in 0..self.inputs.len() {
            let (relation, register) = self.inputs[i];
            let at = register as usize * self.n;
            for (to, from) in self.values[at..at + self.n].iter_mut().zip(&inputs.rels[relation]) {
                *to = bits::and(from, &everyone);
            }
        }
    }

    /// A fixed node: computed now; if it is empty, that is remembered.
    fn fixed(&mut self, model: &Model, plan: &Plan, step: Step, inputs: &crate::eval::Inputs<W>) {
        let everyone = bits::first::<W>(self.n);
        if let Step::Eval(node) = step {
            let own = Self::own(node);
            let is_set = model.facts(node).ty == Type::Set;
            match model.nodes[node.index()] {
                Node::Set(s) => {
                    let row = bits::and(&inputs.sets[s], &everyone);
                    if self.n > 0 {
                        self.rows_mut(own)[0] = row;
                    }
                    self.at[node.index()] = if bits::is_empty(&row) { ZERO } else { own };
                    return;
                }
                Node::Relation(rels::ID) => {
                    self.at[node.index()] = IDENTITY;
                    return;
                }
                Node::Relation(r) => {
                    let at = own as usize * self.n;
                    let mut any = 0;
                    for (to, from) in self.values[at..at + self.n].iter_mut().zip(&inputs.rels[r]) {
                        *to = bits::and(from, &everyone);
                        any |= to.iter().fold(0, |a, w| a | w);
                    }
                    self.at[node.index()] = if any == 0 { ZERO } else { own };
                    return;
                }
                _ => {}
            }
            if let Some(inst) = self.specialise_node(model, node) {
                self.run(&inst);
                let height = if is_set { 1.min(self.n) } else { self.n };
                if self.rows(own)[..height].iter().all(bits::is_empty) {
                    self.at[node.index()] = ZERO;
                }
            }
        } else if let Step::Solve(group) = step {
            self.specialise_group(model, plan, group);
            self.solve(group as usize);
        }
    }

    fn specialise(
        &mut self,
        model: &Model,
        plan: &Plan,
        step: Step,
        inputs: &crate::eval::Inputs<W>,
        out: &mut Vec<Inst>,
    ) {
        match step {
            Step::Eval(node) => match model.nodes[node.index()] {
                Node::Relation(r) if r >= FIRST_DYNAMIC => self.dynamic(node, r, inputs),
                _ => out.extend(self.specialise_node(model, node)),
            },
            Step::SeqUnder { node, mask, a, b } => {
                let (a, b, c) = (self.of(a), self.of(b), self.of(mask));
                let own = Self::own(node);
                self.at[node.index()] = if a == ZERO || b == ZERO || c == ZERO { ZERO } else { own };
                if self.at[node.index()] == own {
                    out.push(Inst::Compute { op: Op3 { op: Op::SeqUnder, out: own, a, b, c }, set: false });
                }
            }
            Step::Solve(group) => {
                self.specialise_group(model, plan, group);
                out.push(Inst::Solve(group));
            }
            Step::Check(id) => {
                let check = &model.checks[id.0];
                let CheckKind::Property(property) = check.kind else { return };
                let at = self.of(check.node);
                if at != ZERO || check.negated || check.flag {
                    let set = model.facts(check.node).ty == Type::Set;
                    out.push(Inst::Check { id, property, negated: check.negated, at, set });
                }
            }
            Step::Crossing { check, a, b } => {
                let (a, b) = (self.of(a), self.of(b));
                if a != ZERO && b != ZERO {
                    out.push(Inst::Crossing { id: check, a, b });
                }
            }
        }
    }

    /// A relation of the engine's choices: its own register, or the empty one when nothing can be in it.
    fn dynamic(&mut self, node: NodeId, relation: usize, inputs: &crate::eval::Inputs<W>) {
        let everyone = bits::first::<W>(self.n);
        let none = |set: usize| bits::is_empty(&bits::and(&inputs.sets[set], &everyone));
        self.at[node.index()] = match relation {
            rels::CO => CO,
            rels::FR => {
                self.uses_fr = true;
                FR
            }
            rels::TORN => {
                self.uses_torn = true;
                TORN
            }
            rels::SYNC_FENCE if !self.uses_fence => ZERO,
            rels::SYNC_FENCE => FENCE,
            rels::SYNCBAR | rels::SYNC_CLUSTER | rels::SYNC_WARP | rels::BAR_PHASE if none(sets::B) => ZERO,
            _ => {
                self.inputs.push((relation, Self::own(node)));
                Self::own(node)
            }
        };
    }

    fn of(&self, node: NodeId) -> u32 {
        let at = self.at[node.index()];
        debug_assert!(at != NONE, "operands are placed before their users");
        at
    }

    /// Decides the register of a node, and the operation that fills it if one is needed.
    fn specialise_node(&mut self, model: &Model, node: NodeId) -> Option<Inst> {
        let own = Self::own(node);
        let kind = model.nodes[node.index()];
        let set = model.facts(node).ty == Type::Set;
        let op = |op, a, b| Ok(Op3 { op, out: own, a, b, c: ZERO });
        let result: Result<Op3, u32> = match kind {
            Node::EmptySet | Node::EmptyRelation => Err(ZERO),
            Node::Union(a, b) => match (self.of(a), self.of(b)) {
                (ZERO, other) | (other, ZERO) => Err(other),
                (a, b) if a == b => Err(a),
                (a, b) => op(Op::Union, a, b),
            },
            Node::Inter(a, b) => match (self.of(a), self.of(b)) {
                (ZERO, _) | (_, ZERO) => Err(ZERO),
                (a, b) if a == b => Err(a),
                (a, b) => op(Op::Inter, a, b),
            },
            Node::Diff(a, b) => match (self.of(a), self.of(b)) {
                (a, b) if a == ZERO || a == b => Err(ZERO),
                (a, ZERO) => Err(a),
                (a, b) => op(Op::Diff, a, b),
            },
            Node::Complement(a) => op(Op::Complement, self.of(a), ZERO),
            Node::Seq(a, b) => match (model.nodes[a.index()], model.nodes[b.index()]) {
                (Node::Lift(s), _) => self.sequence(own, Op::Rows, self.of(s), self.of(b)),
                (_, Node::Lift(s)) => self.sequence(own, Op::Columns, self.of(a), self.of(s)),
                _ => self.sequence(own, Op::Seq, self.of(a), self.of(b)),
            },
            Node::Cross(a, b) => match (self.of(a), self.of(b)) {
                (ZERO, _) | (_, ZERO) => Err(ZERO),
                (a, b) => op(Op::Cross, a, b),
            },
            Node::Inverse(a) => match self.of(a) {
                r @ (ZERO | IDENTITY) => Err(r),
                r => op(Op::Inverse, r, ZERO),
            },
            Node::Plus(a) => self.closure(model, node, a),
            Node::Star(a) | Node::Opt(a) => match self.of(a) {
                ZERO | IDENTITY => Err(IDENTITY),
                r if matches!(kind, Node::Opt(_)) || r == CO => op(Op::Opt, r, ZERO),
                r => op(Op::Star, r, ZERO),
            },
            Node::Lift(a) => match self.of(a) {
                ZERO => Err(ZERO),
                r => op(Op::Lift, r, ZERO),
            },
            Node::Domain(a) => op(Op::Domain, self.of(a), ZERO),
            Node::Range(a) => op(Op::Range, self.of(a), ZERO),
            Node::Set(_) | Node::Relation(_) | Node::Variable { .. } | Node::Fixpoint { .. } => Err(own),
        };
        match result {
            Ok(op) => {
                self.at[node.index()] = op.out;
                Some(Inst::Compute { op, set })
            }
            Err(register) => {
                self.at[node.index()] = register;
                None
            }
        }
    }

    fn sequence(&self, out: u32, op: Op, a: u32, b: u32) -> Result<Op3, u32> {
        match (op, a, b) {
            (_, ZERO, _) | (_, _, ZERO) => Err(ZERO),
            (Op::Seq, IDENTITY, other) | (Op::Seq, other, IDENTITY) => Err(other),
            _ => Ok(Op3 { op, out, a, b, c: ZERO }),
        }
    }

    /// `a+`; where `a` is `fixed | rest`, the closure of the fixed part is computed once.
    fn closure(&mut self, model: &Model, node: NodeId, a: NodeId) -> Result<Op3, u32> {
        let own = Self::own(node);
        let at = self.of(a);
        if matches!(at, ZERO | IDENTITY | CO) {
            return Err(at);
        }
        if let Node::Union(x, y) = model.nodes[a.index()] {
            let halves = if model.facts(x).fixed { Some((x, y)) } else { Some((y, x)) };
            let halves =
                halves.filter(|(fixed, rest)| model.facts(*fixed).fixed && !model.facts(*rest).fixed);
            if let Some((fixed, rest)) = halves {
                let (from, rest) = (self.of(fixed), self.of(rest));
                let closed = own;
                let n = self.n;
                let start = from as usize * n;
                self.values.copy_within(start..start + n, closed as usize * n);
                bits::close(self.rows_mut(closed));
                return if rest == ZERO {
                    Err(closed)
                } else {
                    Ok(Op3 { op: Op::PlusOver, out: own + 1, a: closed, b: rest, c: ZERO })
                };
            }
        }
        Ok(Op3 { op: Op::Plus, out: own, a: at, b: ZERO, c: ZERO })
    }

    fn specialise_group(&mut self, model: &Model, plan: &Plan, group: u32) {
        let g = &plan.groups[group as usize];
        for v in &g.variables {
            self.at[v.index()] = Self::own(*v);
        }
        let mut insts = std::mem::take(&mut self.groups[group as usize].insts);
        insts.clear();
        for member in &g.members {
            insts.extend(self.specialise_node(model, *member));
        }
        let bodies = &model.groups[group as usize];
        let pairs = g.variables.iter().zip(bodies).map(|(v, b)| (Self::own(*v), self.of(*b))).collect();
        self.groups[group as usize] = SolvedGroup { insts, pairs };
        for (i, node) in model.nodes.iter().enumerate() {
            if let Node::Fixpoint { group: g, member } = *node
                && g == group
            {
                self.at[i] = self.of(bodies[member as usize]);
            }
        }
    }

    /// Iterates a `let rec` group from nothing until nothing changes.
    fn solve(&mut self, group: usize) {
        let solved = std::mem::take(&mut self.groups[group]);
        for (variable, _) in &solved.pairs {
            self.rows_mut(*variable).fill(bits::empty());
        }
        let mut changed = true;
        while changed {
            changed = false;
            for inst in &solved.insts {
                self.run(inst);
            }
            for (variable, body) in &solved.pairs {
                changed |= self.rows(*variable) != self.rows(*body);
                let from = *body as usize * self.n;
                self.values.copy_within(from..from + self.n, *variable as usize * self.n);
            }
        }
        self.groups[group] = solved;
    }

    /// Runs one instruction; the check that fails, if it is one.
    #[inline]
    pub(crate) fn run(&mut self, inst: &Inst) -> Option<CheckId> {
        match *inst {
            Inst::Compute { op, set } => {
                self.compute(op, set);
                None
            }
            Inst::Solve(group) => {
                self.solve(group as usize);
                None
            }
            Inst::Check { id, property, negated, at, set } => {
                (!self.holds(property, negated, at, set)).then_some(id)
            }
            Inst::Crossing { id, a, b } => self.crosses(a, b).then_some(id),
        }
    }

    /// Whether a property check holds.
    pub(crate) fn holds(&self, property: Property, negated: bool, at: u32, set: bool) -> bool {
        let rows = self.rows(at);
        let rows = if set { &rows[..1.min(self.n)] } else { rows };
        let property = match property {
            Property::Empty => rows.iter().all(bits::is_empty),
            Property::Acyclic => bits::acyclic(rows),
            Property::Irreflexive => bits::irreflexive(rows),
        };
        property != negated
    }

    /// Whether some `x -a-> y -b-> x`.
    fn crosses(&self, a: u32, b: u32) -> bool {
        let back = self.rows(b);
        self.rows(a).iter().enumerate().any(|(x, row)| bits::iter(row).any(|y| bits::has(&back[y], x)))
    }
}
