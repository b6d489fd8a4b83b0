//! Which protocols a stream draws, and of which sizes.

use super::{Columns, Gemm, Plan, Protocol};
use arbitrary::Unstructured;

/// A protocol of one of the families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// Patterns put together in one CTA.
    Plan(Plan),
    /// A warp-specialised matrix product.
    Gemm(Gemm),
    /// Columns taken and given back.
    Columns(Columns),
}

impl Scheme {
    /// Draws one; half of all are patterns put together.
    pub fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Scheme> {
        Ok(match u.int_in_range(0..=7)? {
            0..=3 => Scheme::Plan(Plan::draw(u)?),
            4..=6 => Scheme::Gemm(Gemm::draw(u)?),
            _ => Scheme::Columns(Columns::draw(u)?),
        })
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
