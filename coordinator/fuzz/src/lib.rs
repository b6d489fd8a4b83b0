//! What holds of anything said to a coordinator; fuzzers try it, and a test has it of all inputs that are kept.

mod talk;

use moire_coordinator::line::Line;
use moire_coordinator::report::Night;
use moire_coordinator::{check_tokens, v1};
use moire_corpus::Finding;
use prost::Message;
use talk::{Said, Talk};

/// Largest message that is read.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Things said in one talk.
const SAID_MAX: usize = 64;

/// A message of length and bytes; nothing where it is none.
fn message<M: Message + Default + PartialEq>(bytes: &[u8]) -> Option<M> {
    let read = M::decode(bytes).ok()?;
    assert!(M::decode(&*read.encode_to_vec()).as_ref() == Ok(&read), "it reads otherwise once it is written");
    Some(read)
}

/// The next thing said: its kind, a worker where one speaks, the length, and so many bytes.
fn next(bytes: &mut &[u8]) -> Option<Option<Said>> {
    let (kind, rest) = bytes.split_first()?;
    let (who, rest) = if kind % 11 < 4 { rest.split_first()? } else { (&0, rest) };
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (body, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    *bytes = rest;
    Some(match kind % 11 {
        0 => Some(Said::Gone(*who)),
        1..4 => message(body).map(|m| Said::Worker(*who, m)),
        4 => message(body).map(Said::Hello),
        5 => message(body).map(Said::Create),
        6 => message(body).map(Said::SetState),
        7 => message(body).map(Said::Submit),
        8 => message(body).map(Said::Explore),
        9 => message(body).map(Said::Mark),
        _ if kind & 16 == 0 => message(body).map(Said::List),
        _ => message(body).map(Said::Save),
    })
}

/// Whatever is said, a coordinator goes on, answers in messages that can be read, and starts again on its store.
pub fn talk(mut bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder");
    let mut talk = Talk::open(dir.path()).expect("a store");
    for _ in 0..SAID_MAX {
        let Some(said) = next(&mut bytes) else { break };
        let Some(said) = said else { continue };
        let sizes = talk.say(said.clone(), Message::encoded_len).unwrap_or_else(|e| panic!("{said:?}: {e}"));
        assert!(
            sizes.iter().all(|size| *size <= MESSAGE_BYTES_MAX),
            "{said:?} is answered with {sizes:?} bytes"
        );
    }
    talk.end().unwrap_or_else(|e| panic!("it does not end, or start again: {e}"));
}

/// Text is a replay line that carries the same once it is written, or none; and a list of tokens, or none at a line.
pub fn words(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(line) = Line::decode(text) {
        assert_eq!(Line::decode(&line.encode()).ok(), Some(line));
    }
    match check_tokens(text) {
        Ok(tokens) => assert!(tokens <= text.lines().count()),
        Err(wrong) => assert!((1..=text.lines().count()).contains(&wrong.line), "{wrong}"),
    }
}

/// A message that clients read is none, or reads back as it was written.
pub fn answer(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    match kind % 6 {
        0 => _ = message::<v1::CampaignStatus>(body),
        1 => _ = message::<v1::ListFindingsResponse>(body),
        2 => _ = message::<v1::SnapshotRecord>(body),
        3 => _ = message::<v1::SubmitJobResponse>(body),
        4 => _ = message::<v1::ExploreStatus>(body),
        _ => _ = message::<v1::Status>(body),
    }
}

/// A finding, as a client is told of it, is none, or has its place in all formats of a report: nothing in it becomes a part
/// of a page, or a character that XML has not. Where it is data, it stays as it is.
pub fn report(bytes: &[u8]) {
    let Ok(finding) = serde_json::from_slice::<Finding>(bytes) else { return };
    let _ = Line::of(&finding).encode();
    let scripts = |page: &str| page.matches("<script").count();
    let empty = Night::default().files().expect("an empty report");
    let night = Night { at_ms: finding.last_seen_ms, findings: vec![finding], ..Night::default() };
    let files = night.files().expect("a report");
    for ((name, text), (_, nothing)) in files.iter().zip(&empty) {
        let page = [".html", ".md"].iter().any(|end| name.ends_with(end));
        assert!(!page || scripts(text) == scripts(nothing), "{name}");
        let legal = |c: char| c >= ' ' || matches!(c, '\t' | '\n' | '\r');
        assert!(!name.ends_with(".xml") || text.chars().all(legal), "{name}: {text}");
    }
}
