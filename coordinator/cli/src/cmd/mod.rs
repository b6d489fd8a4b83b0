//! One file a command.

pub(crate) mod bisect;
pub(crate) mod campaign;
pub(crate) mod certify;
pub(crate) mod certs;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod findings;
pub(crate) mod fuzz;
pub(crate) mod generate;
pub(crate) mod gpu;
pub(crate) mod library;
pub(crate) mod lsp;
pub(crate) mod models;
pub(crate) mod nightly;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod store;
pub(crate) mod test;
pub(crate) mod top;
