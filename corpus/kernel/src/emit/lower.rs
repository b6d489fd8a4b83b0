//! Replaces notation that only litmus texts have by PTX: `desc`, `idesc` and `tile` become packed operands in registers,
//! names of tensor memory become addresses in registers, barrier counts become multiples of 32, packed accesses become
//! `.b32`.
//!
//! [`moire_program::validate::notation`] finds nothing in the result, except the mark of a predicate in `cp.async`, which
//! the printer of modules removes.

use crate::Done;
use crate::Refusal;
use moire_program::edit::retarget;
use moire_program::ir::*;
use moire_program::registers::rewrite;
use moire_program::validate::notation;
use moire_program::{fence_op, jump_op, multimem_op, register_op};

/// A thread in pure PTX.
pub(super) struct Lowered {
    /// The thread, with updated branch targets. Its labels are still those of the source and must be replaced.
    pub(super) thread: Thread,
    /// For each instruction its index in the source, or `None` if it prepares an operand; and one entry for the end.
    pub(super) origin: Vec<Option<usize>>,
    /// For each instruction left out because PTX cannot express it, the reason.
    pub(super) left_out: Vec<&'static str>,
}

/// Replaces the notation in a thread.
pub(super) fn lower(program: &Program, thread: &Thread) -> Done<Lowered> {
    let mut to = Lower {
        program,
        regs: thread.regs.clone(),
        body: Vec::new(),
        origin: Vec::new(),
        left_out: Vec::new(),
        misplaced: false,
    };
    let mut starts = Vec::new();
    for (pc, instr) in thread.body.iter().enumerate() {
        starts.push(to.body.len());
        to.instruction(pc, instr)?;
    }
    starts.push(to.body.len());
    to.origin.push(None);
    let end = to.body.len();
    let mut lowered = Thread { regs: to.regs, body: to.body, ..thread.clone() };
    retarget(&mut lowered, |at| starts.get(at).copied().unwrap_or(end));
    Ok(Lowered { thread: lowered, origin: to.origin, left_out: to.left_out })
}

struct Lower<'p> {
    program: &'p Program,
    regs: Vec<RegDecl>,
    body: Vec<Instr>,
    origin: Vec<Option<usize>>,
    left_out: Vec<&'static str>,
    misplaced: bool,
}

impl Lower<'_> {
    fn instruction(&mut self, pc: usize, instr: &Instr) -> Done<()> {
        let mut op = instr.op.clone();
        self.misplaced = false;
        match &mut op {
            Op::Load { ty, dst, .. } if ty.packed() && dst.len() == 1 => *ty = Ty::B(32),
            Op::Store { ty, src, .. } if ty.packed() && src.len() == 1 => *ty = Ty::B(32),
            Op::Mov { ty: Ty::B(32) | Ty::U(32) | Ty::S(32), src, .. } if self.tensor(*src) => {
                *src = Operand::Imm(0);
            }
            // PTX arrives with a count.
            Op::Bar { kind: BarKind::Arrive, count: None, .. } => {}
            Op::Bar { count, instance, .. } => {
                *instance = None;
                if let Some(Operand::Imm(n)) = count {
                    *n = if *n % 32 == 0 { *n } else { n.saturating_mul(32) };
                }
            }
            Op::Tcgen05(op) => self.tcgen05(op)?,
            Op::Wgmma(Wgmma::Product(product)) => {
                if let WgmmaFactor::Shared(a) = &mut product.a {
                    self.descriptor(a)?;
                }
                self.descriptor(&mut product.b)?;
            }
            Op::AsyncCopy(AsyncCopy::Bulk(copy)) => {
                self.tensor_box(&mut copy.dst)?;
                self.tensor_box(&mut copy.src)?;
            }
            Op::AsyncCopy(AsyncCopy::Prefetch(prefetch)) => self.tensor_box(&mut prefetch.src)?,
            // Native text of these is PTX.
            Op::AsyncCopy(_) | Op::Wgmma(_) | Op::Control(_) | Op::Tile(_) | Op::Mbarrier(_) => {}
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | jump_op!() | multimem_op!() => {}
            register_op!() | fence_op!() => {}
            Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => {}
            Op::Book(_) => {}
        }
        let marked =
            matches!(op, Op::AsyncCopy(AsyncCopy::Small(SmallCopy { part: SmallPart::IgnoredWhen(_), .. })));
        if !marked
            && !self.misplaced
            && let Some(why) = notation(&op)
        {
            self.left_out.push(why);
            return Ok(());
        }
        let lowered = Instr { op, ..instr.clone() };
        let mut named = false;
        rewrite(&mut lowered.op.clone(), &mut |reg| reg, &mut |operand| {
            named |= self.tensor(operand);
            operand
        });
        if named {
            let what = "a name of tensor memory is used where PTX has no word for it".to_owned();
            return Err(Refusal::Abstained { what, line: instr.line });
        }
        self.body.push(lowered);
        self.origin.push(Some(pc));
        Ok(())
    }

    fn tensor(&self, operand: Operand) -> bool {
        let Operand::Address(symbol) = operand else { return false };
        self.program.objects[self.program.symbols[symbol.index()].object.index()].space == Space::Tensor
    }

    /// Adds a register.
    fn register(&mut self, value: Value) -> Done<Reg> {
        let number = u16::try_from(self.regs.len())
            .map_err(|_| Refusal::Bounded("a thread with too many registers".to_owned()))?;
        self.regs.push(RegDecl { name: String::new(), init: RegInit::Value(value) });
        Ok(Reg(number))
    }

    fn prepare(&mut self, op: Op) {
        self.body.push(Instr::new(op));
        self.origin.push(None);
    }

    fn tcgen05(&mut self, op: &mut Tcgen05) -> Done<()> {
        match op {
            Tcgen05::Dealloc { addr, .. } if self.tensor(*addr) => {
                *addr = Operand::Reg(self.register(0)?);
            }
            Tcgen05::Load(load) => self.address(&mut load.addr)?,
            Tcgen05::Store(store) => self.address(&mut store.addr)?,
            Tcgen05::Shift { addr, .. } => self.address(addr)?,
            Tcgen05::Copy { dst, src, .. } => {
                self.address(dst)?;
                self.descriptor(src)?;
            }
            Tcgen05::Mma(mma) => self.product(mma)?,
            Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => {}
            Tcgen05::Commit(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore => {}
            Tcgen05::FenceBefore | Tcgen05::FenceAfter => {}
        }
        Ok(())
    }

    fn product(&mut self, mma: &mut Mma) -> Done<()> {
        self.address(&mut mma.d)?;
        match &mut mma.a {
            Factor::Shared(a) => self.descriptor(a)?,
            Factor::Tensor(a) => self.address(a)?,
        }
        self.descriptor(&mut mma.b)?;
        mma.metadata.iter_mut().try_for_each(|a| self.address(a))?;
        if let Some(scales) = &mut mma.scales {
            self.address(&mut scales.a)?;
            self.address(&mut scales.b)?;
        }
        if let ProductShape::Tile { m, n } = mma.shape {
            // The extents in their fields; all types are zero.
            let packed = u128::from(n >> 3) << 17 | u128::from(m >> 4) << 24;
            mma.shape = ProductShape::Packed(Operand::Reg(self.register(packed & u128::from(u32::MAX))?));
        }
        Ok(())
    }

    /// Makes the base of an address in tensor memory a register. An offset that names a lane is added to the base.
    fn address(&mut self, address: &mut Address) -> Done<()> {
        // A name of other memory stays, so that the assembler refuses it.
        self.misplaced |= matches!(address.base, Operand::Address(_)) && !self.tensor(address.base);
        if self.tensor(address.base) {
            address.base = Operand::Reg(self.register(0)?);
        }
        if (1..128).contains(&(address.offset >> 16)) {
            let dst = self.register(0)?;
            let (a, b) = (address.base, Operand::Imm(i128::from(address.offset)));
            self.prepare(Op::Alu { op: AluOp::Add, ty: Ty::U(32), dst, a, b });
            *address = Address { base: Operand::Reg(dst), offset: 0 };
        }
        Ok(())
    }

    /// Replaces a descriptor by a register with the start address in units of 16 bytes; the layout stays zero.
    fn descriptor(&mut self, descriptor: &mut Descriptor) -> Done<()> {
        let Descriptor::Range { addr, .. } = *descriptor else { return Ok(()) };
        let dst = self.register(0)?;
        if let Operand::Address(_) = addr.base {
            let (a, b) = (Operand::Reg(dst), Operand::Imm(i128::from(addr.offset)));
            self.prepare(Op::Mov { ty: Ty::U(64), dst, src: addr.base });
            self.prepare(Op::Alu { op: AluOp::Add, ty: Ty::U(64), dst, a, b });
            self.prepare(Op::Alu { op: AluOp::Shr, ty: Ty::U(64), dst, a, b: Operand::Imm(4) });
        }
        *descriptor = Descriptor::Packed(Operand::Reg(dst));
        Ok(())
    }

    fn tensor_box(&mut self, end: &mut BulkEnd) -> Done<()> {
        let BulkEnd::Tensor(tensor) = end else { return Ok(()) };
        tensor.tile = None;
        if tensor.map.is_none() {
            tensor.map = Some(Address { base: Operand::Reg(self.register(0)?), offset: 0 });
        }
        Ok(())
    }
}
