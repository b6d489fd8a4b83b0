//! Draws the protocols of a stream and their sizes.

use super::dress::dressed;
use super::{Columns, Gemm, Plan, Protocol};
use arbitrary::Unstructured;

/// A protocol of one of the families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// A combination of the documented patterns in one CTA.
    Plan(Plan),
    /// A warp-specialised matrix product.
    Gemm(Gemm),
    /// Columns allocated and deallocated.
    Columns(Columns),
}

impl Scheme {
    /// Draws a protocol. Half of all are combinations of patterns.
    pub fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Scheme> {
        Ok(match u.int_in_range(0..=7)? {
            0..=3 => Scheme::Plan(Plan::draw(u)?),
            4..=6 => Scheme::Gemm(Gemm::draw(u)?),
            _ => Scheme::Columns(Columns::draw(u)?),
        })
    }

    /// Draws a protocol, and what its order does not depend on.
    pub fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Protocol> {
        let protocol = Scheme::draw(u)?.protocol();
        Ok(dressed(protocol, u))
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            Scheme::Plan(plan) => plan.protocol(),
            Scheme::Gemm(gemm) => gemm.protocol(),
            Scheme::Columns(columns) => columns.protocol(),
        }
    }
}
