//! Locations: files relative to the repository, lines with columns, the line of the source where a module tells it.
//!
//! Contract: a path below the repository is relative to it (`SRCROOT`), any other one is absolute. Without a repository the folder
//! in which the command runs stands for it. No location names the machine, unless the file is elsewhere.

use moire_console::bounded;
use moire_verdict::answer::{Answer, Line};
use moire_verdict::input::Rejected;
use moire_verdict::kernel::SourcePlace;
use serde_json::{Value, json};
use std::path::{Component, PathBuf};

/// The name of the folder that relative paths begin in.
pub(super) const BASE: &str = "SRCROOT";

/// Where paths begin.
pub(in crate::cmd::check) struct Root {
    here: PathBuf,
    root: PathBuf,
    /// Whether lines of a source stand for those of its module.
    sources: bool,
}

impl Root {
    pub(in crate::cmd::check) fn find() -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let root = here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&here);
        Root { root: root.to_owned(), here, sources: true }
    }

    /// The same, with the lines of the texts that are judged.
    pub(super) fn of_texts() -> Self {
        Root { sources: false, ..Root::find() }
    }

    /// The path without `.` and `..`.
    fn whole(&self, path: &str) -> PathBuf {
        let mut whole = PathBuf::new();
        for part in self.here.join(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(whole.pop()),
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
            }
        }
        whole
    }

    /// The path below the root, with `/` between its parts.
    pub(in crate::cmd::check) fn below(&self, path: &str) -> Option<String> {
        let whole = self.whole(path);
        let parts = whole.strip_prefix(&self.root).ok()?.components();
        let parts: Vec<String> = parts.map(|p| p.as_os_str().to_string_lossy().into_owned()).collect();
        Some(parts.join("/"))
    }

    fn artifact(&self, path: &str) -> Value {
        match self.below(path) {
            Some(path) => json!({"uri": encoded(&path), "uriBaseId": BASE}),
            None => {
                let path = self.whole(path).to_string_lossy().replace('\\', "/");
                json!({"uri": format!("file:///{}", encoded(path.trim_start_matches('/')))})
            }
        }
    }

    /// A file as a whole.
    pub(super) fn file(&self, path: &str) -> Value {
        json!({"physicalLocation": {"artifactLocation": self.artifact(path)}})
    }

    /// A line of a text that was judged.
    fn text(&self, answer: &Answer, number: u32) -> Value {
        let (file, own) = answer.place(number);
        let mut place = self.file(file);
        if let Some(Line { text, column, .. }) = answer.lines.get(&number) {
            place["physicalLocation"]["region"] = region(own, *column, text);
        } else if own > 0 {
            place["physicalLocation"]["region"] = json!({"startLine": own});
        }
        place
    }

    /// The line of the source that a line of a module comes from: below the root the line itself, or the call that inlined it.
    fn source(&self, place: &SourcePlace) -> Option<Value> {
        if !self.sources {
            return None;
        }
        let calls = place.inlined_at.iter().map(|at| (at.file.as_str(), at.line, 0));
        let own = std::iter::once((place.file.as_str(), place.line, place.column));
        own.chain(calls).find_map(|(file, line, column)| {
            let here = self.root.join(self.below(file)?);
            let text = bounded::read_to_string(&here).ok()?;
            let text = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
            let begin = text.chars().take_while(|c| c.is_whitespace()).count() + 1;
            let column = usize::try_from(column).ok().filter(|c| (begin..=text.chars().count()).contains(c));
            let column = column.unwrap_or(begin);
            let rest: String = text.chars().skip(column - 1).collect();
            let mut out = self.file(file);
            out["physicalLocation"]["region"] = region(line, column, rest.trim_end());
            Some(out)
        })
    }

    /// Where a reader looks for a line: in the source if it is below the root, else in the text that was judged.
    pub(super) fn line(&self, answer: &Answer, number: u32) -> Value {
        let source = answer.lines.get(&number).and_then(|line| line.source.as_ref());
        source.and_then(|s| self.source(s)).unwrap_or_else(|| self.text(answer, number))
    }

    /// The line of the text that was judged, where [`Root::line`] is another one.
    pub(super) fn behind(&self, answer: &Answer, number: u32) -> Option<Value> {
        let source = answer.lines.get(&number).and_then(|line| line.source.as_ref());
        source.and_then(|s| self.source(s)).map(|_| self.text(answer, number))
    }

    /// What a remark marks.
    pub(super) fn remark(&self, file: &str, remark: &Rejected) -> Value {
        let mut place = self.file(file);
        if remark.line > 0 {
            let marked = remark.text.chars().skip(remark.column.saturating_sub(1)).take(remark.width.max(1));
            place["physicalLocation"]["region"] =
                region(remark.line, remark.column.max(1), &marked.collect::<String>());
        }
        place
    }
}

/// One line from a column on, as far as the text goes.
fn region(line: u32, column: usize, text: &str) -> Value {
    let end = column + text.chars().count().max(1);
    json!({"startLine": line, "startColumn": column, "endLine": line, "endColumn": end, "snippet": {"text": text}})
}

/// A path as it stands in a URI.
fn encoded(path: &str) -> String {
    let one = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
        b'-' | b'.' | b'_' | b'~' | b'/' | b'&' | b'+' | b',' | b'=' | b'@' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    path.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_root_or_absolute() {
        let root = Root { here: "/a/repo/sub".into(), root: "/a/repo".into(), sources: true };
        let uri = |path| root.artifact(path)["uri"].as_str().unwrap().to_owned();
        assert_eq!(uri("k.ptx"), "sub/k.ptx");
        assert_eq!(uri("./x/../k 1.ptx"), "sub/k%201.ptx");
        assert_eq!(uri("/a/repo/k.cu"), "k.cu");
        assert_eq!(uri("../../elsewhere/ü.ptx"), "file:///a/elsewhere/%C3%BC.ptx");
        assert_eq!(uri("/usr/include/x.h"), "file:///usr/include/x.h");
        assert_eq!(root.artifact("k.ptx")["uriBaseId"], BASE);
        assert_eq!(root.artifact("/usr/x")["uriBaseId"], Value::Null);
    }
}
