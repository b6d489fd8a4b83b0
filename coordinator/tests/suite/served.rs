//! The HTTP service: health, metrics whose counters survive a restart, pages, and access control.

use crate::fake::{Fake, spec, worker};
use moire_coordinator::{Local, Setup};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{self, RootCertStore};

/// Starts a coordinator with an HTTP address.
async fn open(dir: &Path) -> (Local, SocketAddr) {
    let anywhere: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let setup = Setup { http: Some(anywhere), ..Setup::new(anywhere) };
    let local = Local::open(dir, setup).await.unwrap();
    let http = local.http_addr().unwrap();
    (local, http)
}

/// Sends a request. Returns the status and the body of the answer.
async fn ask(addr: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    say(stream, method, path, "").await
}

/// Sends a request over TLS with this header. Returns the status and the body of the answer.
async fn ask_tls(addr: SocketAddr, ca: &Path, path: &str, header: &str) -> (u16, String) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    say(stream, "GET", path, header).await
}

async fn say(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    header: &str,
) -> (u16, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{header}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // If the server closes without the closing message of TLS, the answer is still complete.
    let _ = stream.read_to_string(&mut answer).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Parses the samples of a page, and checks that each follows the header of its family.
fn samples(page: &str) -> BTreeMap<String, u64> {
    let (mut family, mut found) = (String::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let (name, kind) = head.split_once(' ').unwrap();
            family = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        } else if !line.starts_with('#') {
            let (sample, number) = line.rsplit_once(' ').unwrap();
            assert_eq!(sample.split('{').next(), Some(&*family), "{line}");
            let twice = found.insert(sample.to_owned(), number.parse().unwrap());
            assert_eq!(twice, None, "{line}");
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_are_of_the_store_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (local, http) = open(dir.path()).await;
    assert_eq!(ask(http, "GET", "/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(ask(http, "GET", "/readyz").await, (200, "ready\n".to_owned()));
    assert_eq!(ask(http, "GET", "/nothing").await.0, 404);
    assert_eq!(ask(http, "POST", "/metrics").await.0, 405);
    let task = worker(&local, Arc::new(Fake::default()));
    let end = local.run(spec(300), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    let now = samples(&ask(http, "GET", "/metrics").await.1);
    assert_eq!(now["moire_campaign_programs_total{campaign=\"c\"}"], 300);
    assert_eq!(now["moire_executions_total"], end.executions);
    assert_eq!(now["moire_campaign_refuted_total{campaign=\"c\"}"], end.refuted);
    assert_eq!(now["moire_findings{state=\"open\"}"], local.findings().await.unwrap().len() as u64);
    assert_eq!((now["moire_campaigns{state=\"done\"}"], now["moire_workers"]), (1, 1));
    local.stop().await.unwrap();
    task.abort();
    let (local, http) = open(dir.path()).await;
    let later = samples(&ask(http, "GET", "/metrics").await.1);
    for (name, before) in now.iter().filter(|(name, _)| name.contains("_total")) {
        assert!(later[name] >= *before, "{name} went back from {before} to {}", later[name]);
    }
    assert!(later["moire_leases_granted_total"] >= 300 / 64, "written when it stopped");
    assert_eq!(later["moire_findings{state=\"open\"}"], now["moire_findings{state=\"open\"}"]);
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_depth_is_the_number_of_leases_left() {
    let dir = tempfile::tempdir().unwrap();
    let (local, http) = open(dir.path()).await;
    let depth = async || samples(&ask(http, "GET", "/metrics").await.1)["moire_queue_depth"];
    assert_eq!(depth().await, 0);
    local.create(spec(640)).await.unwrap();
    assert_eq!(depth().await, 10);
    local.create(spec(0)).await.unwrap();
    assert_eq!(depth().await, 1_000_000, "without an end");
    local.stop().await.unwrap();
}

/// Tests the headers of pages, their content, and bad addresses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_load_nothing_from_elsewhere_and_check_their_input() {
    let dir = tempfile::tempdir().unwrap();
    let (local, http) = open(dir.path()).await;
    let task = worker(&local, Arc::new(Fake::default()));
    let end = local.run(spec(300), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert!(end.findings > 0);
    let id = local.findings().await.unwrap()[0].id.to_string();
    let mut stream = tokio::net::TcpStream::connect(http).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut raw = String::new();
    stream.read_to_string(&mut raw).await.unwrap();
    let raw = raw.to_lowercase();
    for header in
        ["content-security-policy: default-src 'none';", "x-content-type-options: nosniff", "no-referrer"]
    {
        assert!(raw.contains(header), "{header}\n{raw}");
    }
    assert!(raw.contains("300 / 300") && raw.contains(">w <code>"), "{raw}");
    let list = ask(http, "GET", "/findings").await.1;
    assert!(list.contains(&id[..16]));
    let none = ask(http, "GET", "/findings?q=%22%3Cb%3E").await;
    assert_eq!((none.0, none.1.contains("<b>"), none.1.contains("No finding")), (200, false, true));
    assert!(ask(http, "GET", &format!("/findings?after={id}")).await.1.len() < list.len());
    assert!(ask(http, "GET", &format!("/findings/{}", &id[..16])).await.1.contains("moire replay m1."));
    let missing = if id.starts_with("0123") { "89abcdef0" } else { "0123456789" };
    let refused = [
        (format!("/findings/{missing}"), 404),
        ("/findings/zz".to_owned(), 400),
        ("/findings?after=1".to_owned(), 400),
        (format!("/findings?q={}", "a".repeat(999)), 400),
    ];
    for (path, code) in refused {
        assert_eq!(ask(http, "GET", &path).await.0, code, "{path}");
    }
    assert_eq!(ask(http, "POST", "/findings").await.0, 405);
    local.stop().await.unwrap();
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_certificates_pages_need_the_token_of_a_viewer_and_health_needs_none() {
    let dir = tempfile::tempdir().unwrap();
    let certs = dir.path().join("certs");
    moire_coordinator::certs::init(&certs, &[], 1).unwrap();
    let anywhere: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let setup = Setup { http: Some(anywhere), certs: Some(certs.join("server")), ..Setup::new(anywhere) };
    let local = Local::open(&dir.path().join("store"), setup).await.unwrap();
    let (http, ca) = (local.http_addr().unwrap(), certs.join("server/ca.crt"));
    let get = async |path: &str, header: &str| ask_tls(http, &ca, path, header).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(path, "").await.0, 200, "{path}");
    }
    for path in ["/metrics", "/nothing"] {
        assert_eq!(get(path, "").await.0, 401, "{path}");
        assert_eq!(get(path, "Authorization: Bearer guess\r\n").await.0, 401, "{path}");
    }
    let token = |role: &str| std::fs::read_to_string(certs.join(role).join("token")).unwrap();
    let bearer = |role: &str| format!("Authorization: Bearer {}\r\n", token(role).trim());
    assert_eq!(get("/metrics", &bearer("viewer")).await.0, 200);
    assert_eq!(get("/metrics", &bearer("operator")).await.0, 200);
    assert_eq!(get("/metrics", &bearer("worker")).await.0, 403);
    let password = data_encoding::BASE64.encode(format!("anybody:{}", token("viewer").trim()).as_bytes());
    let (code, page) = get("/metrics", &format!("Authorization: Basic {password}\r\n")).await;
    assert_eq!(code, 200);
    let found = samples(&page);
    assert!(found.contains_key("moire_calls_denied_total"));
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let left =
        |file: &str| found[&format!("moire_certificate_end_seconds{{file=\"{file}\"}}")].saturating_sub(now);
    assert!((86_000..=86_400).contains(&left("tls.crt")), "a day: {}", left("tls.crt"));
    assert!(left("ca.crt") > 3_000 * 86_400);
    local.stop().await.unwrap();
}
