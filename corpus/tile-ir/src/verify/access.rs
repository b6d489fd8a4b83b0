//! Rules of memory operations: orders, scopes, types, masks, padding, views.

use super::{Broken, Check, Checked, Reason, broken};
use crate::words::{AtomicMode, Order, Reduction, Scope};
use crate::{Access, Elem, Instr, Place, Scalar, Tile, TileView, Type, Value};

impl<'f> Check<'f> {
    /// A load is weak, relaxed or acquire.
    pub(super) fn load_order(&self, _: &Instr, access: &Access) -> Checked {
        if matches!(access.order, Order::Release | Order::AcqRel) {
            let message = format!("a load is weak, relaxed or acquire, not {}", access.order.word());
            return broken(Reason::Ordering, message);
        }
        scoped(access)
    }

    /// A store is weak, relaxed or release.
    pub(super) fn store_order(&self, _: &Instr, access: &Access) -> Checked {
        if matches!(access.order, Order::Acquire | Order::AcqRel) {
            let message = format!("a store is weak, relaxed or release, not {}", access.order.word());
            return broken(Reason::Ordering, message);
        }
        scoped(access)
    }

    /// An atomic is not weak.
    pub(super) fn atomic_order(&self, _: &Instr, order: &Order) -> Checked {
        if *order == Order::Weak {
            return broken(Reason::Ordering, "an atomic is relaxed, acquire, release or acq_rel, not weak");
        }
        Ok(())
    }

    /// Reductions into multicast memory return nothing and cannot acquire.
    pub(super) fn reduce_order(&self, _: &Instr, order: &Order) -> Checked {
        if matches!(order, Order::Relaxed | Order::Release) {
            return Ok(());
        }
        broken(Reason::Ordering, format!("a reduction is relaxed or release, not {}", order.word()))
    }

    /// Reductions into a view are relaxed and stay on the device.
    pub(super) fn view_order(&self, _: &Instr, order: &Order, scope: &Scope) -> Checked {
        if *order != Order::Relaxed {
            return broken(Reason::Ordering, "reductions into a view are relaxed");
        }
        if *scope == Scope::System {
            return broken(Reason::ScopeUnwanted, "reductions into a view have at most scope `device`");
        }
        Ok(())
    }

    /// It waits for a token, or for none.
    pub(super) fn waits(&self, _: &Instr, token: &Option<Value>) -> Checked {
        self.token(*token)
    }

    pub(super) fn waits_for(&self, _: &Instr, token: &Value) -> Checked {
        self.token(Some(*token))
    }

    /// Its only result is a token.
    pub(super) fn makes_token(&self, instr: &Instr) -> Checked {
        self.gives(instr, &Type::Token)
    }

    /// The tile of ordinary pointers and its pointee type.
    fn pointers(&self, value: Value) -> Result<(&'f Tile, Scalar), Broken> {
        let ty = self.ty(value);
        match ty {
            Type::Tile(tile @ Tile { elem: Elem::Pointer { to, multicast: false }, .. }) => Ok((tile, *to)),
            Type::Tile(Tile { elem: Elem::Pointer { .. }, .. }) => {
                broken(Reason::Multicast, "multicast memory is reached through views only")
            }
            other => broken(Reason::Pointer, format!("pointers are needed, not `{other}`")),
        }
    }

    /// A mask has an `i1` for each pointer.
    pub(super) fn masks(&self, _: &Instr, pointers: &Value, mask: &Option<Value>) -> Checked {
        let (Some(mask), (pointers, _)) = (*mask, self.pointers(*pointers)?) else { return Ok(()) };
        match self.ty(mask) {
            Type::Tile(tile) if tile.elem != Elem::Scalar(Scalar::I1) => {
                broken(Reason::Mask, format!("a mask is made of `i1`, not `{tile}`"))
            }
            Type::Tile(tile) if tile.shape != pointers.shape => {
                broken(Reason::MaskShape, format!("the mask `{tile}` has another shape than the pointers"))
            }
            Type::Tile(_) => Ok(()),
            other => broken(Reason::Mask, format!("a mask is a tile of `i1`, not `{other}`")),
        }
    }

    /// Padding has the type of what is loaded, and needs a mask.
    pub(super) fn pads(&self, instr: &Instr, mask: &Option<Value>, padding: &Option<Value>) -> Checked {
        let Some(padding) = *padding else { return Ok(()) };
        let read = self.read(instr)?;
        if self.ty(padding) != read {
            let message = format!("padding for `{read}` has type `{}`", self.ty(padding));
            return broken(Reason::Padding, message);
        }
        if mask.is_none() {
            return broken(Reason::Padding, "padding needs a mask");
        }
        Ok(())
    }

    /// Checks that the results are a value and a token. Returns the type of the value.
    fn read(&self, instr: &Instr) -> Result<&'f Type, Broken> {
        match instr.results.as_slice() {
            [read, token] if *self.ty(*token) == Type::Token => Ok(self.ty(*read)),
            _ => broken(Reason::Results, "the results are a tile and a token"),
        }
    }

    pub(super) fn loads(&self, instr: &Instr, pointers: &Value) -> Checked {
        let (tile, to) = self.pointers(*pointers)?;
        let read = self.read(instr)?;
        let Type::Tile(loaded) = read else {
            return broken(Reason::Results, format!("a tile is loaded, not `{read}`"));
        };
        if loaded.elem != Elem::Scalar(to) {
            return broken(Reason::Pointee, format!("pointers to `{to}` do not load `{loaded}`"));
        }
        if loaded.shape != tile.shape {
            return broken(Reason::Shape, format!("`{tile}` does not load `{loaded}`"));
        }
        Ok(())
    }

    pub(super) fn stores(&self, _: &Instr, pointers: &Value, value: &Value) -> Checked {
        let (tile, to) = self.pointers(*pointers)?;
        let stored = self.tile(*value)?;
        if stored.elem != Elem::Scalar(to) {
            return broken(Reason::Pointee, format!("`{stored}` is not stored through pointers to `{to}`"));
        }
        if stored.shape != tile.shape {
            return broken(Reason::Shape, format!("`{tile}` and `{stored}` have different shapes"));
        }
        Ok(())
    }

    pub(super) fn changes(&self, instr: &Instr, pointers: &Value, value: &Value) -> Checked {
        let (tile, to) = self.pointers(*pointers)?;
        let (given, read) = (self.tile(*value)?, self.read(instr)?);
        if given.shape != tile.shape || read.tile().is_some_and(|r| r.shape != tile.shape) {
            return broken(Reason::Shape, "pointers, argument and result have different shapes");
        }
        if given.elem != Elem::Scalar(to) {
            return broken(Reason::Pointee, format!("pointers to `{to}` do not fit the argument `{given}`"));
        }
        if self.ty(*value) != read {
            return broken(Reason::Results, format!("the result has type `{given}`, not `{read}`"));
        }
        Ok(())
    }

    pub(super) fn swaps(&self, instr: &Instr, pointers: &Value, compare: &Value, value: &Value) -> Checked {
        let (tile, to) = self.pointers(*pointers)?;
        let (old, new, read) = (self.tile(*compare)?, self.tile(*value)?, self.read(instr)?);
        let shapes = [&old.shape, &new.shape, &read.tile().map_or_else(Vec::new, |r| r.shape.clone())]
            .into_iter()
            .all(|shape| *shape == tile.shape);
        if !shapes {
            return broken(Reason::Shape, "pointers, values and result have different shapes");
        }
        if old != new || self.ty(*value) != read {
            return broken(Reason::ValueType, format!("`{old}`, `{new}` and `{read}` differ"));
        }
        if new.elem != Elem::Scalar(to) {
            return broken(Reason::Pointee, format!("pointers to `{to}` do not fit `{new}`"));
        }
        if to == Scalar::TF32 || !matches!(to.bits(), 32 | 64) {
            return broken(Reason::AtomicType, format!("compare-and-swap needs 32 or 64 bits, not `{to}`"));
        }
        Ok(())
    }

    /// The operation suits what the pointers point to.
    pub(super) fn combines(&self, _: &Instr, mode: &AtomicMode, pointers: &Value) -> Checked {
        atomic_type(*mode, self.pointers(*pointers)?.1)
    }

    /// The operation suits the elements of the view, and is no exchange.
    pub(super) fn combines_view(&self, _: &Instr, mode: &AtomicMode, place: &Place) -> Checked {
        if *mode == AtomicMode::Xchg {
            return broken(Reason::AtomicMode, "a reduction into a view cannot be `xchg`");
        }
        atomic_type(*mode, self.view(place)?.tensor.elem)
    }

    // The compiler of CUDA 13.5 accepts a strided view with padding here; the published rule does not.
    pub(super) fn unpadded(&self, _: &Instr, place: &Place) -> Checked {
        if self.view(place)?.sparse.is_some() {
            return broken(Reason::Type, "a reduction cannot target a view that gathers");
        }
        if self.view(place)?.padding.is_some() {
            return broken(Reason::PaddedView, "a reduction cannot target a view with padding");
        }
        Ok(())
    }

    /// A place in ordinary memory.
    pub(super) fn ordinary(&self, _: &Instr, place: &Place) -> Checked {
        self.place(place, false)
    }

    /// A place in multicast memory.
    pub(super) fn multicast(&self, _: &Instr, place: &Place) -> Checked {
        self.place(place, true)
    }

    pub(super) fn loads_tile(&self, instr: &Instr, place: &Place) -> Checked {
        Self::tile_of(self.view(place)?, self.read(instr)?)
    }

    pub(super) fn stores_tile(&self, _: &Instr, place: &Place, value: &Value) -> Checked {
        Self::tile_of(self.view(place)?, self.ty(*value))
    }

    fn view(&self, place: &Place) -> Result<&'f TileView, Broken> {
        match self.ty(place.view) {
            Type::View(view) => Ok(view),
            other => broken(Reason::ValueType, format!("a view is needed, not `{other}`")),
        }
    }

    /// Checks that the view and its indices fit.
    fn place(&self, place: &Place, multicast: bool) -> Checked {
        let view = self.view(place)?;
        let (rank, given) = (view.tile.len(), place.index.len());
        if rank != given || place.inbounds.len() != given {
            return broken(Reason::IndexCount, format!("the view needs {rank} indices, found {given}"));
        }
        if view.tensor.elem == Scalar::F4E2M1FN {
            halves(view)?;
        }
        let mut dense = None;
        for (index, d) in place.index.iter().zip(0..) {
            let (ty, rows) = (self.ty(*index), view.tile.get(d as usize));
            let shape = rows.filter(|_| view.sparse == Some(d)).map_or_else(Vec::new, |rows| vec![*rows]);
            let alike = !shape.is_empty() || *dense.get_or_insert(ty) == ty;
            let integer = |t: &Tile| t.shape == shape && t.elem.scalar().is_some_and(Scalar::integer);
            if !ty.tile().is_some_and(integer) || !alike {
                return broken(Reason::IndexType, format!("indices are integers of one type, not `{ty}`"));
            }
        }
        match (view.tensor.multicast, multicast) {
            (true, false) => broken(Reason::Multicast, "this operation is not for multicast memory"),
            (false, true) => broken(Reason::Multicast, "this operation is only for multicast memory"),
            (_, true) if view.steps.is_some() || view.sparse.is_some() => {
                broken(Reason::Type, "only partition views are multicast")
            }
            _ => Ok(()),
        }
    }

    fn tile_of(view: &TileView, tile: &Type) -> Checked {
        let want = Type::Tile(view.loaded());
        if *tile == want {
            return Ok(());
        }
        broken(Reason::ViewTile, format!("the view's tile is `{want}`, not `{tile}`"))
    }

    /// Checks that the reduction supports the elements of the view.
    pub(super) fn reduces(&self, _: &Instr, place: &Place, reduction: &Reduction) -> Checked {
        let view = self.view(place)?;
        let elem = view.tensor.elem;
        let integer = elem.integer() && matches!(elem.bits(), 32 | 64);
        let float = matches!(elem, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64);
        let fits = match reduction {
            Reduction::Add => integer || float,
            Reduction::Min | Reduction::Max => integer || matches!(elem, Scalar::F16 | Scalar::BF16),
            _ => integer,
        };
        if fits {
            return Ok(());
        }
        broken(Reason::AtomicType, format!("`{}` does not reduce `{elem}`", reduction.word()))
    }
}

/// Checks that the type says along which dimension half bytes are packed, and that no view gathers along it.
fn halves(view: &TileView) -> Checked {
    let units: Vec<usize> =
        (0..view.tensor.strides.len()).filter(|d| view.tensor.strides[*d] == Some(1)).collect();
    let [unit] = units[..] else {
        let message =
            format!("half bytes need one stride of 1 in their type, `{}` has {}", view.tensor, units.len());
        return broken(Reason::ViewShape, message);
    };
    if view.sparse.is_some_and(|sparse| sparse as usize == unit) {
        return broken(
            Reason::ViewShape,
            "half bytes are not gathered along the dimension they are packed along",
        );
    }
    Ok(())
}

fn scoped(access: &Access) -> Checked {
    match (access.order, access.scope) {
        (Order::Weak, Some(scope)) => {
            broken(Reason::ScopeUnwanted, format!("a weak access has no scope, found `{}`", scope.word()))
        }
        (Order::Weak, None) | (_, Some(_)) => Ok(()),
        (order, None) => broken(Reason::ScopeMissing, format!("{} needs a scope", order.word())),
    }
}

fn atomic_type(mode: AtomicMode, elem: Scalar) -> Checked {
    let wide = elem != Scalar::TF32 && matches!(elem.bits(), 32 | 64);
    let fits = match mode {
        AtomicMode::AddF => matches!(elem, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64),
        AtomicMode::Xchg => wide,
        _ => wide && elem.integer(),
    };
    if fits {
        return Ok(());
    }
    broken(Reason::AtomicType, format!("`{}` does not work with `{elem}`", mode.word()))
}
