//! The conversation with the editor: texts are opened, changed and closed; each is judged on a thread of its own.
//!
//! Contract: a text is judged when it has not changed for [`QUIET`]. A newer text ends the judgement of an older one, and the answer of the
//! older one is dropped. What the server does not know is refused as the protocol asks; a text that cannot be judged has a diagnostic
//! that says why.

use super::diagnostics::{Shown, shown};
use super::mends::action;
use crate::cmd::check::{Check, told_of};
use anyhow::Result;
use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{CodeActionRequest, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProviderCapability, Diagnostic,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    PublishDiagnosticsParams, Range, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind,
    Uri,
};
use moire_worker::job::Cancel;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a text has not changed before it is judged.
const QUIET: Duration = Duration::from_millis(300);
/// Stack of a thread that judges: that of a process.
const STACK: usize = 8 << 20;

/// A text that is open.
struct Text {
    uri: Uri,
    version: i32,
    text: String,
    /// When it is to be judged.
    due: Option<Instant>,
    /// Ends its judgement.
    judging: Option<Cancel>,
    /// What was said of it.
    shown: Vec<Shown>,
}

/// The answer about a version of a text.
struct Done {
    uri: String,
    version: i32,
    shown: Vec<Shown>,
}

struct Server<'a> {
    connection: &'a Connection,
    check: &'a Check,
    texts: BTreeMap<String, Text>,
    send: Sender<Done>,
}

/// Serves until the editor asks for the end.
///
/// # Errors
/// The conversation broke off.
pub(super) fn serve(connection: &Connection, check: &Check) -> Result<()> {
    let capabilities = ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    };
    connection.initialize(serde_json::to_value(capabilities)?)?;
    let (send, answers) = unbounded();
    std::thread::scope(|scope| {
        let mut server = Server { connection, check, texts: BTreeMap::new(), send };
        let ended = server.listen(scope, &answers);
        server.texts.values_mut().for_each(Text::stop);
        ended
    })
}

impl Text {
    fn stop(&mut self) {
        if let Some(judging) = self.judging.take() {
            judging.cancel();
        }
    }
}

impl<'a> Server<'a> {
    fn listen<'s>(&mut self, scope: &'s std::thread::Scope<'s, '_>, answers: &Receiver<Done>) -> Result<()>
    where
        'a: 's,
    {
        loop {
            let due = self.texts.values().filter_map(|text| text.due).min();
            let timer = due.map_or_else(never, |due| after(due.saturating_duration_since(Instant::now())));
            select! {
                recv(self.connection.receiver) -> message => match message {
                    Ok(Message::Request(request)) if self.connection.handle_shutdown(&request)? => return Ok(()),
                    Ok(Message::Request(request)) => self.request(request)?,
                    Ok(Message::Notification(note)) => self.notified(note)?,
                    Ok(Message::Response(_)) => {}
                    Err(_) => return Ok(()),
                },
                recv(answers) -> done => self.done(done?)?,
                recv(timer) -> _ => self.judge_due(scope)?,
            }
        }
    }

    fn notified(&mut self, note: Notification) -> Result<()> {
        match note.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let Some(DidOpenTextDocumentParams { text_document: t }) = read(note.params) else {
                    return Ok(());
                };
                self.changed(t.uri, t.version, t.text, Duration::ZERO);
            }
            DidChangeTextDocument::METHOD => {
                let Some(DidChangeTextDocumentParams { text_document: t, content_changes }) =
                    read(note.params)
                else {
                    return Ok(());
                };
                if let Some(last) = content_changes.into_iter().next_back() {
                    self.changed(t.uri, t.version, last.text, QUIET);
                }
            }
            DidCloseTextDocument::METHOD => {
                let Some(DidCloseTextDocumentParams { text_document: t }) = read(note.params) else {
                    return Ok(());
                };
                if let Some(mut text) = self.texts.remove(t.uri.as_str()) {
                    text.stop();
                    self.publish(text.uri, None, Vec::new())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn changed(&mut self, uri: Uri, version: i32, text: String, quiet: Duration) {
        let due = Some(Instant::now() + quiet);
        let new = Text { uri, version, text, due, judging: None, shown: Vec::new() };
        if let Some(mut old) = self.texts.insert(new.uri.as_str().to_owned(), new) {
            old.stop();
        }
    }

    /// Begins to judge what is due.
    fn judge_due<'s>(&mut self, scope: &'s std::thread::Scope<'s, '_>) -> Result<()>
    where
        'a: 's,
    {
        let now = Instant::now();
        for text in self.texts.values_mut().filter(|text| text.due.is_some_and(|due| due <= now)) {
            text.due = None;
            let cancel = Cancel::default();
            text.judging = Some(cancel.clone());
            let (uri, version, content) = (text.uri.clone(), text.version, text.text.clone());
            let (send, check) = (self.send.clone(), self.check);
            let judge = move || {
                let path = path(&uri);
                let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    told_of(&path, &content, check, &cancel)
                }));
                let shown = shown(told, &uri, &content);
                if !cancel.is_cancelled() {
                    // The editor may be gone.
                    let _ = send.send(Done { uri: uri.as_str().to_owned(), version, shown });
                }
            };
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, judge)?;
        }
        Ok(())
    }

    fn done(&mut self, done: Done) -> Result<()> {
        let Some(text) = self.texts.get_mut(&done.uri).filter(|text| text.version == done.version) else {
            return Ok(());
        };
        text.judging = None;
        text.shown = done.shown;
        let diagnostics = text.shown.iter().map(|shown| shown.diagnostic.clone()).collect();
        let (uri, version) = (text.uri.clone(), text.version);
        self.publish(uri, Some(version), diagnostics)
    }

    fn publish(&self, uri: Uri, version: Option<i32>, diagnostics: Vec<Diagnostic>) -> Result<()> {
        let params = PublishDiagnosticsParams { uri, diagnostics, version };
        let note = Notification::new(PublishDiagnostics::METHOD.to_owned(), params);
        Ok(self.connection.sender.send(Message::Notification(note))?)
    }

    fn request(&self, request: Request) -> Result<()> {
        let Request { id, method, params } = request;
        let response = match (method.as_str(), read::<CodeActionParams>(params)) {
            (CodeActionRequest::METHOD, Some(asked)) => Response::new_ok(id, self.actions(&asked)),
            (CodeActionRequest::METHOD, None) => Response::new_err(
                id,
                ErrorCode::InvalidParams as i32,
                "these are no parameters of it".to_owned(),
            ),
            (other, _) => {
                let text = format!("moire does not know `{other}`");
                Response::new_err(id, ErrorCode::MethodNotFound as i32, text)
            }
        };
        Ok(self.connection.sender.send(Message::Response(response))?)
    }

    /// The mends of what is shown in the range that is asked for.
    fn actions(&self, asked: &CodeActionParams) -> Vec<lsp_types::CodeActionOrCommand> {
        let Some(text) = self.texts.get(asked.text_document.uri.as_str()) else { return Vec::new() };
        let near = |range: &Range| range.start <= asked.range.end && asked.range.start <= range.end;
        let shown = text.shown.iter().filter(|shown| near(&shown.diagnostic.range));
        shown.filter_map(|shown| action(&text.uri, text.version, shown)).map(Into::into).collect()
    }
}

fn read<P: DeserializeOwned>(params: serde_json::Value) -> Option<P> {
    serde_json::from_value(params).ok()
}

/// The path of a text; a text without a file has its name.
fn path(uri: &Uri) -> PathBuf {
    let text = uri.as_str();
    let Some(rest) = text.strip_prefix("file://") else { return PathBuf::from(text) };
    PathBuf::from(percent_decode_str(rest).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_from_its_address() {
        let of = |text: &str| path(&text.parse().expect("an address"));
        assert_eq!(of("file:///a/b%20c/%C3%BC.ptx"), PathBuf::from("/a/b c/ü.ptx"));
        assert_eq!(of("file:///100%25.ptx"), PathBuf::from("/100%.ptx"));
        assert_eq!(of("untitled:k.ptx"), PathBuf::from("untitled:k.ptx"));
    }
}
