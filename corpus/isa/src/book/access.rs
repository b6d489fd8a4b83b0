//! Loads, stores and updates of memory.

use crate::entry::{refuse, since};
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;
use crate::slot::Strong;
use crate::text::OF_CALLS;

instructions! {
    #[doc = "Loads from memory."]
    Ld = "ld", section "ld", since (70, Any);
    slots {
        keep mmio: Mmio;
        keep order: Strong<LoadOrder>;
        keep readonly: Readonly;
        keep space: Space;
        keep nc: Nc;
        speed cache: Option<LoadCache>;
        speed l1: Option<L1>;
        speed l2: Option<L2>;
        speed hint: CacheHint;
        speed prefetch: Option<Prefetch>;
        keep vec: Vector;
        keep ty: Ty;
    }
    operands {
        write dst: List = (vec.count(), ty.fit(true), May);
        known addr: Unified = space;
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules it {
        !plain(ty) => refuse("ld has no halves: `.b16` or `.b32` loads them");
        bits(vec, ty) > 128 && !(bits(vec, ty) == 256 && matches!(ty.bits(), 32 | 64))
            => refuse("a vector has at most 128 bits, or 256 as .v8.b32 and .v4.b64");
        bits(vec, ty) == 256 && !space.wide() => refuse("256 bits are loaded from global memory");
        bits(vec, ty) == 256 => since(88, Sm(100));
        order.scope.is_some() && matches!(space, Space::Local | Space::Const | Space::Param)
            => refuse("strong accesses go to global and shared memory");
        order.order == LoadOrder::Volatile && matches!(space, Space::Const | Space::Param)
            => refuse("volatile accesses go to memory that changes");
        order.order == LoadOrder::Volatile && space == Space::Local => since(91, Any);
        mmio.is() && !(order.scope == Some(Scope::Sys) && vec == Vector::One && space.wide())
            => refuse("`.mmio` goes with an order, `.sys`, and one element of global memory");
        mmio.is() => since(83, Any);
        mmio.is() && order.order == LoadOrder::Acquire => since(93, Any);
        cache.is_some() && spelled_order(order) => refuse("a cache operator goes with no order");
        cache.is_some() && l1.is_some() => refuse("a cache operator goes with no priority in L1");
        (l1.is_some() || l2.is_some()) && mmio.is() => refuse("`.mmio` takes no hints");
        l1.is_some() && order.order == LoadOrder::Volatile
            => refuse("a priority in L1 goes with no .volatile");
        (l1.is_some() || l2.is_some() || hint.is() || prefetch.is_some()) && !space.wide()
            => refuse("hints of caches are for global memory");
        (prefetch.is_some() || hint.is()) && mmio.is() => refuse("`.mmio` takes no hints");
        hint.is() && order.order == LoadOrder::Volatile => refuse("`.volatile` takes no policy");
        addr.unified && !space.wide() => refuse("`.unified` is for global memory");
        l2.is_some() && bits(vec, ty) != 256 => refuse("a priority in L2 goes with .v8.b32 and .v4.b64");
        readonly.is() && (!space.wide() || spelled_order(order) || cache.is_some() || l1.is_some()
            || prefetch.is_some() || hint.is() || it.spelling.says("weak"))
            => refuse("`.proxy::readonly` goes with no order and no hint");
        nc.is() && (space != Space::Global || mmio.is() || spelled_order(order) || it.spelling.says("weak"))
            => refuse("`.nc` goes with .global and no order");
        nc.is() && matches!(cache, Some(LoadCache::Lu | LoadCache::Cv))
            => refuse("`.nc` takes the cache operators .ca, .cg, .cs");
        ty == Ty::B128 => since(83, Any);
        ty == Ty::B128 && order.scope == Some(Scope::Sys) => since(84, Any);
    }

    #[doc = "Loads what is the same for all lanes."]
    Ldu = "ldu", section "ldu", since (70, Any);
    slots { keep space: GlobalSpace; keep vec: Vector; keep ty: Ty; }
    operands { write dst: List = (vec.count(), ty.fit(true), May); known addr: Unified = space.into(); }
    rules {
        !plain(ty) => refuse("ldu has no halves: `.b16` or `.b32` loads them");
        bits(vec, ty) > 128 || vec == Vector::V8 => refuse("a vector has at most 4 elements and 128 bits");
        ty == Ty::B128 => since(83, Any);
    }

    #[doc = "Stores to memory."]
    St = "st", section "st", since (70, Any);
    slots {
        keep mmio: Mmio;
        keep order: Strong<StoreOrder>;
        keep space: Space;
        speed cache: Option<StoreCache>;
        speed l1: Option<L1>;
        speed l2: Option<L2>;
        speed hint: CacheHint;
        keep vec: Vector;
        keep ty: Ty;
    }
    operands {
        known addr: Address = space;
        loose src: List = (vec.count(), ty.fit(true), May);
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules it {
        src.has_sink() && bits(vec, ty) != 256 => refuse("elements are left out of 256 bits alone");
        !plain(ty) => refuse("st has no halves: `.b16` or `.b32` stores them");
        space == Space::Const => refuse("a store goes to memory that changes");
        space == Space::Param && (it.spelling.says("param::entry") || matches!(addr.base, Value::Symbol(n, _) if n < OF_CALLS))
            => refuse("a kernel does not write its parameters");
        bits(vec, ty) > 128 && !(bits(vec, ty) == 256 && matches!(ty.bits(), 32 | 64))
            => refuse("a vector has at most 128 bits, or 256 as .v8.b32 and .v4.b64");
        bits(vec, ty) == 256 && !space.wide() => refuse("256 bits are stored to global memory");
        bits(vec, ty) == 256 => since(88, Sm(100));
        order.scope.is_some() && matches!(space, Space::Local | Space::Param)
            => refuse("strong accesses go to global and shared memory");
        order.order == StoreOrder::Volatile && space == Space::Param
            => refuse("volatile accesses go to memory that changes");
        order.order == StoreOrder::Volatile && space == Space::Local => since(91, Any);
        mmio.is() && !(order.scope == Some(Scope::Sys) && vec == Vector::One && space.wide())
            => refuse("`.mmio` goes with an order, `.sys`, and one element of global memory");
        mmio.is() => since(83, Any);
        mmio.is() && order.order == StoreOrder::Release => since(93, Any);
        cache.is_some() && (order.order != StoreOrder::Weak || mmio.is())
            => refuse("a cache operator goes with no order");
        cache.is_some() && l1.is_some() => refuse("a cache operator goes with no priority in L1");
        (l1.is_some() || l2.is_some()) && mmio.is() => refuse("`.mmio` takes no hints");
        l1.is_some() && order.order == StoreOrder::Volatile
            => refuse("a priority in L1 goes with no .volatile");
        (l1.is_some() || l2.is_some() || hint.is()) && !space.wide()
            => refuse("hints of caches are for global memory");
        hint.is() && (mmio.is() || order.order == StoreOrder::Volatile)
            => refuse("`.mmio` and `.volatile` take no hints");
        l2.is_some() && bits(vec, ty) != 256 => refuse("a priority in L2 goes with .v8.b32 and .v4.b64");
        ty == Ty::B128 => since(83, Any);
        ty == Ty::B128 && order.scope == Some(Scope::Sys) => since(84, Any);
    }

    #[doc = "Reads, changes and writes memory at once, and returns what it read."]
    Atom = "atom", section "atom", since (70, Any);
    slots {
        keep order: AtomOrder;
        keep scope: Option<Scope>;
        keep space: Space;
        keep op: AtomOp;
        speed hint: CacheHint;
        keep vec: Vector;
        keep noftz: Noftz;
        keep ty: Ty;
    }
    operands {
        write dst: OrSink<List> = (vec.count(), ty.fit(false), Never);
        known addr: Unified = space;
        data a: List = (vec.count(), ty.fit(false), Never);
        known b: Option<Value> = (op == AtomOp::Cas, ty.fit(false));
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        !(space.wide() || space.shared()) => refuse("updates go to global and shared memory");
        addr.unified && !space.wide() => refuse("`.unified` is for global memory");
        !takes(op, ty) => refuse("the operation does not take this type");
        ty.half() && !noftz.is() || noftz.is() && !ty.half() && ty != Ty::F32
            => refuse("`.noftz` goes with halves, and halves with `.noftz`");
        noftz.is() && ty == Ty::F32 => since(94, Sm(90));
        hint.is() && (!space.wide() || op == AtomOp::Cas)
            => refuse("`.L2::cache_hint` is for global memory, and not for .cas");
        vec != Vector::One && !vector_update(op, vec, ty, space)
            => refuse("vectors are .v2, .v4 of .f32 and of halves up to 128 bits, in global memory");
        ty.half() && op != AtomOp::Add && vec == Vector::One
            => refuse("the minimum of halves is taken of vectors");
        vec != Vector::One => since(81, Sm(90));
        ty == Ty::B128 => since(83, Sm(90));
        ty == Ty::B128 && scope == Some(Scope::Sys) => since(84, Sm(90));
    }

    #[doc = "Reads, changes and writes memory at once."]
    Red = "red", section "red", since (70, Any);
    slots {
        keep order: RedOrder;
        keep scope: Option<Scope>;
        keep space: Space;
        keep op: RedOp;
        speed hint: CacheHint;
        keep vec: Vector;
        keep noftz: Noftz;
        keep ty: Ty;
    }
    operands {
        known addr: Address = space;
        data a: List = (vec.count(), ty.fit(false), Never);
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        !(space.wide() || space.shared()) => refuse("updates go to global and shared memory");
        !takes(op.into(), ty) => refuse("the operation does not take this type");
        ty.half() && !noftz.is() || noftz.is() && !ty.half() && ty != Ty::F32
            => refuse("`.noftz` goes with halves, and halves with `.noftz`");
        noftz.is() && ty == Ty::F32 => since(94, Sm(90));
        hint.is() && !space.wide() => refuse("`.L2::cache_hint` is for global memory");
        vec != Vector::One && !vector_update(op.into(), vec, ty, space)
            => refuse("vectors are .v2, .v4 of .f32 and of halves up to 128 bits, in global memory");
        ty.half() && op != RedOp::Add && vec == Vector::One
            => refuse("the minimum of halves is taken of vectors");
        vec != Vector::One => since(81, Sm(90));
    }

}

/// Bits of a vector access.
fn bits(vec: Vector, ty: Ty) -> usize {
    vec.count() * usize::from(ty.bits())
}

/// The old kinds of halves have no plain access.
fn plain(ty: Ty) -> bool {
    !ty.half()
}

fn spelled_order(order: Strong<LoadOrder>) -> bool {
    order.order != LoadOrder::Weak
}

fn vector_update(op: AtomOp, vec: Vector, ty: Ty, space: Space) -> bool {
    let kinds = match op {
        AtomOp::Add => ty == Ty::F32 || ty.half(),
        AtomOp::Min | AtomOp::Max => ty.half(),
        _ => false,
    };
    kinds && space.wide() && bits(vec, ty) <= 128
}
