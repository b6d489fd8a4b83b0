//! Whether a kernel is right, as the folder that it lies in says.
//!
//! The third column of the row of a file in an `EXPECT.tsv` begins with `clean`, or names what is wrong. `X or clean` is open.
//! Without a row the name decides: a mistake is marked in it.

use std::path::Path;

/// What marks a kernel with a mistake, in its name.
const MARKS: [&str; 4] = [".bug", "-bug", ".wrong", ".mutant-"];

pub(super) fn of(path: &Path) -> Option<bool> {
    let row = path.ancestors().skip(1).take(3).find_map(|folder| {
        let table = std::fs::read_to_string(folder.join("EXPECT.tsv")).ok()?;
        let own = path.strip_prefix(folder).ok()?;
        listed(&table, own)
    });
    match row {
        Some(expected) if expected.contains(" or ") => None,
        Some(expected) => Some(expected.starts_with("clean")),
        None => {
            Some(!path.file_stem().is_some_and(|s| MARKS.iter().any(|m| s.to_string_lossy().contains(m))))
        }
    }
}

/// What is expected of a file, with or without its ending.
fn listed(table: &str, file: &Path) -> Option<String> {
    let row = table.lines().map(|line| line.split('\t').collect::<Vec<_>>()).find(|row| {
        let name = Path::new(row[0]);
        name == file || name == file.with_extension("")
    })?;
    row.get(2).map(|cell| (*cell).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_decides_before_the_name() {
        let table = "file\tby\texpected\na/b.ptx\tx\trace, hang\nc\ty\tclean\nd\tz\trace or clean\n";
        let of = |name: &str| listed(table, Path::new(name));
        assert_eq!(of("a/b.ptx").as_deref(), Some("race, hang"));
        assert_eq!(of("c.ptx").as_deref(), Some("clean"));
        assert_eq!(of("e.ptx"), None);
    }

    #[test]
    fn a_mistake_is_marked_in_the_name() {
        let of = |name: &str| super::of(Path::new(name));
        assert_eq!(of("nowhere/x.bug2.ptx"), Some(false));
        assert_eq!(of("nowhere/x.mutant-3.ptx"), Some(false));
        assert_eq!(of("nowhere/x.ptx"), Some(true));
    }
}
