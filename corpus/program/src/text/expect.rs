//! The answers that a text expects: its last lines, `// expect: ANSWER`, one for each model.

const MARK: &str = "// expect: ";

/// The answers that a text expects, in its order.
pub fn expectations(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix(MARK))
}

/// A text that expects these answers, one a line, and no others.
pub fn expecting(text: &str, answers: &str) -> String {
    let own = text.lines().filter(|line| !line.starts_with(MARK)).map(str::to_owned);
    let lines = own.chain(answers.lines().map(|answer| format!("{MARK}{answer}")));
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_last_lines() {
        let text = "// expect: ptx 1 0 clean\nmoire \"x\"\n";
        assert_eq!(expectations(text).collect::<Vec<_>>(), ["ptx 1 0 clean"]);
        let again = expecting(text, "sc 2 0 clean\nptx 3 0 race");
        assert_eq!(again, "moire \"x\"\n// expect: sc 2 0 clean\n// expect: ptx 3 0 race\n");
        assert_eq!(expecting(&again, "sc 2 0 clean\nptx 3 0 race"), again);
    }
}
