//! `moire lsp`, as an editor talks to it.

use lsp_server::{Message, Notification, Request, RequestId};
use serde_json::{Value, json};
use std::io::BufReader;
use std::process::{Child, ChildStdout, Command, Stdio};

const RACE: &str = "moire \"mp\"\n.global .b32 x;\n.global .b32 y;\n\
    P0 (gpu 0, cta 0) {\n  st.weak.u32 [x], 1;\n  st.relaxed.gpu.u32 [y], 1;\n}\n\
    P1 (gpu 0, cta 1) {\nL:\n  ld.acquire.gpu.u32 r0, [y];\n  setp.eq.u32 p, r0, 0;\n  @p bra L;\n  ld.weak.u32 r1, [x];\n}\n";

struct Editor {
    child: Child,
    answers: BufReader<ChildStdout>,
    asked: i32,
}

impl Editor {
    fn new(options: &[&str]) -> Editor {
        let mut child = Command::new(env!("CARGO_BIN_EXE_moire"))
            .arg("lsp")
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut editor = Editor { child, answers, asked: 0 };
        let told = editor.ask("initialize", json!({"capabilities": {}}));
        assert_eq!(told["capabilities"]["textDocumentSync"], 1);
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: Message) {
        message.write(self.child.stdin.as_mut().expect("a pipe")).expect("the server listens");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(Message::Notification(Notification { method: method.to_owned(), params }));
    }

    fn next(&mut self) -> Message {
        Message::read(&mut self.answers).expect("a message").expect("the server goes on")
    }

    /// The answer to a request, or the error.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id: RequestId = self.asked.into();
        self.send(Message::Request(Request { id: id.clone(), method: method.to_owned(), params }));
        loop {
            if let Message::Response(response) = self.next() {
                assert_eq!(response.id, id);
                return response
                    .response_result
                    .unwrap_or_else(|e| json!({"code": e.code, "message": e.message}));
            }
        }
    }

    /// The diagnostics that come next, with the version they are about.
    fn told(&mut self) -> (Value, Vec<Value>) {
        loop {
            if let Message::Notification(Notification { method, mut params }) = self.next() {
                assert_eq!(method, "textDocument/publishDiagnostics");
                let all = params["diagnostics"].as_array().cloned().expect("a list");
                return (params["version"].take(), all);
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "languageId": "ptx", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
        let (version, all) = self.told();
        assert_eq!(version, 1);
        all
    }

    fn change(&mut self, uri: &str, version: i32, text: &str) {
        let document = json!({"uri": uri, "version": version});
        self.tell(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": [{"text": text}]}),
        );
    }

    fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.tell("exit", Value::Null);
        assert!(self.child.wait().expect("an end").success());
    }
}

fn line(place: &Value) -> u64 {
    place["start"]["line"].as_u64().expect("a line")
}

/// The text with the edits of an action, which are of whole lines.
fn edited(text: &str, action: &Value) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let edits = action["edit"]["documentChanges"][0]["edits"].as_array().expect("edits");
    for edit in edits.iter().rev() {
        let (from, to) = (&edit["range"]["start"], &edit["range"]["end"]);
        assert_eq!((&from["character"], &to["character"]), (&json!(0), &json!(0)));
        let at = |place: &Value| usize::try_from(place["line"].as_u64().expect("a line")).expect("small");
        lines.splice(at(from)..at(to), [edit["newText"].as_str().expect("a text")]);
    }
    lines.concat()
}

#[test]
fn a_race_has_both_places_and_a_mend_that_ends_it() {
    let mut editor = Editor::new(&[]);
    let uri = "untitled:mp.litmus";
    let all = editor.open(uri, RACE);
    let [race] = &all[..] else { panic!("{all:#?}") };
    assert_eq!(
        (&race["severity"], &race["code"], &race["source"]),
        (&json!(1), &json!("race"), &json!("moire"))
    );
    let related: Vec<u64> = race["relatedInformation"]
        .as_array()
        .expect("places")
        .iter()
        .map(|r| line(&r["location"]["range"]))
        .chain([line(&race["range"])])
        .collect();
    assert!(related.contains(&4) && related.contains(&12), "{race:#}");

    let asked = json!({"textDocument": {"uri": uri}, "range": race["range"], "context": {"diagnostics": []}});
    let actions = editor.ask("textDocument/codeAction", asked);
    let [action] = &actions.as_array().expect("actions")[..] else { panic!("{actions:#}") };
    assert_eq!(action["edit"]["documentChanges"][0]["textDocument"]["version"], 1);
    let mended = edited(RACE, action);
    assert!(mended.contains("release"), "{mended}");
    editor.change(uri, 2, &mended);
    assert_eq!(editor.told(), (json!(2), Vec::new()));
    editor.end();
}

#[test]
fn what_is_typed_meanwhile_counts_and_errors_have_their_place() {
    let mut editor = Editor::new(&["--explain-time", "1s"]);
    let uri = "untitled:mp.litmus";
    editor.open(uri, RACE);
    for version in 2..9 {
        editor.change(uri, version, "moire \"mp\"\nP0 (gpu 0, cta 0) {\n  st.week.u32 [x], 1;\n}\n");
    }
    let (version, all) = editor.told();
    assert_eq!(version, 8);
    assert!(all.iter().any(|d| line(&d["range"]) == 2 && d["severity"] == 1), "{all:#?}");
    editor.tell("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    assert_eq!(editor.told(), (Value::Null, Vec::new()));
    assert_eq!(editor.ask("textDocument/hover", json!({}))["code"], -32601);
    editor.tell("textDocument/didOpen", json!({"nonsense": true}));
    editor.end();
}

/// A clean kernel is not silent: what it was launched with stands beside it.
#[test]
fn what_is_taken_for_granted_is_a_note() {
    let mut editor = Editor::new(&[]);
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n.reqntid 32, 1, 1\n{\n\
        .reg .b64 %rd<3>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n\
        add.s64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
    let all = editor.open("untitled:k.ptx", text);
    let [note] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((&note["severity"], line(&note["range"])), (&json!(3), 0));
    let said = note["message"].as_str().expect("a text");
    assert!(said.starts_with("clean\n") && said.contains("--grid"), "{said}");
    editor.end();
}

#[test]
fn options_that_print_are_refused() {
    crate::cli::check(&["lsp", "--format", "json"], &[], 2, "no files and no formats");
    crate::cli::check(&["lsp", "--explain-tme", "1s"], &[], 2, "--explain-time");
}
