//! Names in canonical and generated programs: locations `x y z w ..`, threads `P0`, registers `r0`, labels `L0`.

use crate::ir::Proxy;

/// Name of the `n`-th location.
pub fn location(n: usize) -> String {
    const LETTERS: [&str; 8] = ["x", "y", "z", "w", "u", "v", "s", "t"];
    match LETTERS.get(n) {
        Some(letter) => (*letter).to_owned(),
        None => format!("x{n}"),
    }
}

/// Name of a further symbol of a location: aliases `x_a1`, textures `x_t1`, surfaces `x_s1`, constants `x_c1`.
pub fn symbol(location: &str, proxy: Proxy, n: usize) -> String {
    let tag = match proxy {
        Proxy::Generic => 'a',
        Proxy::Texture => 't',
        Proxy::Surface => 's',
        Proxy::Constant => 'c',
        Proxy::Async => 'b',
        Proxy::Tensormap => 'm',
    };
    format!("{location}_{tag}{n}")
}
