//! A mend as a code action: the patch as edits of the lines it changes.

use super::diagnostics::Shown;
use lsp_types::{
    CodeAction, CodeActionKind, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier, Position,
    Range, TextDocumentEdit, TextEdit, Uri, WorkspaceEdit,
};

/// The action for a version of a text; none where there is no mend.
pub(super) fn action(uri: &Uri, version: i32, shown: &Shown) -> Option<CodeAction> {
    let (title, patch) = shown.mend.as_ref()?;
    let edits = edits(patch)?;
    let text_document = OptionalVersionedTextDocumentIdentifier { uri: uri.clone(), version: Some(version) };
    let edit = TextDocumentEdit { text_document, edits: edits.into_iter().map(OneOf::Left).collect() };
    Some(CodeAction {
        title: title.clone(),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![shown.diagnostic.clone()]),
        edit: Some(WorkspaceEdit {
            document_changes: Some(DocumentChanges::Edits(vec![edit])),
            ..WorkspaceEdit::default()
        }),
        ..CodeAction::default()
    })
}

/// The edits of a unified diff: each run of lines that go and come is one. None if the text is no such diff.
fn edits(patch: &str) -> Option<Vec<TextEdit>> {
    let mut out: Vec<TextEdit> = Vec::new();
    // The next line of the old text, and whether the last edit ends here.
    let (mut at, mut open) = (0, false);
    for line in patch.lines().skip_while(|line| !line.starts_with("@@ ")) {
        if let Some(rest) = line.strip_prefix("@@ -") {
            let old = rest.split(' ').next()?;
            let (first, count) = old.split_once(',').unwrap_or((old, "1"));
            // A hunk that takes no line stands behind the line that it names.
            at = first.parse::<u32>().ok()?.checked_sub(u32::from(count != "0"))?;
            open = false;
            continue;
        }
        let changed = line.starts_with(['-', '+']);
        if changed && !open {
            let here = Position { line: at, character: 0 };
            out.push(TextEdit { range: Range { start: here, end: here }, new_text: String::new() });
        }
        let edit = out.last_mut().filter(|_| changed);
        match (edit, line.get(1..)) {
            (Some(edit), Some(new)) if line.starts_with('+') => edit.new_text += &format!("{new}\n"),
            (Some(edit), _) => {
                at += 1;
                edit.range.end.line = at;
            }
            (None, _) => at += u32::from(line.starts_with(' ')),
        }
        open = changed;
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_its_edits() {
        let patch = "--- k\n+++ k\n@@ -2,4 +2,5 @@\n b\n-c\n+C\n+C2\n d\n+e\n f\n@@ -9,0 +11 @@\n+z\n";
        let lines = |from, to| Range::new(Position::new(from, 0), Position::new(to, 0));
        let edit = |range, text: &str| TextEdit { range, new_text: text.to_owned() };
        let all = [edit(lines(2, 3), "C\nC2\n"), edit(lines(4, 4), "e\n"), edit(lines(9, 9), "z\n")];
        assert_eq!(edits(patch).expect("a patch"), all);
        assert_eq!(edits("no patch"), None);
    }
}
