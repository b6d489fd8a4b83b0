//! Peers of the pages that send their headers slowly, or nothing: they keep nobody out.

use super::*;
use crate::fake::people;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_headers_keep_nobody_out_for_long() {
    let dir = tempfile::tempdir().unwrap();
    let anywhere: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    let limits = Limits { pages: 32, patience: Duration::from_secs(2), ..Limits::NEAR };
    let setup = Setup { http: Some(anywhere), limits: Some(limits), ..Setup::new(anywhere) };
    let local = Local::open(&dir.path().join("store"), setup).await.unwrap();
    let http = local.http_addr().unwrap();
    let mut slow = Vec::new();
    for _ in 0..40 {
        let mut stream = tokio::net::TcpStream::connect(http).await.unwrap();
        // A connection over the bound is closed at once.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").await;
        slow.push(stream);
    }
    // Calls are served all the time.
    let mut client = people(&local).await;
    let asked = tokio::time::timeout(Duration::from_secs(1), client.get_status(v1::GetStatusRequest {}));
    asked.await.expect("within a second").unwrap();
    // Each sends a header a moment, and none is finished: all are closed in time.
    let closed = async {
        for mut stream in slow {
            loop {
                let _ = stream.write_all(b"X-Slow: 1\r\n").await;
                let mut byte = [0; 64];
                let read = tokio::time::timeout(Duration::from_millis(50), stream.read(&mut byte)).await;
                if let Ok(Ok(0) | Err(_)) = read {
                    break;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), closed).await.expect("they are closed");
    let mut stream = tokio::net::TcpStream::connect(http).await.unwrap();
    for _ in 0..2 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut answer = [0; 512];
        let n = stream.read(&mut answer).await.unwrap();
        assert!(answer[..n].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..n]));
        // A connection in use goes on for longer than one that is not.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    local.stop().await.unwrap();
}
