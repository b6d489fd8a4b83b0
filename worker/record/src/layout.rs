//! Where each parameter of a kernel lies, by the text of its module: sizes and alignments of the list behind `.entry`.
//!
//! Only this list is read, so that a text with instructions that nothing here knows is recorded, too.

use std::collections::BTreeMap;

/// A parameter: where it begins in the buffer of parameters, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its first byte.
    pub at: u32,
    /// Its size.
    pub size: u32,
}

/// The most bytes of all parameters of a kernel.
pub(crate) const PARAMETERS: u32 = 32_764;

/// The parameters of each kernel of a text. A kernel whose list cannot be read is left out.
pub fn layouts(text: &str) -> BTreeMap<String, Vec<Field>> {
    let text = uncommented(text);
    text.split(".entry").skip(1).filter_map(kernel).collect()
}

/// A text with its comments blanked.
fn uncommented(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        out.push_str(&rest[..at]);
        let (end, skip) = if rest[at..].starts_with("//") { ("\n", 0) } else { ("*/", 2) };
        out.push(' ');
        rest = rest[at + 2..].find(end).map_or("", |n| &rest[at + 2 + n + skip..]);
    }
    out.push_str(rest);
    out
}

/// The name and the parameters of a kernel, from the text behind `.entry` on.
fn kernel(text: &str) -> Option<(String, Vec<Field>)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '%')))?;
    let (name, rest) = (text[..end].to_owned(), text[end..].trim_start());
    let list = match rest.strip_prefix('(') {
        Some(list) => list.split(')').next()?,
        None => "",
    };
    let mut at = 0;
    let mut out = Vec::new();
    for part in list.split(',').filter(|p| !p.trim().is_empty()) {
        let (size, align) = parameter(part)?;
        at = u32::checked_next_multiple_of(at, align)?;
        out.push(Field { at, size });
        at = at.checked_add(size).filter(|at| *at <= PARAMETERS)?;
    }
    (!name.is_empty()).then_some((name, out))
}

/// The size and the alignment of a parameter such as `.param .align 64 .b8 map[128]`.
fn parameter(text: &str) -> Option<(u32, u32)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut bytes = None;
    let mut align = None;
    let mut before = "";
    for word in &words {
        // `.ptr .global .align 16` is about what a pointer points to.
        match *word {
            ".ptr" => break,
            w if before == ".align" => align = Some(w.parse().ok().filter(|n: &u32| n.is_power_of_two())?),
            w => bytes = bytes.or_else(|| element(w)),
        }
        before = word;
    }
    let bytes = bytes?;
    let count = match text.split_once('[') {
        Some((_, n)) => n.split(']').next()?.trim().parse().ok()?,
        None => 1,
    };
    Some((u32::checked_mul(bytes, count)?, align.unwrap_or(bytes)))
}

/// The bytes of a type of PTX.
fn element(word: &str) -> Option<u32> {
    let bits: u32 = word.strip_prefix(['.'])?.trim_start_matches(['b', 'u', 's', 'f']).parse().ok()?;
    let known = matches!(word.as_bytes().get(1), Some(b'b' | b'u' | b's' | b'f'));
    (known && matches!(bits, 8 | 16 | 32 | 64 | 128)).then_some(bits / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(u32, u32)]) -> Vec<Field> {
        all.iter().map(|(at, size)| Field { at: *at, size: *size }).collect()
    }

    #[test]
    fn lists_as_compilers_write_them() {
        let text = "// .entry none(.param .u64 x)\n.visible .entry _Z1kPf$1(\n .param .u64 .ptr .global .align 16 a,\n\
            .param .u32 n, /* , */ .param .align 64 .b8 map[128],\n .param .u8 last\n)\n.reqntid 128\n{ ret; }\n\
            .entry bare { ret; }\n.visible .entry empty() { ret; }";
        let all = layouts(text);
        assert_eq!(all["_Z1kPf$1"], fields(&[(0, 8), (8, 4), (64, 128), (192, 1)]));
        assert_eq!((all["bare"].len(), all["empty"].len(), all.len()), (0, 0, 3));
    }

    #[test]
    fn lists_that_make_no_sense_are_left_out() {
        for list in [
            ".param .u64",
            ".param .b8 a[4294967295]",
            ".param .b8 a[99999]",
            ".param a",
            ".param .align 3 .b8 a[3]",
        ] {
            let found = layouts(&format!(".entry k({list}) {{}}"));
            assert_eq!(found.contains_key("k"), list == ".param .u64", "{list}");
        }
        assert!(layouts(".entry").is_empty() && layouts("/* .entry k()").is_empty());
    }
}
