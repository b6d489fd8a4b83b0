//! A private CA for one fleet: certificates and tokens, a folder for each who uses them.
//!
//! Contract: `ca/` has the key of the CA and goes nowhere; `server/` is what `moire serve --certs` wants (`tokens` has
//! hashes only), every other folder what a worker or client wants with `--certs`. Keys and tokens are readable by their
//! owner alone, and nothing is ever overwritten: what is renewed is a new folder.

use crate::Error;
use crate::clock::unix_ms;
use crate::door::{Role, hash_of};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Life of a CA, in days.
const CA_DAYS: i64 = 3650;
/// Clocks may differ by this much, in seconds.
const SKEW: i64 = 3600;
/// Seconds.
const DAY: i64 = 24 * 3600;
/// Names every server certificate has.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Longest name of a holder.
const NAME_BYTES_MAX: usize = 60;

/// Whose folder is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A coordinator, reached under these names and addresses and as localhost.
    Server(Vec<String>),
    /// The holder of a token of this role.
    Client(Role),
}

fn failed(path: &Path, why: impl ToString) -> Error {
    Error::Certs { path: path.to_owned(), why: why.to_string() }
}

/// Makes a CA in `dir`, a folder for the coordinator, and one for each role.
///
/// # Errors
/// There is a CA already, a name makes no sense, or a file cannot be written.
pub fn init(dir: &Path, names: &[String], days: i64) -> Result<Vec<PathBuf>, Error> {
    let ca = dir.join("ca");
    if ca.exists() {
        return Err(failed(&ca, "there is a CA already; `moire certs issue` adds to it"));
    }
    let key = KeyPair::generate().map_err(|e| failed(&ca, e))?;
    let certificate = authority(&key).self_signed(&key).map_err(|e| failed(&ca, e))?;
    folder(dir)?;
    folder(&ca)?;
    write(&ca.join("ca.key"), &key.serialize_pem(), true)?;
    write(&ca.join("ca.crt"), &certificate.pem(), false)?;
    let mut made = vec![issue(dir, "server", &Holder::Server(names.to_vec()), days)?];
    for role in Role::ALL {
        made.push(issue(dir, role.word(), &Holder::Client(role), days)?);
    }
    Ok(made)
}

/// Makes the folder `name` under the CA in `dir`. The token of a client becomes known to the coordinator through
/// `server/tokens`, which a running one reads again.
///
/// # Errors
/// See [`init`]; or there is no CA, or the folder exists.
pub fn issue(dir: &Path, name: &str, holder: &Holder, days: i64) -> Result<PathBuf, Error> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let out = dir.join(name);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.starts_with('.') || !name.chars().all(legal) {
        return Err(failed(&out, "a name has 1 to 60 letters, digits, '.', '_' or '-'"));
    }
    let ca = dir.join("ca");
    let authority_key = std::fs::read_to_string(ca.join("ca.key"))
        .map_err(|e| failed(&ca.join("ca.key"), format!("{e}; `moire certs init` makes one")))?;
    let authority_key = KeyPair::from_pem(&authority_key).map_err(|e| failed(&ca.join("ca.key"), e))?;
    let issuer = Issuer::new(authority(&authority_key), authority_key);
    let key = KeyPair::generate().map_err(|e| failed(&out, e))?;
    let params = leaf(name, holder, days).map_err(|e| failed(&out, e))?;
    let certificate = params.signed_by(&key, &issuer).map_err(|e| failed(&out, e))?;
    let trusted = std::fs::read_to_string(ca.join("ca.crt")).map_err(|e| failed(&ca.join("ca.crt"), e))?;
    if out.exists() {
        return Err(failed(&out, "it exists, and nothing is overwritten; take another name"));
    }
    folder(&out)?;
    write(&out.join("tls.key"), &key.serialize_pem(), true)?;
    write(&out.join("tls.crt"), &certificate.pem(), false)?;
    write(&out.join("ca.crt"), &trusted, false)?;
    let tokens = dir.join("server/tokens");
    match holder {
        Holder::Server(_) => {
            let known = std::fs::read_to_string(&tokens).unwrap_or_default();
            write(&out.join("tokens"), &known, true)?;
        }
        Holder::Client(role) => {
            let token = secret()?;
            let hash = hash_of(&token).ok_or_else(|| failed(&out, "an empty token"))?;
            // Without a line end: some readers take the file as it is.
            write(&out.join("token"), &token, true)?;
            let mut file = OpenOptions::new().append(true).open(&tokens).map_err(|e| failed(&tokens, e))?;
            let line = format!("{role} {name} {hash}\n");
            file.write_all(line.as_bytes()).map_err(|e| failed(&tokens, e))?;
        }
    }
    Ok(out)
}

/// The CA's own certificate, as far as its key decides it: made again, it issues under the same name.
fn authority(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let name = format!("Moire CA {}", &blake3::hash(key.public_key_raw()).to_hex()[..16]);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    live(&mut params, CA_DAYS);
    params
}

/// Lets a certificate live from now on for so many days; it has expired if they are negative.
fn live(params: &mut CertificateParams, days: i64) {
    let now = (unix_ms() / 1000).cast_signed();
    let end = now.saturating_add(days.saturating_mul(DAY));
    let at = |second: i64| {
        let second = u64::try_from(second).unwrap_or_default();
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(second)
    };
    (params.not_before, params.not_after) = (at((now - SKEW).min(end - DAY)), at(end));
}

fn leaf(name: &str, holder: &Holder, days: i64) -> Result<CertificateParams, rcgen::Error> {
    let (names, usage) = match holder {
        Holder::Server(names) => {
            let here = HERE.iter().map(|n| (*n).to_owned()).filter(|n| !names.contains(n));
            (names.iter().cloned().chain(here).collect(), ExtendedKeyUsagePurpose::ServerAuth)
        }
        Holder::Client(_) => (Vec::new(), ExtendedKeyUsagePurpose::ClientAuth),
    };
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    live(&mut params, days);
    Ok(params)
}

/// 32 random bytes as text.
fn secret() -> Result<String, Error> {
    let mut bytes = [0; 32];
    let random = tokio_rustls::rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| failed(Path::new("token"), "no randomness"))?;
    Ok(data_encoding::BASE32_NOPAD.encode(&bytes).to_lowercase())
}

fn folder(path: &Path) -> Result<(), Error> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| failed(path, e))
}

/// Writes a file that is not there yet.
fn write(path: &Path, text: &str, private: bool) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if private { 0o600 } else { 0o644 });
    #[cfg(not(unix))]
    let _ = private;
    let mut file = options.open(path).map_err(|e| failed(path, e))?;
    file.write_all(text.as_bytes()).map_err(|e| failed(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_private_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("certs");
        let made = init(&base, &["moire.example".to_owned()], 30).unwrap();
        assert_eq!(made.len(), 4);
        #[cfg(unix)]
        for private in ["ca/ca.key", "server/tls.key", "server/tokens", "worker/tls.key", "viewer/token"] {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(base.join(private)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{private}");
        }
        let before = std::fs::read(base.join("ca/ca.key")).unwrap();
        assert!(init(&base, &[], 30).unwrap_err().to_string().contains("there is a CA already"));
        let again = issue(&base, "worker", &Holder::Client(Role::Worker), 30);
        assert!(again.unwrap_err().to_string().contains("nothing is overwritten"));
        assert_eq!(std::fs::read(base.join("ca/ca.key")).unwrap(), before);
        let tokens = || std::fs::read_to_string(base.join("server/tokens")).unwrap();
        assert_eq!(tokens().lines().count(), 3);
        issue(&base, "worker-2", &Holder::Client(Role::Worker), 30).unwrap();
        let token = std::fs::read_to_string(base.join("worker-2/token")).unwrap();
        assert_eq!(tokens().lines().last(), Some(&*format!("worker worker-2 {}", hash_of(&token).unwrap())));
        assert!(!tokens().contains(token.trim()), "hashes only");
        for bad in ["", "a/b", "..", ".x", "é"] {
            assert!(issue(&base, bad, &Holder::Client(Role::Viewer), 1).is_err(), "{bad}");
        }
        assert!(issue(dir.path(), "w", &Holder::Client(Role::Worker), 1).is_err(), "no CA there");
    }
}
