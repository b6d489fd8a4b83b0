//! Reads loads, stores and atomics through pointers and views.

use super::reader::{Read, Reader, because};
use crate::{Access, AtomicMode, Hints, Op, Order, Place, Reason, Scope, Type, Value};
use moire_program::text::scan::Parsed;

/// The operations that this file reads.
pub(super) const WORDS: &[&str] = &[
    "load_ptr_tko",
    "store_ptr_tko",
    "load_view_tko",
    "store_view_tko",
    "atomic_rmw_tko",
    "atomic_cas_tko",
    "atomic_red_view_tko",
];

/// Reads the rest of the operation `word`; `None` if another file reads it.
pub(super) fn memory(r: &mut Reader<'_>, word: &str) -> Parsed<Option<Read>> {
    Ok(Some(match word {
        "load_ptr_tko" => load_ptr(r)?,
        "store_ptr_tko" => store_ptr(r)?,
        "load_view_tko" => load_view(r)?,
        "store_view_tko" => store_view(r)?,
        "atomic_rmw_tko" => atomic_rmw(r)?,
        "atomic_cas_tko" => atomic_cas(r)?,
        "atomic_red_view_tko" => atomic_red_view(r)?,
        _ => return Ok(None),
    }))
}

pub(super) fn order(r: &mut Reader<'_>) -> Parsed<Order> {
    r.one_of("memory ordering", Order::WORDS, Order::from_word)
}

pub(super) fn scope(r: &mut Reader<'_>) -> Parsed<Scope> {
    r.one_of("memory scope", Scope::WORDS, Scope::from_word)
}

/// `relaxed device`; the scope may be missing.
pub(super) fn access(r: &mut Reader<'_>) -> Parsed<Access> {
    let order = order(r)?;
    let scope = if r.scan.peek("%") { None } else { Some(scope(r)?) };
    Ok(Access { order, scope })
}

/// `, %a`
fn further(r: &mut Reader<'_>) -> Parsed<Option<Value>> {
    if r.scan.take(",") { r.value().map(Some) } else { Ok(None) }
}

/// `token = %t`
pub(super) fn token(r: &mut Reader<'_>) -> Parsed<Option<Value>> {
    if !r.scan.keyword("token") {
        return Ok(None);
    }
    r.scan.expect("=")?;
    let at = r.scan.at;
    let token = r.value()?;
    r.agree(at, &[token], &[Type::Token])?;
    Ok(Some(token))
}

fn access_hints(r: &mut Reader<'_>) -> Parsed<Hints> {
    if !r.scan.keyword("optimization_hints") {
        return Ok(Hints::new());
    }
    r.scan.expect("=")?;
    r.hints()
}

/// `: T, ..`: a type for each of these values.
fn stated(r: &mut Reader<'_>, values: &[Value]) -> Parsed<()> {
    r.scan.expect(":")?;
    let at = r.scan.at;
    let types = r.types()?;
    if types.len() != values.len() {
        let message = format!("expected {} types, found {}", values.len(), types.len());
        return Err(because(Reason::ValueType, r.scan.error_at(at, message, None)));
    }
    r.agree(at, values, &types)
}

/// `-> T, token` if something is `loaded`, otherwise `-> token`.
pub(super) fn gives(r: &mut Reader<'_>, loaded: bool) -> Parsed<Vec<Type>> {
    r.scan.expect("->")?;
    let mut types = Vec::new();
    if loaded {
        types.push(r.ty()?);
        r.scan.expect(",")?;
    }
    r.token_type()?;
    types.push(Type::Token);
    Ok(types)
}

fn load_ptr(r: &mut Reader<'_>) -> Parsed<Read> {
    let access = access(r)?;
    let pointers = r.value()?;
    let mask = further(r)?;
    let padding = if mask.is_some() { further(r)? } else { None };
    let token = token(r)?;
    let hints = access_hints(r)?;
    let all: Vec<Value> = std::iter::once(pointers).chain(mask).chain(padding).collect();
    stated(r, &all)?;
    let types = gives(r, true)?;
    Ok((Op::LoadPtr { pointers, access, hints, mask, padding, token }, types))
}

fn store_ptr(r: &mut Reader<'_>) -> Parsed<Read> {
    let access = access(r)?;
    let pointers = r.value()?;
    r.scan.expect(",")?;
    let value = r.value()?;
    let mask = further(r)?;
    let token = token(r)?;
    let hints = access_hints(r)?;
    let all: Vec<Value> = [pointers, value].into_iter().chain(mask).collect();
    stated(r, &all)?;
    let types = gives(r, false)?;
    Ok((Op::StorePtr { pointers, value, access, hints, mask, token }, types))
}

fn atomic_rmw(r: &mut Reader<'_>) -> Parsed<Read> {
    let (order, scope) = (order(r)?, scope(r)?);
    let pointers = r.value()?;
    r.scan.expect(",")?;
    let mode = r.one_of("atomic operation", AtomicMode::WORDS, AtomicMode::from_word)?;
    r.scan.expect(",")?;
    let value = r.value()?;
    let mask = further(r)?;
    let token = token(r)?;
    let all: Vec<Value> = [pointers, value].into_iter().chain(mask).collect();
    stated(r, &all)?;
    let types = gives(r, true)?;
    Ok((Op::AtomicRmw { pointers, mode, value, order, scope, mask, token }, types))
}

/// Three types are stated: that of the pointers, that of both values, and that of the mask.
fn atomic_cas(r: &mut Reader<'_>) -> Parsed<Read> {
    let (order, scope) = (order(r)?, scope(r)?);
    let pointers = r.value()?;
    r.scan.expect(",")?;
    let compare = r.value()?;
    r.scan.expect(",")?;
    let value = r.value()?;
    let mask = further(r)?;
    let token = token(r)?;
    let all: Vec<Value> = [pointers, value].into_iter().chain(mask).collect();
    let at = r.scan.at;
    stated(r, &all)?;
    let ty = r.of(value).clone();
    r.agree(at, &[compare], &[ty])?;
    let types = gives(r, true)?;
    Ok((Op::AtomicCas { pointers, compare, value, order, scope, mask, token }, types))
}

/// `%view[%i, %j]`
pub(super) fn place(r: &mut Reader<'_>) -> Parsed<Place> {
    let view = r.value()?;
    let index = index(r)?;
    Ok(Place { view, inbounds: vec![false; index.len()], index })
}

/// `[%i, %j]`
pub(super) fn index(r: &mut Reader<'_>) -> Parsed<Vec<Value>> {
    r.scan.expect("[")?;
    let index = if r.scan.peek("]") { Vec::new() } else { r.values()? };
    r.scan.expect("]")?;
    Ok(index)
}

/// `inbounds = [true, false]`
pub(super) fn inbounds(r: &mut Reader<'_>, place: &mut Place) -> Parsed<()> {
    if !r.scan.keyword("inbounds") {
        return Ok(());
    }
    r.scan.expect("=")?;
    r.scan.expect("[")?;
    for (i, inside) in place.inbounds.iter_mut().enumerate() {
        if i > 0 {
            r.scan.expect(",")?;
        }
        *inside = r.scan.keyword("true");
        if !*inside {
            r.keyword("false")?;
        }
    }
    r.scan.expect("]")
}

/// `: T, .., V, I -> ..`: the types of the values `before`, of the view, of the values `after`, and of the indices. The
/// text states one type for all indices, one type each, or none.
pub(super) fn stated_place(
    r: &mut Reader<'_>,
    before: &[Value],
    place: &Place,
    after: &[Value],
) -> Parsed<()> {
    r.scan.expect(":")?;
    let at = r.scan.at;
    let types = r.types()?;
    let fixed: Vec<Value> = before.iter().copied().chain([place.view]).chain(after.iter().copied()).collect();
    if types.len() < fixed.len() {
        let message = format!("expected at least {} types, found {}", fixed.len(), types.len());
        return Err(because(Reason::ValueType, r.scan.error_at(at, message, None)));
    }
    let (first, mut rest) = types.split_at(fixed.len());
    r.agree(at, &fixed, first)?;
    // The multimem operations end with the type of their token.
    while let [front @ .., Type::Token] = rest {
        rest = front;
    }
    match rest {
        [] => Ok(()),
        [one] => r.agree(at, &place.index, &vec![one.clone(); place.index.len()]),
        all if all.len() == place.index.len() => r.agree(at, &place.index, all),
        all => {
            let message = format!("expected {} types of indices, found {}", place.index.len(), all.len());
            Err(because(Reason::IndexCount, r.scan.error_at(at, message, None)))
        }
    }
}

fn load_view(r: &mut Reader<'_>) -> Parsed<Read> {
    let access = access(r)?;
    let mut place = place(r)?;
    let token = token(r)?;
    let hints = access_hints(r)?;
    inbounds(r, &mut place)?;
    stated_place(r, &[], &place, &[])?;
    r.scan.expect("->")?;
    let tile = r.ty()?;
    r.scan.expect(",")?;
    r.token_type()?;
    Ok((Op::LoadView { place, access, hints, token }, vec![tile, Type::Token]))
}

fn store_view(r: &mut Reader<'_>) -> Parsed<Read> {
    let access = access(r)?;
    let value = r.value()?;
    r.scan.expect(",")?;
    let mut place = place(r)?;
    let token = token(r)?;
    let hints = access_hints(r)?;
    inbounds(r, &mut place)?;
    stated_place(r, &[value], &place, &[])?;
    let types = gives(r, false)?;
    Ok((Op::StoreView { place, value, access, hints, token }, types))
}

fn atomic_red_view(r: &mut Reader<'_>) -> Parsed<Read> {
    let (order, scope) = (order(r)?, scope(r)?);
    let mut place = place(r)?;
    r.scan.expect(",")?;
    let mode = r.one_of("atomic operation", AtomicMode::WORDS, AtomicMode::from_word)?;
    r.scan.expect(",")?;
    let value = r.value()?;
    let token = token(r)?;
    inbounds(r, &mut place)?;
    stated_place(r, &[value], &place, &[])?;
    let types = gives(r, false)?;
    Ok((Op::AtomicRedView { place, mode, value, order, scope, token }, types))
}
