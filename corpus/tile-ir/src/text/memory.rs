//! Loads, stores and atomics, through pointers and through views.

use super::{Read, Reader, because};
use crate::{Access, AtomicMode, Hints, Op, Order, Place, Reason, Scope, Type, Value};
use moire_program::text::scan::Parsed;

/// Words of this file.
pub(super) const WORDS: &[&str] = &[
    "load_ptr_tko",
    "store_ptr_tko",
    "load_view_tko",
    "store_view_tko",
    "atomic_rmw_tko",
    "atomic_cas_tko",
    "atomic_red_view_tko",
];

impl<'a> Reader<'a> {
    /// The operation `word`, whose word was read; nothing where it is not of this file.
    pub(super) fn memory(&mut self, word: &str) -> Parsed<Option<Read>> {
        Ok(Some(match word {
            "load_ptr_tko" => self.load_ptr()?,
            "store_ptr_tko" => self.store_ptr()?,
            "load_view_tko" => self.load_view()?,
            "store_view_tko" => self.store_view()?,
            "atomic_rmw_tko" => self.atomic_rmw()?,
            "atomic_cas_tko" => self.atomic_cas()?,
            "atomic_red_view_tko" => self.atomic_red_view()?,
            _ => return Ok(None),
        }))
    }

    pub(super) fn order(&mut self) -> Parsed<Order> {
        self.one_of("memory ordering", Order::WORDS, Order::from_word)
    }

    pub(super) fn scope(&mut self) -> Parsed<Scope> {
        self.one_of("memory scope", Scope::WORDS, Scope::from_word)
    }

    /// `relaxed device`; the scope may be missing.
    pub(super) fn access(&mut self) -> Parsed<Access> {
        let order = self.order()?;
        let scope = if self.scan.peek("%") { None } else { Some(self.scope()?) };
        Ok(Access { order, scope })
    }

    /// `, %a`
    fn further(&mut self) -> Parsed<Option<Value>> {
        if self.scan.take(",") { self.value().map(Some) } else { Ok(None) }
    }

    /// `token = %t`
    pub(super) fn token(&mut self) -> Parsed<Option<Value>> {
        if !self.scan.keyword("token") {
            return Ok(None);
        }
        self.scan.expect("=")?;
        let at = self.scan.at;
        let token = self.value()?;
        self.agree(at, &[token], &[Type::Token])?;
        Ok(Some(token))
    }

    fn access_hints(&mut self) -> Parsed<Hints> {
        if !self.scan.keyword("optimization_hints") {
            return Ok(Hints::new());
        }
        self.scan.expect("=")?;
        self.hints()
    }

    /// `: T, ..` of these values.
    fn stated(&mut self, values: &[Value]) -> Parsed<()> {
        self.scan.expect(":")?;
        let at = self.scan.at;
        let types = self.types()?;
        if types.len() != values.len() {
            let message = format!("expected {} types, found {}", values.len(), types.len());
            return Err(because(Reason::ValueType, self.scan.error_at(at, message, None)));
        }
        self.agree(at, values, &types)
    }

    /// `-> T, token`, or only the token.
    pub(super) fn gives(&mut self, loaded: bool) -> Parsed<Vec<Type>> {
        self.scan.expect("->")?;
        let mut types = Vec::new();
        if loaded {
            types.push(self.ty()?);
            self.scan.expect(",")?;
        }
        self.token_type()?;
        types.push(Type::Token);
        Ok(types)
    }

    fn load_ptr(&mut self) -> Parsed<Read> {
        let access = self.access()?;
        let pointers = self.value()?;
        let mask = self.further()?;
        let padding = if mask.is_some() { self.further()? } else { None };
        let token = self.token()?;
        let hints = self.access_hints()?;
        let all: Vec<Value> = std::iter::once(pointers).chain(mask).chain(padding).collect();
        self.stated(&all)?;
        let types = self.gives(true)?;
        Ok((Op::LoadPtr { pointers, access, hints, mask, padding, token }, types))
    }

    fn store_ptr(&mut self) -> Parsed<Read> {
        let access = self.access()?;
        let pointers = self.value()?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let mask = self.further()?;
        let token = self.token()?;
        let hints = self.access_hints()?;
        let all: Vec<Value> = [pointers, value].into_iter().chain(mask).collect();
        self.stated(&all)?;
        let types = self.gives(false)?;
        Ok((Op::StorePtr { pointers, value, access, hints, mask, token }, types))
    }

    fn atomic_rmw(&mut self) -> Parsed<Read> {
        let (order, scope) = (self.order()?, self.scope()?);
        let pointers = self.value()?;
        self.scan.expect(",")?;
        let mode = self.one_of("atomic operation", AtomicMode::WORDS, AtomicMode::from_word)?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let mask = self.further()?;
        let token = self.token()?;
        let all: Vec<Value> = [pointers, value].into_iter().chain(mask).collect();
        self.stated(&all)?;
        let types = self.gives(true)?;
        Ok((Op::AtomicRmw { pointers, mode, value, order, scope, mask, token }, types))
    }

    /// The types are those of the pointers, of both values at once, and of the mask.
    fn atomic_cas(&mut self) -> Parsed<Read> {
        let (order, scope) = (self.order()?, self.scope()?);
        let pointers = self.value()?;
        self.scan.expect(",")?;
        let compare = self.value()?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let mask = self.further()?;
        let token = self.token()?;
        let all: Vec<Value> = [pointers, value].into_iter().chain(mask).collect();
        let at = self.scan.at;
        self.stated(&all)?;
        let ty = self.of(value).clone();
        self.agree(at, &[compare], &[ty])?;
        let types = self.gives(true)?;
        Ok((Op::AtomicCas { pointers, compare, value, order, scope, mask, token }, types))
    }

    /// `%view[%i, %j]`
    pub(super) fn place(&mut self) -> Parsed<Place> {
        let view = self.value()?;
        let index = self.index()?;
        Ok(Place { view, inbounds: vec![false; index.len()], index })
    }

    /// `[%i, %j]`
    pub(super) fn index(&mut self) -> Parsed<Vec<Value>> {
        self.scan.expect("[")?;
        let index = if self.scan.peek("]") { Vec::new() } else { self.values()? };
        self.scan.expect("]")?;
        Ok(index)
    }

    /// `inbounds = [true, false]`
    pub(super) fn inbounds(&mut self, place: &mut Place) -> Parsed<()> {
        if !self.scan.keyword("inbounds") {
            return Ok(());
        }
        self.scan.expect("=")?;
        self.scan.expect("[")?;
        for (i, inside) in place.inbounds.iter_mut().enumerate() {
            if i > 0 {
                self.scan.expect(",")?;
            }
            *inside = self.scan.keyword("true");
            if !*inside {
                self.keyword("false")?;
            }
        }
        self.scan.expect("]")
    }

    /// `: T, .., V, I -> ..`: types of values, of the view, and of the indices: one for all, or one each, or none.
    pub(super) fn stated_place(&mut self, before: &[Value], place: &Place, after: &[Value]) -> Parsed<()> {
        self.scan.expect(":")?;
        let at = self.scan.at;
        let types = self.types()?;
        let fixed: Vec<Value> =
            before.iter().copied().chain([place.view]).chain(after.iter().copied()).collect();
        if types.len() < fixed.len() {
            let message = format!("expected at least {} types, found {}", fixed.len(), types.len());
            return Err(because(Reason::ValueType, self.scan.error_at(at, message, None)));
        }
        let (first, mut rest) = types.split_at(fixed.len());
        self.agree(at, &fixed, first)?;
        // The multimem operations end with the type of their token.
        while let [front @ .., Type::Token] = rest {
            rest = front;
        }
        match rest {
            [] => Ok(()),
            [one] => self.agree(at, &place.index, &vec![one.clone(); place.index.len()]),
            all if all.len() == place.index.len() => self.agree(at, &place.index, all),
            all => {
                let message = format!("expected {} types of indices, found {}", place.index.len(), all.len());
                Err(because(Reason::IndexCount, self.scan.error_at(at, message, None)))
            }
        }
    }

    fn load_view(&mut self) -> Parsed<Read> {
        let access = self.access()?;
        let mut place = self.place()?;
        let token = self.token()?;
        let hints = self.access_hints()?;
        self.inbounds(&mut place)?;
        self.stated_place(&[], &place, &[])?;
        self.scan.expect("->")?;
        let tile = self.ty()?;
        self.scan.expect(",")?;
        self.token_type()?;
        Ok((Op::LoadView { place, access, hints, token }, vec![tile, Type::Token]))
    }

    fn store_view(&mut self) -> Parsed<Read> {
        let access = self.access()?;
        let value = self.value()?;
        self.scan.expect(",")?;
        let mut place = self.place()?;
        let token = self.token()?;
        let hints = self.access_hints()?;
        self.inbounds(&mut place)?;
        self.stated_place(&[value], &place, &[])?;
        let types = self.gives(false)?;
        Ok((Op::StoreView { place, value, access, hints, token }, types))
    }

    fn atomic_red_view(&mut self) -> Parsed<Read> {
        let (order, scope) = (self.order()?, self.scope()?);
        let mut place = self.place()?;
        self.scan.expect(",")?;
        let mode = self.one_of("atomic operation", AtomicMode::WORDS, AtomicMode::from_word)?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let token = self.token()?;
        self.inbounds(&mut place)?;
        self.stated_place(&[value], &place, &[])?;
        let types = self.gives(false)?;
        Ok((Op::AtomicRedView { place, mode, value, order, scope, token }, types))
    }
}
