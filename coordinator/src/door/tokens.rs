//! The tokens that a coordinator accepts. A file has one a line, `ROLE NAME HASH`; empty lines and lines that begin with
//! `#` are skipped.
//!
//! Contract: the file has only hashes, BLAKE3 of the token's text. A token is 32 random bytes, so a fast hash is safe. Hashes
//! are compared in constant time, each with every line. Two lines may name one holder, so that a token can be replaced
//! without a gap. A line that is no token lets nobody in, is said in the log, and changes nothing for the other lines. While
//! a coordinator runs, a file that is missing or cannot be read lets nobody in at all.

use super::role::{Role, UnknownRole};
use crate::Error;
use std::path::PathBuf;

/// Name of the file.
pub(crate) const FILE: &str = "tokens";
/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most lines that are no tokens and have a line each in the log.
const FAULTS_MAX: usize = 20;
/// Longest token that is accepted, in bytes.
const TOKEN_BYTES_MAX: usize = 256;

/// The holder of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) role: Role,
    pub(crate) name: String,
}

/// All accepted tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Vec<(blake3::Hash, Holder)>);

/// The hash that is kept of a token.
pub(crate) fn hash_of(token: &str) -> Option<blake3::Hash> {
    let token = token.trim();
    (!token.is_empty() && token.len() <= TOKEN_BYTES_MAX).then(|| blake3::hash(token.as_bytes()))
}

impl Tokens {
    /// The holder of the token with this hash.
    pub(crate) fn who(&self, hash: &blake3::Hash) -> Option<&Holder> {
        // `==` of these hashes takes the same time wherever they differ; no line is left out.
        self.0.iter().fold(None, |found, (known, holder)| if known == hash { Some(holder) } else { found })
    }
}

/// Reads the first of `files`. The log has each line that is no token.
pub(crate) fn read(files: &[PathBuf]) -> Result<Tokens, Error> {
    let path = &files[0];
    let failed = |why: String| Error::Certs { path: path.clone(), why };
    let unread = |e: std::io::Error| failed(e.to_string());
    let size = std::fs::metadata(path).map_err(unread)?.len();
    if size > FILE_BYTES_MAX {
        return Err(failed(format!("{size} bytes, the limit is {FILE_BYTES_MAX}")));
    }
    let text = std::fs::read_to_string(path).map_err(unread)?;
    let (tokens, faults) = parse(&text);
    for fault in faults.iter().take(FAULTS_MAX) {
        tracing::error!(file = %path.display(), %fault, "a line that is no token lets nobody in");
    }
    if faults.len() > FAULTS_MAX {
        tracing::error!(file = %path.display(), lines = faults.len(), "so many lines are no tokens");
    }
    Ok(tokens)
}

/// Why a line of a list lets nobody in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct TokensError {
    /// The line, from 1 on.
    pub line: usize,
    /// The fault of that line.
    pub why: TokenError,
}

/// Why a line is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It has not three words.
    #[error("write ROLE NAME HASH")]
    Words,
    /// Its first word is no role.
    #[error(transparent)]
    Role(#[from] UnknownRole),
    /// Its last word is no hash.
    #[error("the hash has 64 hex digits")]
    Hash,
}

/// How many tokens a file of this text has (entry point of the fuzz target).
///
/// # Errors
/// The first line that is wrong, by its number.
pub fn check_tokens(text: &str) -> Result<usize, TokensError> {
    let (tokens, faults) = parse(text);
    faults.into_iter().next().map_or(Ok(tokens.0.len()), Err)
}

/// The tokens of a text, and the lines that are none.
fn parse(text: &str) -> (Tokens, Vec<TokensError>) {
    let (mut tokens, mut faults) = (Tokens::default(), Vec::new());
    for (n, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match entry(line) {
            Ok(token) => tokens.0.push(token),
            Err(why) => faults.push(TokensError { line: n + 1, why }),
        }
    }
    (tokens, faults)
}

fn entry(line: &str) -> Result<(blake3::Hash, Holder), TokenError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [role, name, hash] = words[..] else { return Err(TokenError::Words) };
    let role = role.parse()?;
    let hash = blake3::Hash::from_hex(hash).map_err(|_| TokenError::Hash)?;
    Ok((hash, Holder { role, name: name.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_tokens_found() {
        let hash = |token: &str| hash_of(token).unwrap();
        let text = format!("# made today\n\nworker w1 {}\nviewer  v {}\n", hash("a"), hash("b"));
        let (tokens, faults) = parse(&text);
        assert!(faults.is_empty(), "{faults:?}");
        let holder = |role, name: &str| Holder { role, name: name.to_owned() };
        assert_eq!(tokens.who(&hash("a")), Some(&holder(Role::Worker, "w1")));
        assert_eq!(tokens.who(&hash(" b\n")), Some(&holder(Role::Viewer, "v")));
        assert_eq!(tokens.who(&hash("c")), None);
        assert_eq!(hash_of(" "), None);
        assert_eq!(hash_of(&"x".repeat(300)), None);
        for (bad, says) in [
            ("worker w1", "line 1: write ROLE NAME HASH"),
            ("\nboss b 00", "line 2: `boss` is no role"),
            ("worker w 00", "64 hex digits"),
        ] {
            assert!(check_tokens(bad).unwrap_err().to_string().contains(says), "{bad}");
        }
        let (some, faults) = parse(&format!("boss b {0}\nviewer v {0}\nworker w 00\n", hash("a")));
        assert_eq!(some.who(&hash("a")), Some(&holder(Role::Viewer, "v")), "a bad line closes itself alone");
        assert_eq!(faults.iter().map(|f| f.line).collect::<Vec<_>>(), [1, 3]);
    }
}
