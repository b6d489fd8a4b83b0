//! Runs `st.async` and `red.async` lane by lane: each lane has its own address and reports its own bytes.
//!
//! PTX ISA 9.2, 9.7.9.13 and 9.7.13.8.

use super::place::Place;
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::specialise::item::Content;
use crate::specialise::known::value::{Val, lanes};
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::*;

pub(super) fn remote(step: &mut Executing<'_, '_>, write: &RemoteWrite) -> Result<Then, Refusal> {
    let values: Vec<Val> = write.src.iter().map(|s| step.value(*s)).collect();
    remote_of(step, write, &values)
}

/// Runs a remote write of the given values.
pub(super) fn remote_of(
    step: &mut Executing<'_, '_>,
    write: &RemoteWrite,
    values: &[Val],
) -> Result<Then, Refusal> {
    for lane in lanes(step.mask) {
        remote_lane(&mut step.only(1 << lane), write, values, lane)?;
    }
    Ok(Then::Next)
}

fn remote_lane(
    step: &mut Executing<'_, '_>,
    write: &RemoteWrite,
    values: &[Val],
    lane: usize,
) -> Result<(), Refusal> {
    let mut made = Made::default();
    let mut new = write.clone();
    let address = step.address(&write.addr);
    let bytes = step.vector_bytes(write.ty, values.len())?;
    let touch = match step.place(write.space, &address)? {
        Place::In(mem, at) => Touch::one(mem, at.get(lane), bytes, Kind::Word),
        Place::Private => return step.abstain("a remote write of private memory"),
    };
    let weak = matches!(write.order, RemoteOrder::Mbarrier(_)) && write.op.is_none();
    new.src = Vec::new();
    for (n, value) in (0u32..).zip(values) {
        let known = step.operand_of(value);
        if let Mem::Shared(cta) = touch.mem {
            let size = write.ty.bytes();
            let at = touch.ranges[0].0 + u64::from(n * size);
            let content = match known {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bit pattern")]
                Some(Operand::Imm(v)) if weak && size <= 8 => Content::Known(cut(v as u64, size)),
                _ if weak => Content::Opaque,
                _ => Content::Held,
            };
            step.stored(cta, at, u64::from(size), content)?;
        }
        new.src.push(match known {
            Some(operand) => operand,
            // Nothing depends on this data.
            None if weak => Operand::Imm(0),
            None => {
                let name = AsyncCopy::Remote(Box::new(write.clone())).name();
                return step.abstain(format!("`{name}` of {}", step.warp.reason(value)));
            }
        });
    }
    new.addr = made.touch(touch);
    if let RemoteOrder::Mbarrier(addr) = &mut new.order {
        let address = step.address(addr);
        let space = Space::SharedCluster;
        *addr = made.touch(step.shared(space, &address, MBARRIER_BYTES, Kind::Barrier)?);
    }
    step.leave(Op::AsyncCopy(AsyncCopy::Remote(Box::new(new))), made)?;
    Ok(())
}

/// The low bytes of a number.
fn cut(value: u64, bytes: u32) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}
