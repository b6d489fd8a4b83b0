//! The models shipped with the program, by name.

/// Name and text of every shipped file; files that only hold shared definitions start with `lib-`.
pub const FILES: &[(&str, &str)] = &[
    ("any", include_str!("../../models/any.cat")),
    ("sc", include_str!("../../models/sc.cat")),
    ("ptx-6.0", include_str!("../../models/ptx-6.0.cat")),
    ("ptx-7.5", include_str!("../../models/ptx-7.5.cat")),
    ("ptx", include_str!("../../models/ptx.cat")),
    ("tile-ir", include_str!("../../models/tile-ir.cat")),
    ("lib-ptx", include_str!("../../models/lib-ptx.cat")),
    ("lib-ptx-axioms", include_str!("../../models/lib-ptx-axioms.cat")),
    ("lib-copies", include_str!("../../models/lib-copies.cat")),
    ("lib-proxy-halves", include_str!("../../models/lib-proxy-halves.cat")),
    ("lib-early", include_str!("../../models/lib-early.cat")),
    ("lib-tcgen05", include_str!("../../models/lib-tcgen05.cat")),
    ("lib-ptx-proxies", include_str!("../../models/lib-ptx-proxies.cat")),
];

/// Models a user can name.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name).filter(|name| !name.starts_with("lib-"))
}

/// The shipped files as a library for `include "NAME.cat"`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shipped;

impl crate::Library for Shipped {
    fn open(&self, name: &str) -> Option<String> {
        let stem = name.strip_suffix(".cat").unwrap_or(name);
        FILES.iter().find(|(n, _)| *n == stem).map(|(_, text)| (*text).to_owned())
    }
}

/// Loads a shipped model.
pub fn load(name: &str, variants: &crate::Variants) -> Result<crate::Model, crate::LoadError> {
    let unknown = || {
        let known: Vec<&str> = names().collect();
        crate::LoadError {
            file: name.into(),
            line: 1,
            column: 1,
            message: format!("there is no shipped model `{name}`"),
            hint: Some(match crate::error::closest(name, names()) {
                Some(near) => format!("did you mean `{near}`? shipped are {}", known.join(", ")),
                None => format!("shipped are {}; a file is named with its .cat", known.join(", ")),
            }),
        }
    };
    let text = FILES.iter().find(|(n, _)| *n == name && !n.starts_with("lib-")).ok_or_else(unknown)?.1;
    crate::load(name, text, &Shipped, variants)
}
