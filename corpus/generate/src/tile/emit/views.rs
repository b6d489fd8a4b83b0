//! Accesses through views: a tensor over the memory of a parameter, partitioned such that the wanted elements are one
//! tile.
//!
//! If the tile starts at a multiple of the step between tiles, the tensor starts where the parameter points, and the tile
//! has an index. Otherwise the tensor starts at the tile. Elements that a plan masks off lie outside the tensor.

use super::super::plan::{Access, Kind, Mapping, Mask, STRIDE, Turn, Via, Where};
use super::{Emit, Number, Read, numbers, row};
use moire_tile_ir::{
    Access as Strength, Convert, Elem, Hints, Op, Order, Padding, Place, Scalar, Scope, TensorView, TileView,
    Type, Value,
};

/// Columns of a tile with two dimensions.
const COLUMNS: u32 = 4;

/// How the memory of a parameter is partitioned into tiles.
struct Cut {
    /// Elements from one tile to the next; none if the tensor starts at the tile.
    unit: Option<u32>,
    /// Extents that are values and not part of the type.
    open: Vec<u32>,
    view: TileView,
}

impl Emit<'_> {
    /// Emits an access through a view of the memory at `base`.
    pub(super) fn view_access(&mut self, access: &Access, elem: Scalar, base: Value, value: Option<Value>) {
        let (width, square) = (access.place.width, access.place.square && access.place.width >= 8);
        let value = match value {
            Some(value) if square => self.squared(value, width),
            Some(value) => value,
            None => base,
        };
        let cut = self.cut(access, elem);
        let tile = cut.view.loaded();
        let place = self.view_place(access, cut, base);
        let token = self.token(access);
        let (strength, hints) = (Strength { order: access.order, scope: access.scope }, Hints::new());
        match access.kind {
            Kind::Load(_) => {
                let op = Op::LoadView { place, access: strength, hints, token };
                let results = self.many(op, vec![Type::Tile(tile), Type::Token]);
                let [mut value, token] = results[..] else { return };
                self.leaves(access, token);
                if square {
                    value = self.op(Op::Convert { to: Convert::Reshape, value }, numbers(elem, width));
                }
                self.read(access, Read { value, elem, width });
            }
            Kind::Store(_) => {
                let op = Op::StoreView { place, value, access: strength, hints, token };
                let token = self.op(op, Type::Token);
                self.leaves(access, token);
            }
            // `through_view` excludes these.
            Kind::Cas(..) => {}
            Kind::Rmw(mode, ..) => {
                // A reduction is relaxed, has at most device scope, and returns no value.
                let scope = access.scope.unwrap_or(Scope::Device).min(Scope::Device);
                let op = Op::AtomicRedView { place, mode, value, order: Order::Relaxed, scope, token };
                let token = self.op(op, Type::Token);
                self.leaves(access, token);
            }
        }
    }

    fn cut(&self, access: &Access, elem: Scalar) -> Cut {
        let Access { place, via, mask, .. } = access;
        let (width, square) = (place.width, place.square && place.width >= 8);
        let (open, strided) = match via {
            Via::View { open, strided } => (*open, *strided && !square),
            Via::Pointers => (false, false),
        };
        let below = if let Mask::Below(n) = mask { Some(*n) } else { None };
        let step = if strided { 1 } else { width };
        let turns = if place.turn == Turn::Fixed { 0 } else { STRIDE };
        let whole = [place.at, turns, place.step].into_iter().all(|part| part % step == 0);
        let unit = (whole && place.mapping == Mapping::InOrder && below.is_none()).then_some(step);
        let length = match (unit, below) {
            (Some(_), _) => self.reach(place),
            (None, Some(inside)) => inside,
            (None, None) => width,
        };
        let apart = if place.mapping == Mapping::Spread { 2 } else { 1 };
        let (tile, extents, strides) = match square {
            true => (vec![width / COLUMNS, COLUMNS], vec![length / COLUMNS, COLUMNS], vec![COLUMNS, 1]),
            false => (vec![width], vec![length], vec![apart]),
        };
        let known = |n: &u32| Some(u64::from(*n));
        let shape = extents.iter().map(|n| if open { None } else { known(n) }).collect();
        let strides = strides.iter().map(known).collect();
        let view = TileView {
            steps: strided.then(|| vec![1]),
            dim_map: (0..).take(tile.len()).collect(),
            sparse: None,
            tile,
            tensor: TensorView { elem, shape, strides, multicast: false },
            padding: (below.is_some() && !access.writes()).then_some(Padding::Zero),
        };
        Cut { unit, open: if open { extents } else { Vec::new() }, view }
    }

    /// Extent from the parameter's first element to the end of the last tile that any block or iteration accesses.
    fn reach(&self, place: &Where) -> u32 {
        let parts = if place.turn == Turn::Fixed { 0 } else { (self.plan.blocks - 1) * STRIDE };
        let turns = self.turn.map_or(1, |(_, turns)| turns);
        place.at + parts + place.step * (turns - 1) + place.width
    }

    fn view_place(&mut self, access: &Access, cut: Cut, base: Value) -> Place {
        let Cut { unit, open, view } = cut;
        let (place, elem) = (&access.place, view.tensor.elem);
        let (base, index) = match unit {
            Some(unit) => (base, self.counted(place, unit)),
            None => match self.first(place) {
                Number::Known(0) => (base, Number::Known(0)),
                first => {
                    let offset = self.value(first);
                    let pointer = self.op(Op::Offset { pointer: base, offset }, row(Elem::pointer(elem), 0));
                    (pointer, Number::Known(0))
                }
            },
        };
        let shape = open.into_iter().map(|n| self.constant(Scalar::I32, 0, u64::from(n))).collect();
        let tensor = Op::TensorView { base, shape, strides: Vec::new() };
        let tensor = self.op(tensor, Type::Tensor(view.tensor.clone()));
        let mut all = vec![self.value(index)];
        if view.tile.len() > 1 {
            all.push(self.value(Number::Known(0)));
        }
        let cut =
            if view.steps.is_some() { Op::StridedView { tensor } } else { Op::PartitionView { tensor } };
        let view = self.op(cut, Type::View(view));
        Place { view, inbounds: vec![false; all.len()], index: all }
    }

    fn value(&mut self, number: Number) -> Value {
        match number {
            Number::Known(n) => self.constant(Scalar::I32, 0, u64::from(n)),
            Number::Computed(value) => value,
        }
    }
}
