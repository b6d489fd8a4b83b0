//! Matrices in shared memory: turns descriptors into footprints.

use super::{Executing, Made};
use crate::Refusal;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::Descriptor;
use moire_program::tensor::{Extent, SharedMatrix};

/// The footprint of a matrix, from its descriptor.
pub(super) fn matrix_at(
    step: &mut Executing<'_, '_>,
    descriptor: &Descriptor,
    extent: Extent,
    made: &mut Made,
) -> Result<Descriptor, Refusal> {
    let Descriptor::Packed(operand) = descriptor else {
        return step.abstain("a matrix that is not a descriptor");
    };
    let value = step.value(*operand);
    let Some(bits) = value.known().and_then(|l| l.one(step.mask)) else {
        return step.abstain(format!("a matrix descriptor that depends on {}", step.warp.reason(&value)));
    };
    let Some(matrix) = SharedMatrix::decode(bits) else {
        return step.abstain(format!("a matrix descriptor {bits:#x} that breaks its format"));
    };
    matrix_of(step, matrix, extent, made)
}

/// The footprint of a matrix in the shared memory of the CTA.
pub(super) fn matrix_of(
    step: &mut Executing<'_, '_>,
    matrix: SharedMatrix,
    extent: Extent,
    made: &mut Made,
) -> Result<Descriptor, Refusal> {
    let mut ranges: Vec<(u64, u64)> =
        matrix.ranges(extent).into_iter().map(|r| (u64::from(r.start), u64::from(r.end))).collect();
    if let Some((_, end, name)) =
        step.round().kernel.map().shared.iter().rfind(|s| s.0 <= matrix.start && matrix.start < s.1)
        && ranges.iter().any(|r| r.1 > u64::from(*end))
    {
        let end = u64::from(*end);
        ranges.iter_mut().for_each(|r| *r = (r.0.min(end), r.1.min(end)));
        ranges.retain(|r| r.0 < r.1);
        let text =
            format!("a matrix extends beyond `{name}`, in which it starts; only the part inside is judged");
        step.note(text);
    }
    let mem = Mem::Shared(step.warp.here.cta);
    let mut touch = Touch { mem, ranges, kind: Kind::Matrix, by: Vec::new() };
    touch.join();
    let bytes = step.shared_offset(touch.bytes())?;
    Ok(Descriptor::Range { addr: made.touch(touch), bytes })
}
