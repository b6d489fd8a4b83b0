//! The lines that a kernel was written in: `.file` and `.loc` of a PTX module (PTX ISA 9.0, section 11.5).
//!
//! Contract: a `.loc` is about the lines behind it, up to the next one or the next function. A module without them has no
//! origins; what cannot be read is passed over.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A place in the source of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourcePlace {
    /// The path of the file as the compiler wrote it.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1; 0 if it is not told.
    pub column: u32,
    /// The place of the call, where the line was inlined.
    pub inlined_at: Option<Call>,
}

/// The place of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Call {
    /// The path of the file.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
}

impl SourcePlace {
    /// `kernel.py:23, inlined at kernel.py:40`
    pub fn text(&self) -> String {
        let name = |file: &str| file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
        let inlined = self.inlined_at.as_ref();
        let inlined =
            inlined.map_or(String::new(), |at| format!(", inlined at {}:{}", name(&at.file), at.line));
        format!("{}:{}{inlined}", name(&self.file), self.line)
    }
}

/// The origins of lines of a module, counted from 1.
pub(crate) fn source_places(text: &str, lines: &BTreeSet<u32>) -> BTreeMap<u32, SourcePlace> {
    let mut out = BTreeMap::new();
    let files: BTreeMap<&str, &str> = text.lines().filter_map(file).collect();
    let last = lines.last().copied().unwrap_or_default();
    if files.is_empty() {
        return out;
    }
    let named = |index: &str| files.get(index).map(|f| (*f).to_owned());
    let mut found: Option<SourcePlace> = None;
    for (n, text) in (1..=last).zip(text.lines()) {
        let mut words = text.split([' ', '\t', ',']).filter(|w| !w.is_empty());
        match words.next() {
            Some(".loc") => {
                let words: Vec<&str> = words.collect();
                let number = |at: usize| words.get(at)?.parse::<u32>().ok();
                let call = words.iter().position(|w| *w == "inlined_at");
                let call = call
                    .and_then(|at| Some(Call { file: named(words.get(at + 1)?)?, line: number(at + 2)? }));
                let place = words.first().and_then(|index| named(index)).zip(number(1));
                // Line 0 is code that the compiler made by itself.
                found = place.filter(|(_, line)| *line > 0).map(|(file, line)| SourcePlace {
                    file,
                    line,
                    column: number(2).unwrap_or_default(),
                    inlined_at: call,
                });
            }
            Some(_) if text.contains(".entry") || text.contains(".func") => found = None,
            _ => {}
        }
        out.extend(found.as_ref().filter(|_| lines.contains(&n)).map(|place| (n, place.clone())));
    }
    out
}

/// Index and path of a `.file`.
fn file(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix(".file")?.trim_start();
    let (index, rest) = rest.split_once([' ', '\t'])?;
    Some((index, rest.split('"').nth(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = ".version 8.7\n.visible .entry k()\n{\n  mov.u32 %r0, 0;\n  .loc\t1 23 5\n  st.shared.b32 [x], 1;\n\
        \n  .loc 2 7 3, function_name $L__info_string0, inlined_at 1 40 9\n  ld.shared.b32 %r1, [x];\n  .loc 1 0 0\n  ret;\n}\n\
        .func f()\n{\n  ret;\n}\n.file 1 \"/src/a b/kernel.py\"\n.file\t2 \"helper.py\", 123, 9\n";

    fn source_place(text: &str, line: u32) -> Option<SourcePlace> {
        source_places(text, &BTreeSet::from([line])).remove(&line)
    }

    #[test]
    fn lines_have_the_place_that_stands_before_them() {
        let text = |line| source_place(MODULE, line).map(|o| o.text());
        assert_eq!(text(4), None);
        assert_eq!(text(6).as_deref(), Some("kernel.py:23"));
        assert_eq!(text(9).as_deref(), Some("helper.py:7, inlined at kernel.py:40"));
        assert_eq!(text(11), None, "the compiler made it by itself");
        assert_eq!(text(15), None, "another function");
        let one = source_place(MODULE, 6).unwrap();
        assert_eq!((one.file.as_str(), one.column), ("/src/a b/kernel.py", 5));
        let all = source_places(MODULE, &(0..99).collect());
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
    }

    #[test]
    fn nothing_is_assumed_of_bad_directives() {
        for bad in
            [".loc", ".loc 1", ".loc x y", ".loc 9 1 1", ".loc 1 99999999999999 1", ".loc 1 5 1, inlined_at"]
        {
            let module = format!(".file 1 \"k.py\"\n.file\n.file 3\n{bad}\nret;\n");
            let found = source_place(&module, 5);
            assert!(found.is_none() || found.unwrap().inlined_at.is_none(), "{bad}");
        }
        assert_eq!(source_place("", 7), None);
    }
}
