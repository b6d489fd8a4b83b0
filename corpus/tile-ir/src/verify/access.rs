//! Rules of memory operations: orders and scopes, pointers and pointees, masks, padding, views.

use super::{Broken, Check, Checked, Reason, broken};
use crate::words::{AtomicMode, Order, Reduction, Scope};
use crate::{Access, Elem, Instr, Op, Place, Scalar, Tile, TileView, Type, Value};

impl<'f> Check<'f> {
    /// Checks a memory operation; `None` for other operations.
    pub(super) fn access(&self, instr: &Instr) -> Option<Checked> {
        Some(match &instr.op {
            Op::LoadPtr { pointers, access, mask, padding, token, .. } => {
                load_order(access).and_then(|()| self.load_ptr(instr, *pointers, [*mask, *padding, *token]))
            }
            Op::StorePtr { pointers, value, access, mask, token, .. } => {
                store_order(access).and_then(|()| self.store_ptr(instr, *pointers, *value, *mask, *token))
            }
            Op::LoadView { place, access, token, .. } => {
                load_order(access).and_then(|()| self.load_view(instr, place, *token, false))
            }
            Op::StoreView { place, value, access, token, .. } => {
                store_order(access).and_then(|()| self.store_view(instr, place, *value, *token, false))
            }
            Op::AtomicRmw { pointers, mode, value, order, mask, token, .. } => {
                self.rmw(instr, *pointers, *mode, *value, [*mask, *token]).and_then(|()| atomic_order(*order))
            }
            Op::AtomicCas { pointers, compare, value, order, mask, token, .. } => self
                .cas(instr, *pointers, [*compare, *value], [*mask, *token])
                .and_then(|()| atomic_order(*order)),
            Op::AtomicRedView { place, mode, value, order, scope, token } => {
                self.red_view(instr, place, *mode, *value, (*order, *scope), *token)
            }
            Op::MultimemLoadReduce { place, reduction, access, token } => {
                load_order(access).and_then(|()| self.load_reduce(instr, place, *reduction, *token))
            }
            Op::MultimemReduce { place, reduction, value, order, token, .. } => self
                .store_view(instr, place, *value, *token, true)
                .and_then(|()| self.reducible(place, *reduction))
                .and_then(|()| reduce_order(*order)),
            Op::MultimemStore { place, value, access, token } => {
                store_order(access).and_then(|()| self.store_view(instr, place, *value, *token, true))
            }
            Op::AliasFence { token } => {
                self.token(Some(*token)).and_then(|()| self.gives(instr, &Type::Token))
            }
            Op::GdcWait { token } | Op::GdcLaunch { token } => {
                self.token(*token).and_then(|()| self.gives(instr, &Type::Token))
            }
            Op::MakeToken | Op::JoinTokens(_) | plain_op!() | block_op!() | end_op!() => return None,
        })
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

    fn mask(&self, mask: Option<Value>, shape: &[u32]) -> Checked {
        let Some(mask) = mask else { return Ok(()) };
        match self.ty(mask) {
            Type::Tile(tile) if tile.elem != Elem::Scalar(Scalar::I1) => {
                broken(Reason::Mask, format!("a mask is made of `i1`, not `{tile}`"))
            }
            Type::Tile(tile) if tile.shape != shape => {
                broken(Reason::MaskShape, format!("the mask `{tile}` has another shape than the pointers"))
            }
            Type::Tile(_) => Ok(()),
            other => broken(Reason::Mask, format!("a mask is a tile of `i1`, not `{other}`")),
        }
    }

    /// Checks that the results are a value and a token. Returns the type of the value.
    fn read(&self, instr: &Instr) -> Result<&'f Type, Broken> {
        match instr.results.as_slice() {
            [read, token] if *self.ty(*token) == Type::Token => Ok(self.ty(*read)),
            _ => broken(Reason::Results, "the results are a tile and a token"),
        }
    }

    fn load_ptr(
        &self,
        instr: &Instr,
        pointers: Value,
        [mask, padding, token]: [Option<Value>; 3],
    ) -> Checked {
        let (tile, to) = self.pointers(pointers)?;
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
        self.mask(mask, &tile.shape)?;
        if let Some(padding) = padding {
            if self.ty(padding) != read {
                let message = format!("padding for `{read}` has type `{}`", self.ty(padding));
                return broken(Reason::Padding, message);
            }
            if mask.is_none() {
                return broken(Reason::Padding, "padding needs a mask");
            }
        }
        self.token(token)
    }

    fn store_ptr(
        &self,
        instr: &Instr,
        pointers: Value,
        value: Value,
        mask: Option<Value>,
        token: Option<Value>,
    ) -> Checked {
        let (tile, to) = self.pointers(pointers)?;
        let stored = self.tile(value)?;
        if stored.elem != Elem::Scalar(to) {
            return broken(Reason::Pointee, format!("`{stored}` is not stored through pointers to `{to}`"));
        }
        if stored.shape != tile.shape {
            return broken(Reason::Shape, format!("`{tile}` and `{stored}` have different shapes"));
        }
        self.mask(mask, &tile.shape)?;
        self.token(token)?;
        self.gives(instr, &Type::Token)
    }

    fn rmw(
        &self,
        instr: &Instr,
        pointers: Value,
        mode: AtomicMode,
        value: Value,
        [mask, token]: [Option<Value>; 2],
    ) -> Checked {
        let (tile, to) = self.pointers(pointers)?;
        let (given, read) = (self.tile(value)?, self.read(instr)?);
        if given.shape != tile.shape || read.tile().is_some_and(|r| r.shape != tile.shape) {
            return broken(Reason::Shape, "pointers, argument and result have different shapes");
        }
        if given.elem != Elem::Scalar(to) {
            return broken(Reason::Pointee, format!("pointers to `{to}` do not fit the argument `{given}`"));
        }
        if self.ty(value) != read {
            return broken(Reason::Results, format!("the result has type `{given}`, not `{read}`"));
        }
        self.mask(mask, &tile.shape)?;
        self.token(token)?;
        atomic_type(mode, to)
    }

    fn cas(
        &self,
        instr: &Instr,
        pointers: Value,
        [compare, value]: [Value; 2],
        [mask, token]: [Option<Value>; 2],
    ) -> Checked {
        let (tile, to) = self.pointers(pointers)?;
        let (old, new, read) = (self.tile(compare)?, self.tile(value)?, self.read(instr)?);
        let shapes = [&old.shape, &new.shape, &read.tile().map_or_else(Vec::new, |r| r.shape.clone())]
            .into_iter()
            .all(|shape| *shape == tile.shape);
        if !shapes {
            return broken(Reason::Shape, "pointers, values and result have different shapes");
        }
        if old != new || self.ty(value) != read {
            return broken(Reason::ValueType, format!("`{old}`, `{new}` and `{read}` differ"));
        }
        if new.elem != Elem::Scalar(to) {
            return broken(Reason::Pointee, format!("pointers to `{to}` do not fit `{new}`"));
        }
        if to == Scalar::TF32 || !matches!(to.bits(), 32 | 64) {
            return broken(Reason::AtomicType, format!("compare-and-swap needs 32 or 64 bits, not `{to}`"));
        }
        self.mask(mask, &tile.shape)?;
        self.token(token)
    }

    fn view(&self, place: &Place) -> Result<&'f TileView, Broken> {
        match self.ty(place.view) {
            Type::View(view) => Ok(view),
            other => broken(Reason::ValueType, format!("a view is needed, not `{other}`")),
        }
    }

    /// Checks that the view and its indices fit.
    fn place(&self, place: &Place, multicast: bool) -> Result<&'f TileView, Broken> {
        let view = self.view(place)?;
        let (rank, given) = (view.tile.len(), place.index.len());
        if rank != given || place.inbounds.len() != given {
            return broken(Reason::IndexCount, format!("the view needs {rank} indices, found {given}"));
        }
        let first = place.index.first().map(|i| self.ty(*i));
        for index in &place.index {
            let ty = self.ty(*index);
            let integer = |t: &Tile| t.shape.is_empty() && t.elem.scalar().is_some_and(Scalar::integer);
            if !ty.tile().is_some_and(integer) || Some(ty) != first {
                return broken(Reason::IndexType, format!("indices are integers of one type, not `{ty}`"));
            }
        }
        match (view.tensor.multicast, multicast) {
            (true, false) => broken(Reason::Multicast, "this operation is not for multicast memory"),
            (false, true) => broken(Reason::Multicast, "this operation is only for multicast memory"),
            (_, true) if view.steps.is_some() => broken(Reason::Type, "only partition views are multicast"),
            _ => Ok(view),
        }
    }

    fn tile_of(view: &TileView, tile: &Type) -> Checked {
        let want = Type::Tile(view.loaded());
        if *tile == want {
            return Ok(());
        }
        broken(Reason::ViewTile, format!("the view's tile is `{want}`, not `{tile}`"))
    }

    fn load_view(&self, instr: &Instr, place: &Place, token: Option<Value>, multicast: bool) -> Checked {
        let view = self.place(place, multicast)?;
        Self::tile_of(view, self.read(instr)?)?;
        self.token(token)
    }

    fn store_view(
        &self,
        instr: &Instr,
        place: &Place,
        value: Value,
        token: Option<Value>,
        multicast: bool,
    ) -> Checked {
        let view = self.place(place, multicast)?;
        Self::tile_of(view, self.ty(value))?;
        self.token(token)?;
        self.gives(instr, &Type::Token)
    }

    fn red_view(
        &self,
        instr: &Instr,
        place: &Place,
        mode: AtomicMode,
        value: Value,
        (order, scope): (Order, Scope),
        token: Option<Value>,
    ) -> Checked {
        // The compiler of CUDA 13.5 accepts a strided view with padding here; the published rule does not.
        if self.view(place)?.padding.is_some() {
            return broken(Reason::PaddedView, "a reduction cannot target a view with padding");
        }
        let view = self.place(place, false)?;
        Self::tile_of(view, self.ty(value))?;
        if mode == AtomicMode::Xchg {
            return broken(Reason::AtomicMode, "a reduction into a view cannot be `xchg`");
        }
        atomic_type(mode, view.tensor.elem)?;
        if order != Order::Relaxed {
            return broken(Reason::Ordering, "reductions into a view are relaxed");
        }
        if scope == Scope::System {
            return broken(Reason::ScopeUnwanted, "reductions into a view have at most scope `device`");
        }
        self.token(token)?;
        self.gives(instr, &Type::Token)
    }

    fn load_reduce(
        &self,
        instr: &Instr,
        place: &Place,
        reduction: Reduction,
        token: Option<Value>,
    ) -> Checked {
        self.load_view(instr, place, token, true)?;
        self.reducible(place, reduction)
    }

    /// Checks that the reduction supports the elements of the view.
    fn reducible(&self, place: &Place, reduction: Reduction) -> Checked {
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

/// Checks that a load is weak, relaxed or acquire.
fn load_order(access: &Access) -> Checked {
    if matches!(access.order, Order::Release | Order::AcqRel) {
        let message = format!("a load is weak, relaxed or acquire, not {}", access.order.word());
        return broken(Reason::Ordering, message);
    }
    scoped(access)
}

/// Checks that a store is weak, relaxed or release.
fn store_order(access: &Access) -> Checked {
    if matches!(access.order, Order::Acquire | Order::AcqRel) {
        let message = format!("a store is weak, relaxed or release, not {}", access.order.word());
        return broken(Reason::Ordering, message);
    }
    scoped(access)
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

/// Checks that an atomic is not weak.
fn atomic_order(order: Order) -> Checked {
    if order == Order::Weak {
        return broken(Reason::Ordering, "an atomic is relaxed, acquire, release or acq_rel, not weak");
    }
    Ok(())
}

/// Reductions into multicast memory return nothing and cannot acquire.
fn reduce_order(order: Order) -> Checked {
    if matches!(order, Order::Relaxed | Order::Release) {
        return Ok(());
    }
    broken(Reason::Ordering, format!("a reduction is relaxed or release, not {}", order.word()))
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
