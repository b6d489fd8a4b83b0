//! Tests of source programs: texts, canonical form, reduction, lowering and printers, on drawn programs.

mod drawn;
mod hostile;
mod printed;
