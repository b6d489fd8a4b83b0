//! Accesses through views: a tensor over the memory of a parameter, partitioned such that the wanted elements are one
//! tile.
//!
//! If the tile starts at a multiple of the step between tiles, the tensor starts where the parameter points, and the tile
//! has an index. Otherwise the tensor starts at the tile. Elements that a plan masks off lie outside the tensor.

use super::super::plan::{Access, Combine, HALF, Kind, Mapping, Mask, Role, STRIDE, Turn, Via, Where};
use super::{Emit, Number, Read, SHOWN, numbers, row};
use moire_tile_ir::{
    Access as Strength, Convert, Elem, Hints, IntegerOp, Op, Order, Overflow, Padding, Place, Scalar, Scope,
    TensorView, Tile, TileView, Type, Value,
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
        let (place, tile) = if access.via == Via::Rows {
            self.rows_place(access, elem, base)
        } else {
            let cut = self.cut(access, elem);
            let tile = cut.view.loaded();
            (self.view_place(access, cut, base), tile)
        };
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
            Via::View { open, strided, .. } => (*open, *strided && !square),
            Via::Pointers | Via::Rows => (false, false),
        };
        let below = if let Mask::Below(n) = mask { Some(*n) } else { None };
        let step = if strided { 1 } else { width };
        let turns = if place.turn == Turn::Fixed { 0 } else { STRIDE };
        let whole = [place.at, turns, place.step].into_iter().all(|part| part % step == 0);
        let unit = (whole && place.mapping == Mapping::InOrder && below.is_none()).then_some(step);
        let length = match (unit, below) {
            (Some(unit), _) => self.reach(place) + if self.moves(access).is_some() { unit } else { 0 },
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
            Some(unit) => {
                let index = self.counted(place, unit);
                (base, self.moved(access, index))
            }
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

    /// The place of rows of a tensor over the memory at `base`, and the type of the tile.
    fn rows_place(&mut self, access: &Access, elem: Scalar, base: Value) -> (Place, Tile) {
        let (place, width) = (&access.place, access.place.width);
        let last = (0..width).map(|i| place.mapping.of(i, width)).max().unwrap_or_default();
        let rows = self.reach(place) - width + last + 1;
        let first = self.first(place);
        let mut index = match self.index(place.mapping, width) {
            Some(index) => index,
            None => self.constant(Scalar::I32, width, 0),
        };
        if !matches!(first, Number::Known(0)) {
            let first = self.value(first);
            let first = self.splat(first, Elem::Scalar(Scalar::I32), width);
            index = self.integer(IntegerOp::Add(Overflow::Wraps), index, first);
        }
        let (shape, strides) = (vec![Some(u64::from(rows))], vec![Some(1)]);
        let tensor = TensorView { elem, shape, strides, multicast: false };
        let view = TileView {
            steps: None,
            tile: vec![width],
            tensor: tensor.clone(),
            dim_map: vec![0],
            sparse: Some(0),
            padding: None,
        };
        let tile = view.loaded();
        let made = Op::TensorView { base, shape: Vec::new(), strides: Vec::new() };
        let tensor = self.op(made, Type::Tensor(tensor));
        let view = self.op(Op::GatherView { tensor }, Type::View(view));
        (Place { view, index: vec![index], inbounds: vec![false] }, tile)
    }

    /// Stores elements of four bits as a result.
    pub(super) fn show_halves(&mut self, value: Value, width: u32) {
        let Some((base, used)) = self.reserved(HALF, width) else { return };
        // All results of such elements have this width.
        let mut index = Number::Known(used / width);
        if self.plan.uniform() {
            index = self.add(index, self.block, SHOWN / width);
        }
        let (shape, strides) = (vec![Some(u64::from(2 * SHOWN * self.plan.blocks))], vec![Some(1)]);
        let tensor = TensorView { elem: HALF, shape, strides, multicast: false };
        let (tile, dim_map) = (vec![width], vec![0]);
        let view =
            TileView { steps: None, tile, tensor: tensor.clone(), dim_map, sparse: None, padding: None };
        let made = Op::TensorView { base, shape: Vec::new(), strides: Vec::new() };
        let tensor = self.op(made, Type::Tensor(tensor));
        let view = self.op(Op::PartitionView { tensor }, Type::View(view));
        let place = Place { view, index: vec![self.value(index)], inbounds: vec![false] };
        let (access, hints, token) = (Strength { order: Order::Weak, scope: None }, Hints::new(), None);
        self.op(Op::StoreView { place, value, access, hints, token }, Type::Token);
    }

    /// The value that moves the tile of an access: memory that blocks share has any tile for them.
    fn moves(&self, access: &Access) -> Option<Value> {
        let Via::View { moved: true, .. } = access.via else { return None };
        let shared = self.role(access.place.param) == Role::Shared && access.place.turn == Turn::Fixed;
        let fits = |read: &&Read| read.elem == Scalar::I32 && read.width == 0;
        self.seen.reads.iter().rev().find(fits).filter(|_| shared).map(|read| read.value)
    }

    fn moved(&mut self, access: &Access, index: Number) -> Number {
        let Some(value) = self.moves(access) else { return index };
        let odd = self.combined(value, Combine::And, 1, Scalar::I32, 0);
        self.add(index, odd, 1)
    }

    fn value(&mut self, number: Number) -> Value {
        match number {
            Number::Known(n) => self.constant(Scalar::I32, 0, u64::from(n)),
            Number::Computed(value) => value,
        }
    }
}
