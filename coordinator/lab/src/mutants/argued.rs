//! Why mutants that no second witness can judge are no mistakes: a table that is checked in.

use moire_program::mutate::Mistake;

/// A line each: kinds of mistakes joined by `+`, the beginning of the instruction without its guard, the argument.
const TABLE: &str = include_str!("argued.txt");

/// The argument for a mistake in an instruction. None if the table has none.
pub(super) fn reason(mistake: Mistake, instruction: &str) -> Option<String> {
    let code = match instruction.strip_prefix('@') {
        Some(guarded) => guarded.split_once(char::is_whitespace)?.1.trim_start(),
        None => instruction,
    };
    let fits = |[kinds, start, _]: &[&str; 3]| {
        kinds.split('+').any(|kind| kind == mistake.name()) && code.starts_with(start)
    };
    lines().find(fits).map(|[_, _, why]| why.to_owned())
}

/// The lines of the table.
fn lines() -> impl Iterator<Item = [&'static str; 3]> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| line.split(" | ").collect::<Vec<_>>().try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_used() {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(lines().count(), rows, "a line has three columns");
        for [kinds, start, why] in lines() {
            for kind in kinds.split('+') {
                let mistake = Mistake::ALL.into_iter().find(|m| m.name() == kind).expect(kind);
                assert_eq!(reason(mistake, &format!("@%p1 {start}")).as_deref(), Some(why), "{start}");
            }
        }
    }
}
