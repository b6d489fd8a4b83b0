//! A finished graph: the order of operations inside each mbarrier phase, whether a hang is real, and what a visitor is
//! shown.

pub(crate) mod hang;
pub(crate) mod settle;
pub(crate) mod view;
