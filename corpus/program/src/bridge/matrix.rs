//! Dense products of a warp group.

use super::parts::{elements, guard, number, register};
use crate::ir::{self, Descriptor, EnableInput, Op, Operand, WgmmaFactor, WgmmaProduct, WgmmaType};
use moire_isa::kinds::{Num, WgmmaForm};
use moire_isa::operand::{Factor, Number, Pred};
use moire_isa::{Value, Wgmma, WgmmaWait};

pub(super) fn waits(wait: &WgmmaWait) -> Option<Op> {
    let WgmmaWait { aligned: _, groups, spelling: _ } = wait;
    Some(Op::Wgmma(ir::Wgmma::Wait(number(*groups)?)))
}

pub(super) fn product(wgmma: &Wgmma) -> Option<Op> {
    let Wgmma {
        form: WgmmaForm::Dense, aligned: _, shape, ty, bits: _, popc: _, satfinite: _, d, a, b, ..
    } = wgmma
    else {
        return None;
    };
    let Wgmma {
        metadata: _, selector: _, adds, sign_a, sign_b, transpose_a, transpose_b, spelling: _, ..
    } = wgmma;
    let immediates = [sign_a, sign_b, transpose_a, transpose_b].into_iter().flatten();
    let a = match a {
        Factor::Tensor(_) => return None,
        Factor::Values(list) if list.braced => WgmmaFactor::Registers(elements(&list.items)?),
        Factor::Values(list) => {
            WgmmaFactor::Shared(Descriptor::Packed(super::parts::value(list.items.first()?)?))
        }
    };
    Some(Op::Wgmma(ir::Wgmma::Product(Box::new(WgmmaProduct {
        n: shape.n,
        k: shape.k,
        types: [element_type(ty.at(0))?, element_type(ty.at(1))?, element_type(ty.at(2))?],
        d: elements(&d.items)?,
        a,
        b: Descriptor::Packed(Operand::Reg(register(b)?)),
        input: input(adds)?,
        immediates: immediates.map(|n: &Number| number(*n)).collect::<Option<_>>()?,
    }))))
}

/// Whether the destination is an input.
pub(super) fn input(adds: &Pred) -> Option<EnableInput> {
    match adds.value {
        Value::Imm(n) => Some(EnableInput::Always((n != 0) != adds.negated)),
        _ => guard(adds).map(EnableInput::When),
    }
}

/// The types of the elements that products of a warp group have.
fn element_type(ty: Num) -> Option<WgmmaType> {
    let known = [
        (Num::F16, WgmmaType::F16),
        (Num::Bf16, WgmmaType::Bf16),
        (Num::Tf32, WgmmaType::Tf32),
        (Num::F32, WgmmaType::F32),
        (Num::E4m3, WgmmaType::E4m3),
        (Num::E5m2, WgmmaType::E5m2),
        (Num::S8, WgmmaType::S8),
        (Num::U8, WgmmaType::U8),
        (Num::B1, WgmmaType::B1),
        (Num::S32, WgmmaType::S32),
    ];
    known.into_iter().find(|(num, _)| *num == ty).map(|(_, ty)| ty)
}
