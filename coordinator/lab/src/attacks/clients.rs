//! Hostile clients: slow headers, connections without a word, calls that are given up at once, programs of many objects.

use super::hostile::Counts;
use anyhow::Result;
use moire_console::control::connect;
use moire_coordinator::v1;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Slow headers, as the table names them.
pub(super) const SLOW: &str = "slow headers";
/// Connections without a word.
pub(super) const SILENT: &str = "connections without a word";
/// Calls that are given up at once.
pub(super) const GIVEN_UP: &str = "calls that are given up";
/// Programs whose objects have gigabytes together.
pub(super) const LARGE: &str = "programs that declare gigabytes";

/// Connections held at one time.
const HELD: usize = 200;
/// Time that they are held.
const HOLD: Duration = Duration::from_secs(8);

/// Starts them all.
pub(super) fn spawn(tasks: &mut JoinSet<()>, addr: SocketAddr, http: SocketAddr, counts: &Arc<Counts>) {
    let of = || Arc::clone(counts);
    tasks.spawn(held(http, SLOW, b"GET / HTTP/1.1\r\nX-Slow: ", of()));
    tasks.spawn(held(addr, SILENT, b"", of()));
    tasks.spawn(calls(addr, of()));
}

/// Opens connections, says this much, and keeps them.
async fn held(to: SocketAddr, what: &'static str, words: &'static [u8], counts: Arc<Counts>) {
    loop {
        let mut open = Vec::new();
        for _ in 0..HELD {
            // A refused connection is what the coordinator may do.
            let Ok(mut stream) = TcpStream::connect(to).await else { continue };
            if stream.write_all(words).await.is_ok() {
                open.push(stream);
            }
        }
        counts.add(what, open.len() as u64);
        tokio::time::sleep(HOLD).await;
    }
}

/// A program whose objects would take gigabytes if their sizes counted.
fn large() -> String {
    let mut text = "moire \"large\"\n".to_owned();
    for n in 0..800 {
        let _ = writeln!(text, ".global .b8 a{n}[1048576];");
    }
    text + "P0 (gpu 0, cta 0) {\n  st.weak.u8 [a0], 1;\n}\n"
}

/// Asks, and goes away before the answer.
async fn calls(addr: SocketAddr, counts: Arc<Counts>) {
    loop {
        // A refused call is what the coordinator may do.
        let _ = some_calls(addr, &counts).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn some_calls(addr: SocketAddr, counts: &Counts) -> Result<()> {
    let mut client = connect(&addr.into()).await?;
    for _ in 0..20 {
        let asked = client.list_campaigns(v1::ListCampaignsRequest::default());
        let _ = tokio::time::timeout(Duration::from_micros(50), asked).await;
        counts.add(GIVEN_UP, 1);
    }
    let work = v1::submit_job_request::Job::Replay(v1::ReplayJob { program: large() });
    let job = v1::SubmitJobRequest { job: Some(work), ..v1::SubmitJobRequest::default() };
    counts.add(LARGE, 1);
    let _ = tokio::time::timeout(Duration::from_secs(2), client.submit_job(job)).await;
    Ok(())
}
