//! `st.async` and `red.async`, lane by lane: each has its own address and reports its own bytes.
//!
//! PTX ISA 9.2, 9.7.9.13 and 9.7.13.8.

use super::Refusal;
use super::access::Place;
use super::effect::Made;
use super::heap::Content;
use super::layout::{Kind, Mem, Touch};
use super::run::{State, Step, Stored, Warp};
use super::value::{Val, lanes};
use moire_program::ir::*;

impl Warp<'_> {
    pub(super) fn remote(&mut self, state: &State, write: &RemoteWrite, mask: u32) -> Result<Step, Refusal> {
        let values: Vec<Val> = write.src.iter().map(|s| self.value(state, *s)).collect();
        self.remote_of(state, write, &values, mask)
    }

    /// The same with the values given.
    pub(super) fn remote_of(
        &mut self,
        state: &State,
        write: &RemoteWrite,
        values: &[Val],
        mask: u32,
    ) -> Result<Step, Refusal> {
        for lane in lanes(mask) {
            self.remote_lane(state, write, values, 1 << lane)?;
        }
        Ok(Step::Next)
    }

    fn remote_lane(
        &mut self,
        state: &State,
        write: &RemoteWrite,
        values: &[Val],
        lane: u32,
    ) -> Result<(), Refusal> {
        let mut made = Made::default();
        let mut new = write.clone();
        let address = self.address(state, &write.addr);
        let bytes = write.ty.bytes() * u32::try_from(values.len()).unwrap_or(1);
        let touch = match self.place(state, write.space, &address, lane)? {
            Place::In(mem, at) => Touch::one(mem, at.get(lane.trailing_zeros() as usize), bytes, Kind::Word),
            Place::Private => return self.abstain(state, "a remote write of private memory"),
        };
        let weak = matches!(write.order, RemoteOrder::Mbarrier(_)) && write.op.is_none();
        new.src = Vec::new();
        for (n, value) in (0u32..).zip(values) {
            let known = self.operand_of(value, lane);
            if let Mem::Shared(cta) = touch.mem {
                let size = write.ty.bytes();
                let at = u32::try_from(touch.ranges[0].0).unwrap_or(u32::MAX).saturating_add(n * size);
                let content = match known {
                    #[allow(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a bit pattern"
                    )]
                    Some(Operand::Imm(v)) if weak && size <= 8 => Content::Known(cut(v as u64, size)),
                    _ if weak => Content::Opaque,
                    _ => Content::Held,
                };
                let line = self.line(state);
                self.out.stores.push(Stored { cta, at, bytes: size, content, line });
            }
            new.src.push(match known {
                Some(operand) => operand,
                // Data, that nothing depends on.
                None if weak => Operand::Imm(0),
                None => {
                    let name = AsyncCopy::Remote(Box::new(write.clone())).name();
                    return self.abstain(state, format!("`{name}` of {}", self.reason(value)));
                }
            });
        }
        new.addr = made.touch(touch);
        if let RemoteOrder::Mbarrier(addr) = &mut new.order {
            let address = self.address(state, addr);
            let space = Space::SharedCluster;
            *addr = made.touch(self.shared(state, space, &address, MBARRIER_BYTES, lane, Kind::Barrier)?);
        }
        self.leave(state, lane, Op::AsyncCopy(AsyncCopy::Remote(Box::new(new))), made)?;
        Ok(())
    }
}

/// The low bytes of a number.
fn cut(value: u64, bytes: u32) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}
