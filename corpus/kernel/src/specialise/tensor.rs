//! Tensor-core instructions with their operands filled in: descriptors become the bytes they name.

use super::Refusal;
use super::effect::Made;
use super::heap::Content;
use super::layout::{Kind, Mem, Touch};
use super::run::{Item, State, Step, Stored, Warp};
use super::value::{Base, Val, Why};
use moire_program::ir::*;
use moire_program::tensor::{InstructionDescriptor, SharedMatrix, copied_extent, factor_extent};

impl Warp<'_> {
    /// An address in tensor memory.
    fn in_tensor(&self, state: &State, addr: &Address, mask: u32) -> Result<Address, Refusal> {
        let value = self.address(state, addr);
        if let Val::Based(Base::Register(r), l) = &value
            && let Some(offset) = l.one(mask)
        {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits wrap")]
            let offset = (offset as u32).cast_signed();
            return Ok(Address { base: Operand::Reg(Reg(*r)), offset });
        }
        self.abstain(state, format!("an address in tensor memory that depends on {}", self.reason(&value)))
    }

    pub(super) fn tensor(&mut self, state: &mut State, op: &Tcgen05, mask: u32) -> Result<Step, Refusal> {
        let mut made = Made::default();
        let mut new = op.clone();
        match &mut new {
            Tcgen05::Alloc { space, dst, columns, .. } => {
                let address = self.address(state, dst);
                let touch = self.shared(state, *space, &address, 4, mask, Kind::Word)?;
                if let Mem::Shared(cta) = touch.mem {
                    let at = u32::try_from(touch.ranges[0].0).unwrap_or(u32::MAX);
                    let line = self.line(state);
                    self.out.stores.push(Stored { cta, at, bytes: 4, content: Content::Allocation, line });
                }
                *dst = made.touch(touch);
                *columns = self.number(state, *columns, mask, "a number of columns")?;
            }
            Tcgen05::Dealloc { addr, columns, .. } => {
                let value = self.value(state, *addr);
                *addr = self.operand_of(&value, mask).map_or_else(
                    || {
                        self.abstain(
                            state,
                            format!("an address in tensor memory that depends on {}", self.reason(&value)),
                        )
                    },
                    Ok,
                )?;
                *columns = self.number(state, *columns, mask, "a number of columns")?;
            }
            Tcgen05::Load(load) => {
                load.addr = self.in_tensor(state, &load.addr, mask)?;
                let line = self.line(state);
                for (i, r) in
                    load.dst.iter_mut().chain(load.reduce.iter_mut().map(|r| &mut r.dst)).enumerate()
                {
                    self.set(state, *r, Val::Unknown(Why::Loaded(line)), mask);
                    *r = self.slot(state, i);
                }
            }
            Tcgen05::Store(store) => {
                store.addr = self.in_tensor(state, &store.addr, mask)?;
                let zero = self.zero();
                store.src.iter_mut().for_each(|r| *r = zero);
            }
            Tcgen05::Copy { shape, dst, src, .. } => {
                *dst = self.in_tensor(state, dst, mask)?;
                let extent = copied_extent(*shape);
                *src = self.matrix_at(state, src, extent, mask, &mut made)?;
            }
            Tcgen05::Shift { addr, .. } => *addr = self.in_tensor(state, addr, mask)?,
            Tcgen05::Mma(mma) => self.product(state, mma, mask, &mut made)?,
            Tcgen05::Commit(commit) => {
                let address = self.address(state, &commit.addr);
                let touch =
                    self.shared(state, commit.space, &address, MBARRIER_BYTES, mask, Kind::Barrier)?;
                commit.addr = made.touch(touch);
                if let Some(multicast) = &mut commit.multicast {
                    multicast.mask = self.number(state, multicast.mask, mask, "a mask of CTAs")?;
                }
            }
            Tcgen05::Relinquish { .. }
            | Tcgen05::WaitLoad
            | Tcgen05::WaitStore
            | Tcgen05::FenceBefore
            | Tcgen05::FenceAfter => {}
        }
        self.leave(state, mask, Op::Tcgen05(new), made)
    }

    fn product(&mut self, state: &State, mma: &mut Mma, mask: u32, made: &mut Made) -> Result<(), Refusal> {
        mma.d = self.in_tensor(state, &mma.d, mask)?;
        let ProductShape::Packed(word) = mma.shape else {
            return self.abstain(state, "a shape that is no instruction descriptor");
        };
        let Operand::Imm(word) = self.number(state, word, mask, "an instruction descriptor")? else {
            return Ok(());
        };
        let shape = InstructionDescriptor::decode(u32::try_from(word).unwrap_or(0), mma.kind);
        mma.shape = ProductShape::Tile { m: shape.m, n: shape.n };
        // In a pair each CTA holds half of the rows of A and half of the columns of B.
        let share = |n: u16| u32::from(n / mma.group.ctas());
        let sparse = mma.metadata.is_some();
        let rows = factor_extent(mma.kind, share(shape.m), false, shape.a_major);
        let columns = factor_extent(mma.kind, share(shape.n), sparse, shape.b_major);
        mma.a = match mma.a {
            Factor::Shared(a) => Factor::Shared(self.matrix_at(state, &a, rows, mask, made)?),
            Factor::Tensor(a) => Factor::Tensor(self.in_tensor(state, &a, mask)?),
        };
        mma.b = self.matrix_at(state, &mma.b, columns, mask, made)?;
        if let Some(metadata) = &mut mma.metadata {
            *metadata = self.in_tensor(state, metadata, mask)?;
        }
        if let Some(scales) = &mut mma.scales {
            scales.a = self.in_tensor(state, &scales.a, mask)?;
            scales.b = self.in_tensor(state, &scales.b, mask)?;
        }
        if !mma.lanes_off.is_empty() {
            let all: Option<Vec<u64>> =
                mma.lanes_off.iter().map(|r| state.env[r.index()].known()?.one(mask)).collect();
            match all {
                Some(all) if all.iter().all(|v| *v == 0) => {
                    let zero = self.zero();
                    mma.lanes_off.iter_mut().for_each(|r| *r = zero);
                }
                Some(all) => {
                    for (n, (reg, value)) in mma.lanes_off.iter_mut().zip(all).enumerate() {
                        *reg = self.slot(state, n);
                        let src = Operand::Imm(i128::from(value & 0xffff_ffff));
                        let op = Box::new(Op::Mov { ty: Ty::B(32), dst: *reg, src });
                        self.emit(state, mask, Item::Op { op, touches: vec![] })?;
                    }
                }
                None => return self.abstain(state, "a mask of lanes of a product that is not known"),
            }
        }
        if let EnableInput::When(guard) = mma.input {
            let value = &state.env[guard.reg.index()];
            let Some(on) = value.known().and_then(|l| l.one(mask)) else {
                return self.abstain(state, format!("a product that adds or not by {}", self.reason(value)));
            };
            mma.input = EnableInput::Always((on != 0) != guard.negated);
        }
        if mma.zero_columns.is_some() {
            mma.zero_columns = Some(Operand::Imm(0));
        }
        Ok(())
    }

    /// A matrix in the shared memory of the CTA.
    fn matrix_at(
        &mut self,
        state: &State,
        descriptor: &Descriptor,
        extent: moire_program::tensor::Extent,
        mask: u32,
        made: &mut Made,
    ) -> Result<Descriptor, Refusal> {
        let Descriptor::Packed(operand) = descriptor else {
            return self.abstain(state, "a matrix that is no descriptor");
        };
        let value = self.value(state, *operand);
        let Some(bits) = value.known().and_then(|l| l.one(mask)) else {
            return self
                .abstain(state, format!("a matrix descriptor that depends on {}", self.reason(&value)));
        };
        let Some(matrix) = SharedMatrix::decode(bits) else {
            return self.abstain(state, format!("a matrix descriptor {bits:#x} that breaks its format"));
        };
        Ok(self.matrix_of(state, matrix, extent, made))
    }

    /// The bytes of a matrix in the shared memory of the CTA.
    pub(super) fn matrix_of(
        &mut self,
        state: &State,
        matrix: SharedMatrix,
        extent: moire_program::tensor::Extent,
        made: &mut Made,
    ) -> Descriptor {
        let mut ranges: Vec<(u64, u64)> =
            matrix.ranges(extent).into_iter().map(|r| (u64::from(r.start), u64::from(r.end))).collect();
        if let Some((_, end, name)) =
            self.map.shared.iter().rfind(|s| s.0 <= matrix.start && matrix.start < s.1)
            && ranges.iter().any(|r| r.1 > u64::from(*end))
        {
            let end = u64::from(*end);
            ranges.iter_mut().for_each(|r| *r = (r.0.min(end), r.1.min(end)));
            ranges.retain(|r| r.0 < r.1);
            let text = format!(
                "a matrix reaches beyond `{name}`, which it starts in: only the part inside is judged"
            );
            self.note(self.line(state), text);
        }
        let mut touch = Touch { mem: Mem::Shared(self.here.cta), ranges, kind: Kind::Async };
        touch.join();
        let bytes = u32::try_from(touch.bytes()).unwrap_or(u32::MAX);
        Descriptor::Range { addr: made.touch(touch), bytes }
    }

    /// A register that holds nothing of interest.
    fn zero(&mut self) -> Reg {
        self.slot(&State { pc: self.kernel.body.len(), active: 0, env: Vec::new() }, 0)
    }
}
