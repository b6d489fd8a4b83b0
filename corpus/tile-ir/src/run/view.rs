//! Tensors in memory, cut into tiles: the address of each element of a tile.
//!
//! Dimension `d` of a tile lies along dimension `dim_map[d]` of the tensor. Element `i` of the tile at index `k` has the
//! coordinate `k * step + i` there; the step is the length of the tile unless the view has its own steps. Indices,
//! extents and strides are natural numbers. An element with a coordinate beyond the extent is outside: a load gives the
//! padding of the view, or an unspecified value if it has none, and a store does nothing. A wrong promise that a tile is
//! inside has no meaning and is refused. A tensor in multicast memory lies in each replica. Source: Tile IR
//! specification, types of views.

use super::value::{Held, Lane};
use super::{Block, Done, ELEMENTS};
use crate::{Instr, Op, Padding, Place, Scalar, TensorView, TileView, Type, Value};
use moire_program::Refusal;
use moire_program::ir::{Address, Operand};

/// A tensor in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    /// The start address in each replica.
    bases: Vec<Address>,
    extents: Vec<u64>,
    /// Distances between neighbours, in elements.
    strides: Vec<u64>,
}

/// One dimension of a tile in its tensor.
struct Axis {
    /// The coordinate of the first element.
    from: u128,
    /// The extent of the tile.
    length: u32,
    extent: u64,
    stride: u64,
    /// Whether the program promises that no element is outside along this dimension.
    promised: bool,
}

/// Runs an operation that makes a view. Returns whether it was one.
pub(super) fn views(b: &mut Block<'_, '_>, instr: &Instr) -> Done<bool> {
    let tensor = if let Op::TensorView { base, shape, strides } = &instr.op {
        tensor(b, instr, *base, shape, strides)?
    } else if let Op::PartitionView { tensor } | Op::StridedView { tensor } = &instr.op {
        tensor_of(b, *tensor)?.clone()
    } else {
        return Ok(false);
    };
    b.define(instr, 0, Held::Tensor(tensor));
    Ok(true)
}

fn tensor(b: &Block<'_, '_>, instr: &Instr, base: Value, shape: &[Value], strides: &[Value]) -> Done<Tensor> {
    let ty = instr.results.first().and_then(|v| b.shared.function.ty(*v));
    let Some(Type::Tensor(TensorView { shape: extents, strides: steps, multicast, .. })) = ty else {
        return b.refuse("a tensor of another type");
    };
    let Some(Lane::Pointer(base)) = b.lanes(base)?.first().copied() else {
        return b.refuse("a tensor that does not start at a pointer");
    };
    let extents = filled(b, extents, shape)?;
    let strides = filled(b, steps, strides)?;
    Ok(Tensor { bases: replicas(b, base, *multicast)?, extents, strides })
}

/// The same address in all replicas of a multicast object.
fn replicas(b: &Block<'_, '_>, base: Address, multicast: bool) -> Done<Vec<Address>> {
    if !multicast {
        return Ok(vec![base]);
    }
    let symbol = if let Operand::Address(symbol) = base.base { Some(symbol) } else { None };
    let Some(others) = symbol.and_then(|s| b.shared.replicas.get(&s.0)) else {
        return b.refuse("a multicast address that is no parameter");
    };
    let others = others.iter().map(|s| Address { base: Operand::Address(*s), ..base });
    Ok(std::iter::once(base).chain(others).collect())
}

/// The numbers of the type, with open ones replaced by the values in turn.
fn filled(b: &Block<'_, '_>, of_type: &[Option<u64>], open: &[Value]) -> Done<Vec<u64>> {
    let mut open = open.iter();
    let from_memory = "a tensor whose extents or strides come from memory";
    let one = |known: &Option<u64>| match known {
        Some(known) => Ok(*known),
        None => match open.next() {
            Some(value) => natural(b, *value, from_memory),
            None => b.refuse("a tensor without all its extents and strides"),
        },
    };
    of_type.iter().map(one).collect()
}

/// The known number in a scalar; refuses `what` if it is not known.
fn natural(b: &Block<'_, '_>, value: Value, what: &str) -> Done<u64> {
    let bits = b.lanes(value)?.first().and_then(|lane| lane.bits());
    match bits.and_then(|b| u64::try_from(b).ok()) {
        Some(number) => Ok(number),
        None => b.refuse(what),
    }
}

fn tensor_of<'b>(b: &'b Block<'_, '_>, value: Value) -> Done<&'b Tensor> {
    match b.held(value)? {
        Held::Tensor(tensor) => Ok(tensor),
        Held::Tile(_) | Held::Token(_) => b.refuse("a tile or a token as a view"),
    }
}

fn view_type<'b>(b: &'b Block<'_, '_>, value: Value) -> Done<&'b TileView> {
    match b.shared.function.ty(value) {
        Some(Type::View(view)) if view.loaded().elements() <= ELEMENTS => Ok(view),
        Some(Type::View(_)) => Err(Refusal::Bounded(format!("a tile of more than {ELEMENTS} elements"))),
        _ => b.refuse("a value that is no view in tiles"),
    }
}

/// The addresses of each element of the tile, in row-major order: none outside, one in each replica of multicast memory.
pub(super) fn tile_at(b: &Block<'_, '_>, place: &Place) -> Done<(Vec<Vec<Address>>, Scalar)> {
    let (view, tensor) = (view_type(b, place.view)?, tensor_of(b, place.view)?);
    let mut axes = Vec::new();
    for (d, (length, index)) in view.tile.iter().zip(&place.index).enumerate() {
        let index = natural(b, *index, "a tile of a view at an index from memory")?;
        let along = view.dim_map.get(d).map(|along| *along as usize);
        let found = along.and_then(|along| tensor.extents.get(along).zip(tensor.strides.get(along)));
        let Some((extent, stride)) = found else {
            return b.refuse("a view with more dimensions than its tensor");
        };
        let step = view.steps.as_ref().and_then(|s| s.get(d)).copied().unwrap_or(*length);
        axes.push(Axis {
            from: u128::from(index) * u128::from(step),
            length: *length,
            extent: *extent,
            stride: *stride,
            promised: place.inbounds.get(d).copied().unwrap_or(false),
        });
    }
    if axes.len() != view.tile.len() {
        return b.refuse("a tile of a view without all its indices");
    }
    let elem = view.tensor.elem;
    let count = view.tile.iter().map(|n| *n as usize).product();
    let each = (0..count).map(|at| element(b, &tensor.bases, &axes, at, elem.bytes()));
    Ok((each.collect::<Done<Vec<Vec<Address>>>>()?, elem))
}

/// The addresses of element number `at`.
fn element(
    b: &Block<'_, '_>,
    bases: &[Address],
    axes: &[Axis],
    mut at: usize,
    bytes: u32,
) -> Done<Vec<Address>> {
    let (mut offset, mut inside) = (Some(0u128), true);
    for axis in axes.iter().rev() {
        let length = (axis.length as usize).max(1);
        let coordinate = axis.from + (at % length) as u128;
        at /= length;
        if coordinate >= u128::from(axis.extent) {
            if axis.promised {
                return b.refuse("a tile that lies outside its tensor against its `inbounds` promise");
            }
            inside = false;
        }
        let further = coordinate.checked_mul(u128::from(axis.stride));
        offset = offset.zip(further).and_then(|(a, b)| a.checked_add(b));
    }
    if !inside {
        return Ok(Vec::new());
    }
    let offset = offset.and_then(|o| i32::try_from(o.checked_mul(u128::from(bytes))?).ok());
    let moved = |base: &Address| {
        let offset = offset.and_then(|o| base.offset.checked_add(o));
        offset.map(|offset| Address { offset, ..*base })
    };
    match bases.iter().map(moved).collect() {
        Some(places) => Ok(places),
        None => b.refuse("an offset this large"),
    }
}

/// The value that a load gives outside the tensor.
pub(super) fn padding(b: &Block<'_, '_>, place: &Place) -> Done<Lane> {
    let view = view_type(b, place.view)?;
    match view.padding.map(|p| pattern(p, view.tensor.elem)) {
        None => Ok(Lane::Nothing),
        Some(Some(bits)) => Ok(Lane::known(bits)),
        Some(None) => b.refuse("this padding of a view"),
    }
}

/// The bits of a padding value; `None` if the type has no such value or several bit patterns for it.
fn pattern(padding: Padding, elem: Scalar) -> Option<u128> {
    let sign = 1u128 << (elem.bits() - 1);
    let infinity: u128 = match elem {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 | Scalar::TF32 => 0x7f80_0000,
        Scalar::F64 => 0x7ff0 << 48,
        _ => 0,
    };
    match padding {
        Padding::Zero => Some(0),
        Padding::NegZero if !elem.integer() => Some(sign),
        Padding::PosInf if infinity > 0 => Some(infinity),
        Padding::NegInf if infinity > 0 => Some(infinity | sign),
        Padding::NegZero | Padding::PosInf | Padding::NegInf | Padding::Nan => None,
    }
}
