//! Reads operands of tensor-core instructions and asynchronous copies: addresses in tensor memory, descriptors, multicast
//! masks.

use super::reader::Reader;
use crate::ir::*;
use crate::limits::OBJECT_BYTES;
use crate::text::scan::Parsed;

impl Reader<'_, '_> {
    /// Reads `[base]`, `[base+n]`, `[base+lane n]` or `[base+lane n+n]`.
    pub(super) fn tensor_address(&mut self) -> Parsed<Address> {
        self.scan.expect("[")?;
        let base = self.tensor_base()?;
        let mut offset = 0;
        let mut lanes = 0;
        if self.scan.take("+") {
            if self.scan.keyword("lane") {
                lanes = self.range("a lane of", 0, i128::from(TENSOR_LANES) - 1)?;
                offset = if self.scan.take("+") { self.range("a column of", 0, 0xffff)? } else { 0 };
            } else {
                offset = self.scan.number()?;
            }
        } else if self.scan.peek("-") {
            offset = self.scan.number()?;
        }
        self.scan.expect("]")?;
        match i32::try_from(lanes << 16 | offset) {
            Ok(offset) => Ok(Address { base, offset }),
            Err(_) => self.fail(format!("the offset {offset} does not fit 32 bits"), None),
        }
    }

    fn tensor_base(&mut self) -> Parsed<Operand> {
        match self.operand()? {
            Operand::Imm(_) => self.fail(
                "a number is not an address in tensor memory".into(),
                Some("use a name declared with .tmem, or a register".into()),
            ),
            base => Ok(base),
        }
    }

    /// Reads `x+offset, bytes)` of `desc` and `tile`.
    pub(super) fn bytes_of(&mut self) -> Parsed<(Address, u32)> {
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

    /// Reads `desc(x+offset, bytes)`, a register or a number.
    pub(super) fn descriptor(&mut self) -> Parsed<Descriptor> {
        if self.call("desc") {
            let (addr, bytes) = self.bytes_of()?;
            return Ok(Descriptor::Range { addr, bytes });
        }
        Ok(Descriptor::Packed(self.value("descriptor", "desc(name, bytes)")?))
    }

    /// Reads a predicate, negated or not, or 0 or 1.
    pub(super) fn enable_input(&mut self) -> Parsed<EnableInput> {
        if self.scan.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(EnableInput::Always(self.range("a truth value of", 0, 1)? == 1));
        }
        let negated = self.scan.take("!");
        Ok(EnableInput::When(Guard { reg: self.reg()?, negated }))
    }

    /// Reads `, mask` of an instruction with `.multicast`; `words` says whether the mask has 32 bits.
    pub(super) fn multicast(&mut self, words: Option<bool>) -> Parsed<Option<Multicast>> {
        let Some(wide) = words else { return Ok(None) };
        self.scan.expect(",")?;
        Ok(Some(Multicast { wide, mask: self.value("mask of CTAs", "a number")? }))
    }
}
