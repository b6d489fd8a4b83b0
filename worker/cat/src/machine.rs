//! The register machine that evaluates expressions: a node has a register (a relation, or a set in its first row).
//! What no choice changes and nobody asks for any more gives its register to what comes next.
//!
//! Before a universe is judged, [`Machine::prepare`] computes what no choice changes and specialises the rest: an
//! operation with an operand that is empty in this universe (no proxy fence, no barrier, no read-modify-write)
//! disappears, and so does every copy. What is left runs without allocation and without looking at the model.

use crate::bits::{self, Row};
use crate::model::Model;
use crate::node::{CheckId, CheckKind, Node, NodeId, Type};
use crate::plan::{Plan, PlanStep};
use crate::syntax::Property;
use crate::vocabulary::{FIRST_DYNAMIC, rels};

mod advance;
mod compute;
pub(crate) use advance::Point;
use compute::{Op, Op3};

/// Register that is always empty, and the others with a meaning of their own; nodes come after them.
pub(crate) const ZERO: u32 = 0;
const IDENTITY: u32 = 1;
pub(crate) const CO: u32 = 2;
pub(crate) const FR: u32 = 3;
pub(crate) const TORN: u32 = 4;
pub(crate) const FENCE: u32 = 5;
/// The engine's choices of coherence, without what follows from them.
pub(crate) const CHOSEN: u32 = 6;
const RESERVED: u32 = 7;
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
    /// Rows of it that were in use in any universe.
    written: usize,
    /// Registers in use; of what choices change, operands have lower numbers than what is made of them.
    registers: u32,
    /// Those that held what nobody asks for any more, while what no choice changes is computed.
    free: Vec<u32>,
    /// Register of each node, `NONE` when it has none.
    at: Vec<u32>,
    /// By register, whether nobody asks for what it would hold.
    dropped: Vec<bool>,
    pub(crate) before: Vec<Inst>,
    pub(crate) with: Vec<Inst>,
    pub(crate) leaf: Vec<Inst>,
    groups: Vec<SolvedGroup>,
    /// (base relation, register) of what the engine's choices decide.
    pub(crate) inputs: Vec<(usize, u32)>,
    pub(crate) uses_fr: bool,
    pub(crate) uses_torn: bool,
    pub(crate) uses_fence: bool,
    /// Nodes whose values are asked for.
    pub(crate) watched: Vec<NodeId>,
    change: advance::Change<W>,
}

impl<const W: usize> Machine<W> {
    pub(crate) fn new(model: &Model) -> Self {
        Machine {
            n: 0,
            values: Vec::new(),
            written: 0,
            registers: 0,
            free: Vec::new(),
            at: vec![NONE; model.nodes.len()],
            dropped: Vec::new(),
            before: Vec::new(),
            with: Vec::new(),
            leaf: Vec::new(),
            groups: vec![SolvedGroup::default(); model.groups.len()],
            inputs: Vec::new(),
            uses_fr: false,
            uses_torn: false,
            uses_fence: false,
            watched: Vec::new(),
            change: advance::Change::default(),
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

    /// Register of a node, if this universe computes it and still has it.
    pub(crate) fn register(&self, node: NodeId) -> Option<u32> {
        Some(self.at[node.index()]).filter(|r| *r != NONE && !self.dropped[*r as usize])
    }

    /// Rows it holds, values and deltas.
    pub(crate) fn size(&self) -> usize {
        2 * self.written
    }

    /// Rows it has room for.
    pub(crate) fn room(&self) -> usize {
        self.values.len()
    }

    /// A register that is in no other use.
    fn fresh(&mut self) -> u32 {
        if let Some(register) = self.free.pop() {
            return register;
        }
        let register = self.registers;
        self.registers += 1;
        let wanted = self.registers as usize * self.n;
        if self.values.len() < wanted {
            self.values.resize(wanted, bits::empty());
        }
        register
    }

    /// Computes the fixed part and specialises the rest for a universe.
    pub(crate) fn prepare(&mut self, model: &Model, plan: &Plan, inputs: &crate::inputs::Inputs<W>) {
        self.settled();
        self.n = inputs.n;
        self.registers = 0;
        let part = plan.part(model, inputs);
        bits::room(&mut self.values, (RESERVED as usize + part.registers) * self.n);
        for _ in 0..RESERVED {
            let register = self.fresh();
            self.rows_mut(register).fill(bits::empty());
        }
        for (i, row) in self.rows_mut(IDENTITY).iter_mut().enumerate() {
            *row = bits::empty();
            bits::set(row, i);
        }
        self.at.fill(NONE);
        self.inputs.clear();
        (self.uses_fr, self.uses_torn) = (false, false);
        for node in &part.empty {
            self.at[node.index()] = ZERO;
        }
        for (step, last) in part.fixed.iter().zip(&part.last) {
            self.fixed(model, plan, *step, inputs);
            // Small registers are not worth the search.
            if W > 1 {
                last.iter().for_each(|node| self.release(*node));
            }
        }
        self.free.clear();
        for phase in 0..3 {
            let (steps, list) = match phase {
                0 => (&part.before, &mut self.before),
                1 => (&part.with, &mut self.with),
                _ => (&part.leaf, &mut self.leaf),
            };
            let mut insts = std::mem::take(list);
            insts.clear();
            for step in steps {
                self.specialise(model, plan, *step, &mut insts);
            }
            match phase {
                0 => self.before = insts,
                1 => self.with = insts,
                _ => self.leaf = insts,
            }
        }
        self.written = self.written.max(self.registers as usize * self.n);
        self.drop_unused(plan);
    }

    /// Gives the register of a node back, if no other node has it and nobody watches it.
    fn release(&mut self, node: NodeId) {
        if self.watched.contains(&node) {
            return;
        }
        let register = std::mem::replace(&mut self.at[node.index()], NONE);
        if register != NONE && register >= RESERVED && !self.at.contains(&register) {
            self.free.push(register);
        }
    }

    /// Drops what no check, no order and nobody else asks for.
    fn drop_unused(&mut self, plan: &Plan) {
        let mut used = vec![false; self.registers as usize];
        self.dropped.clear();
        self.dropped.resize(self.registers as usize, false);
        let forced = plan.force_co.iter().chain(&plan.force_fence).map(|f| f.0);
        let demanded = plan.demand_co.iter().chain(&plan.demand_fence).copied();
        for node in forced.chain(demanded).chain(self.watched.iter().copied()) {
            if let Some(register) = self.register(node) {
                used[register as usize] = true;
            }
        }
        let mut dropped = std::mem::take(&mut self.dropped);
        for list in [&mut self.leaf, &mut self.with, &mut self.before] {
            let mut kept = Vec::with_capacity(list.len());
            for inst in list.iter().rev() {
                let needed = match *inst {
                    Inst::Check { at, .. } => {
                        used[at as usize] = true;
                        true
                    }
                    Inst::Crossing { a, b, .. } => {
                        (used[a as usize], used[b as usize]) = (true, true);
                        true
                    }
                    Inst::Compute { op, .. } => {
                        let needed = used[op.out as usize];
                        for operand in [op.a, op.b, op.c] {
                            used[operand as usize] |= needed;
                        }
                        dropped[op.out as usize] = !needed;
                        needed
                    }
                    Inst::Solve(group) => {
                        let group = &self.groups[group as usize];
                        let made = group.insts.iter().filter_map(|inner| match inner {
                            Inst::Compute { op, .. } => Some(op.out),
                            _ => None,
                        });
                        let variables = group.pairs.iter().flat_map(|(variable, body)| [*variable, *body]);
                        let made: Vec<u32> = made.chain(variables).collect();
                        if !made.iter().any(|r| used[*r as usize]) {
                            made.iter().for_each(|r| dropped[*r as usize] = true);
                            continue;
                        }
                        for inner in &group.insts {
                            if let Inst::Compute { op, .. } = inner {
                                for operand in [op.a, op.b, op.c] {
                                    used[operand as usize] = true;
                                }
                            }
                        }
                        for (variable, body) in &group.pairs {
                            (used[*variable as usize], used[*body as usize]) = (true, true);
                        }
                        true
                    }
                };
                if needed {
                    kept.push(*inst);
                }
            }
            kept.reverse();
            *list = kept;
        }
        self.inputs.retain(|(_, register)| used[*register as usize]);
        self.uses_fr &= used[FR as usize];
        self.uses_torn &= used[TORN as usize];
        self.dropped = dropped;
    }

    /// A fixed node: computed now; if it is empty, that is remembered.
    fn fixed(&mut self, model: &Model, plan: &Plan, step: PlanStep, inputs: &crate::inputs::Inputs<W>) {
        let everyone = bits::first::<W>(self.n);
        if let PlanStep::Eval(node) = step {
            let is_set = model.facts(node).ty == Type::Set;
            let own = match model.nodes[node.index()] {
                Node::Set(s) => {
                    let own = self.fresh();
                    if self.n > 0 {
                        self.rows_mut(own)[0] = bits::and(&inputs.sets[s], &everyone);
                    }
                    own
                }
                Node::Relation(rels::ID) => {
                    self.at[node.index()] = IDENTITY;
                    return;
                }
                Node::Relation(r) => {
                    let own = self.fresh();
                    for (to, from) in self.rows_mut(own).iter_mut().zip(&inputs.rels[r]) {
                        *to = bits::and(from, &everyone);
                    }
                    own
                }
                _ => {
                    let Some(inst) = self.specialise_node(model, node) else { return };
                    self.run(&inst);
                    self.at[node.index()]
                }
            };
            let height = if is_set { 1.min(self.n) } else { self.n };
            let empty = self.rows(own)[..height].iter().all(bits::is_empty);
            self.at[node.index()] = if empty { ZERO } else { own };
            if empty && own >= RESERVED {
                self.free.push(own);
            }
        } else if let PlanStep::Solve(group) = step {
            self.specialise_group(model, plan, group);
            self.solve(group as usize);
        }
    }

    fn specialise(&mut self, model: &Model, plan: &Plan, step: PlanStep, out: &mut Vec<Inst>) {
        match step {
            PlanStep::Eval(node) => match model.nodes[node.index()] {
                Node::Relation(r) if r >= FIRST_DYNAMIC => self.dynamic(node, r),
                _ => out.extend(self.specialise_node(model, node)),
            },
            PlanStep::SeqUnder { node, mask, a, b } => {
                let (a, b, c) = (self.of(a), self.of(b), self.of(mask));
                if a == ZERO || b == ZERO || c == ZERO {
                    self.at[node.index()] = ZERO;
                } else {
                    let own = self.fresh();
                    self.at[node.index()] = own;
                    out.push(Inst::Compute { op: Op3 { op: Op::SeqUnder, out: own, a, b, c }, set: false });
                }
            }
            PlanStep::Solve(group) => {
                self.specialise_group(model, plan, group);
                out.push(Inst::Solve(group));
            }
            PlanStep::Check(id) => {
                let check = &model.checks[id.0];
                let CheckKind::Property(property) = check.kind else { return };
                let at = self.of(check.node);
                // What is empty has every property: a check that wants it holds, a flag that wants it broken is down.
                if at != ZERO || check.negated != check.flag {
                    let set = model.facts(check.node).ty == Type::Set;
                    out.push(Inst::Check { id, property, negated: check.negated, at, set });
                }
            }
            PlanStep::Crossing { check, a, b } => {
                let (a, b) = (self.of(a), self.of(b));
                if a != ZERO && b != ZERO {
                    out.push(Inst::Crossing { id: check, a, b });
                }
            }
        }
    }

    /// A relation of the engine's choices that something can be in: its own register.
    fn dynamic(&mut self, node: NodeId, relation: usize) {
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
            _ => {
                let own = self.fresh();
                self.rows_mut(own).fill(bits::empty());
                self.inputs.push((relation, own));
                own
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
        let kind = model.nodes[node.index()];
        let set = model.facts(node).ty == Type::Set;
        let op = |op, a, b| Ok(Op3 { op, out: NONE, a, b, c: ZERO });
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
                (Node::Lift(s), _) => self.sequence(Op::Rows, self.of(s), self.of(b)),
                (_, Node::Lift(s)) => self.sequence(Op::Columns, self.of(a), self.of(s)),
                _ => self.sequence(Op::Seq, self.of(a), self.of(b)),
            },
            Node::Cross(a, b) => match (self.of(a), self.of(b)) {
                (ZERO, _) | (_, ZERO) => Err(ZERO),
                (a, b) => op(Op::Cross, a, b),
            },
            Node::Inverse(a) => match self.of(a) {
                r @ (ZERO | IDENTITY) => Err(r),
                r => op(Op::Inverse, r, ZERO),
            },
            Node::Plus(a) => self.closure(model, a),
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
            Node::Set(_) | Node::Relation(_) | Node::Variable { .. } | Node::Fixpoint { .. } => {
                unreachable!("placed by what knows them")
            }
        };
        match result {
            Ok(op) => {
                let op = Op3 { out: self.fresh(), ..op };
                self.at[node.index()] = op.out;
                Some(Inst::Compute { op, set })
            }
            Err(register) => {
                self.at[node.index()] = register;
                None
            }
        }
    }

    fn sequence(&self, op: Op, a: u32, b: u32) -> Result<Op3, u32> {
        match (op, a, b) {
            (_, ZERO, _) | (_, _, ZERO) => Err(ZERO),
            (Op::Seq, IDENTITY, other) | (Op::Seq, other, IDENTITY) => Err(other),
            _ => Ok(Op3 { op, out: NONE, a, b, c: ZERO }),
        }
    }

    /// `a+`; where `a` is `fixed | rest`, the closure of the fixed part is computed once.
    fn closure(&mut self, model: &Model, a: NodeId) -> Result<Op3, u32> {
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
                let closed = self.fresh();
                let n = self.n;
                let start = from as usize * n;
                self.values.copy_within(start..start + n, closed as usize * n);
                bits::close(self.rows_mut(closed));
                return if rest == ZERO {
                    Err(closed)
                } else {
                    Ok(Op3 { op: Op::PlusOver, out: NONE, a: closed, b: rest, c: ZERO })
                };
            }
        }
        Ok(Op3 { op: Op::Plus, out: NONE, a: at, b: ZERO, c: ZERO })
    }

    fn specialise_group(&mut self, model: &Model, plan: &Plan, group: u32) {
        let g = &plan.groups[group as usize];
        for v in &g.variables {
            let own = self.fresh();
            self.rows_mut(own).fill(bits::empty());
            self.at[v.index()] = own;
        }
        let mut insts = std::mem::take(&mut self.groups[group as usize].insts);
        insts.clear();
        for member in &g.members {
            insts.extend(self.specialise_node(model, *member));
        }
        let bodies = &model.groups[group as usize];
        let pairs = g.variables.iter().zip(bodies).map(|(v, b)| (self.of(*v), self.of(*b))).collect();
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
