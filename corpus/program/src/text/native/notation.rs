//! Operands that only litmus texts have, where PTX has a packed number.
//!
//! ```text
//! .tmem t[64];                                        columns of tensor memory, allocated from start to end
//! .shared .b8 a[4096];
//! tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, [t+lane 32+8];      lane 32, column 8
//! tcgen05.cp.cta_group::1.128x256b [t], desc(a, 4096);                all bytes of `a`
//! tcgen05.mma.cta_group::1.kind::f16 [t], desc(a, 2048), desc(a+2048, 2048), idesc(128, 64), 1;
//! cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [a], [tile(x, 64), {0}], [b];
//! cp.async.ca.shared::cta.global [a], [x], 4, @p;                     a predicate, which has no type here
//! ```
//!
//! Each of these is read here. The book reads a register in its place, and the operation gets it back. Addresses in tensor
//! memory are those of PTX: `[t+2097160]` is `[t+lane 32+8]`, and a register with the address that `tcgen05.alloc` wrote can
//! replace a name. A 64-bit register with a real descriptor can replace `desc`, a 32-bit one `idesc`.

use super::reader::Reader;
use crate::ir::*;
use crate::limits::{OBJECT_BYTES, REGISTERS};
use crate::text::scan::Parsed;

/// An operand that was read here.
enum Noted {
    /// `desc(x, 16)`
    Range(Address, u32),
    /// `idesc(128, 64)`
    Shape(u16, u16),
    /// `tile(x, 16)`
    Tile(Tile),
    /// The name of columns of tensor memory.
    Columns(SymbolId),
}

/// The operands of an instruction that were read here.
#[derive(Default)]
pub(super) struct Notes {
    noted: Vec<Noted>,
    /// `map as tile(x, 16)`
    mapped: Option<Tile>,
    /// The register that is marked as a predicate.
    predicate: Option<String>,
}

impl Notes {
    /// The text from the cursor to the semicolon, where the cursor goes. Comments are blank there, and operands that are
    /// read here are names of registers; what remains keeps its place.
    pub(super) fn read(&mut self, r: &mut Reader<'_, '_>) -> Parsed<String> {
        let (source, mut end, mut out) = (r.scan.source, r.scan.at, String::new());
        loop {
            let done = r.scan.done() || r.scan.peek(";");
            out.extend(std::iter::repeat_n(' ', r.scan.at - end));
            if done {
                return Ok(out);
            }
            let at = r.scan.at;
            if let Some(new) = self.operand(r, &out)? {
                out.push_str(&format!("{new:width$}", width = r.scan.at - at));
            } else {
                let word = token(&source[at..]);
                out.push_str(word);
                r.scan.at = at + word.len();
            }
            end = r.scan.at;
        }
    }

    /// Reads an operand of litmus texts, if one comes next. `before` is the text up to it.
    fn operand(&mut self, r: &mut Reader<'_, '_>, before: &str) -> Parsed<Option<String>> {
        if before.trim_end().ends_with('+') && r.scan.keyword("lane") {
            let lane = r.range("a lane of", 0, i128::from(TENSOR_LANES) - 1)?;
            let column = if r.scan.take("+") { r.range("a column of", 0, 0xffff)? } else { 0 };
            return Ok(Some((lane << 16 | column).to_string()));
        }
        let behind_a_name =
            before.trim_end().ends_with(|c: char| c.is_ascii_alphanumeric() || "_$%".contains(c));
        if behind_a_name && r.scan.take("-") {
            return Ok(Some("+-".to_owned()));
        }
        if r.scan.take("@") {
            let mut ahead = r.scan.clone();
            let _ = ahead.take("!");
            self.predicate = Some(ahead.name("a predicate")?.to_owned());
            return Ok(Some(String::new()));
        }
        if r.scan.keyword("as") {
            if !r.call("tile") {
                return Err(r.scan.expected("`tile(name, bytes)`"));
            }
            let (addr, bytes) = r.bytes_of()?;
            self.mapped = Some(Tile { addr, bytes });
            return Ok(Some(String::new()));
        }
        let noted = if r.call("desc") {
            let (addr, bytes) = r.bytes_of()?;
            Noted::Range(addr, bytes)
        } else if r.call("tile") {
            let (addr, bytes) = r.bytes_of()?;
            Noted::Tile(Tile { addr, bytes })
        } else if r.call("idesc") {
            let rows = r.range("rows of", 32, 256)?;
            r.scan.expect(",")?;
            let columns = r.range("columns of", 8, 256)?;
            r.scan.expect(")")?;
            let small = |n: i128| u16::try_from(n).expect("within the range");
            Noted::Shape(small(rows), small(columns))
        } else {
            return Ok(None);
        };
        self.noted.push(noted);
        Ok(Some(format!("%{}", self.noted.len() - 1)))
    }

    /// The register that stands for columns of tensor memory.
    pub(super) fn columns(&mut self, symbol: SymbolId) -> usize {
        let same = |noted: &Noted| matches!(noted, Noted::Columns(known) if *known == symbol);
        let at = self.noted.iter().position(same).unwrap_or_else(|| {
            self.noted.push(Noted::Columns(symbol));
            self.noted.len() - 1
        });
        REGISTERS + at
    }

    /// The register that a name stands for, if it stands for an operand that was read here. A thread has fewer registers.
    pub(super) fn register(&self, name: &str) -> Option<usize> {
        let n: usize = name.strip_prefix('%')?.parse().ok()?;
        (n < self.noted.len()).then_some(REGISTERS + n)
    }

    /// Whether a name is marked as a predicate.
    pub(super) fn is_predicate(&self, name: &str) -> bool {
        self.predicate.as_deref() == Some(name)
    }

    fn noted(&self, operand: Operand) -> Option<&Noted> {
        match operand {
            Operand::Reg(reg) => self.noted.get(reg.index().checked_sub(REGISTERS)?),
            Operand::Imm(_) | Operand::Address(_) => None,
        }
    }

    /// Gives the operation the operands that were read here. Returns whether all have a place in it.
    pub(super) fn restore(&self, op: &mut Op) -> bool {
        op.each(&mut |part| {
            if let Part::Source(operand, _) = part
                && let Some(Noted::Columns(symbol)) = self.noted(*operand)
            {
                *operand = Operand::Address(*symbol);
            }
        });
        let range = |at: &mut Descriptor| {
            if let Descriptor::Packed(packed) = at
                && let Some(Noted::Range(addr, bytes)) = self.noted(*packed)
            {
                *at = Descriptor::Range { addr: *addr, bytes: *bytes };
            }
        };
        let mut mapped = None;
        match op {
            Op::Tcgen05(Tcgen05::Copy { src, .. }) => range(src),
            Op::Tcgen05(Tcgen05::Mma(mma)) => {
                if let Factor::Shared(a) = &mut mma.a {
                    range(a);
                }
                range(&mut mma.b);
                if let ProductShape::Packed(packed) = mma.shape
                    && let Some(Noted::Shape(m, n)) = self.noted(packed)
                {
                    mma.shape = ProductShape::Tile { m: *m, n: *n };
                }
            }
            Op::Wgmma(Wgmma::Product(product)) => {
                if let WgmmaFactor::Shared(a) = &mut product.a {
                    range(a);
                }
                range(&mut product.b);
            }
            Op::AsyncCopy(AsyncCopy::Bulk(copy)) => {
                mapped = self.boxed(&mut copy.dst).or(self.boxed(&mut copy.src));
            }
            Op::AsyncCopy(AsyncCopy::Prefetch(fetch)) => mapped = self.boxed(&mut fetch.src),
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | multimem_op!() | Op::Mbarrier(_) => {}
            unit_op!() | register_op!() | fence_op!() | barrier_op!() | jump_op!() => {}
            Op::Tile(_) | Op::Control(_) | Op::Book(_) => {}
        }
        let mut left = mapped != self.mapped;
        op.registers(&mut |reg, _| left |= reg.index() >= REGISTERS);
        !left
    }

    /// Gives a box its bytes. Returns those that stand beside a map.
    fn boxed(&self, end: &mut BulkEnd) -> Option<Tile> {
        let BulkEnd::Tensor(tensor) = end else { return None };
        if let Some(Noted::Tile(tile)) = tensor.map.and_then(|map| self.noted(map.base)) {
            (tensor.map, tensor.tile) = (None, Some(*tile));
            return None;
        }
        tensor.tile = self.mapped;
        self.mapped
    }
}

/// The name or number that a text begins with, or its first character.
fn token(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_$%.".contains(c))).unwrap_or(text.len());
    let end = if end == 0 { text.chars().next().map_or(0, char::len_utf8) } else { end };
    &text[..end]
}

impl Reader<'_, '_> {
    /// Reads `x+offset, bytes)` of `desc` and `tile`.
    fn bytes_of(&mut self) -> Parsed<(Address, u32)> {
        let base = self.operand()?;
        if matches!(base, Operand::Imm(_)) {
            return self.fail("a number is not an address".into(), Some("use a name or a register".into()));
        }
        let offset = self.offset()?;
        self.scan.expect(",")?;
        let bytes = self.range("a size of", 1, i128::from(OBJECT_BYTES))?;
        self.scan.expect(")")?;
        Ok((Address { base, offset }, u32::try_from(bytes).expect("within the range")))
    }
}
