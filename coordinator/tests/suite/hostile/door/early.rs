//! Workers that start before their coordinator, or before its name resolves, wait for it. Workers with wrong
//! certificates or a wrong address end at once.

use super::*;
use moire_worker::WorkError;
use moire_worker::link::LinkError;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Starts a worker on this link. Returns the channel that asks it to stop, and its task.
fn starts(link: Link) -> (watch::Sender<()>, JoinHandle<Result<(), WorkError>>) {
    let (asked, stop) = watch::channel(());
    let options = moire_worker::Options { name: "early".to_owned(), threads: 1 };
    let working = async move { moire_worker::stay(&link, Arc::new(Fake::default()), options, stop).await };
    (asked, tokio::spawn(working))
}

/// Returns an address at which no process listens.
fn nowhere() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_starts_first_waits_for_the_coordinator_and_for_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let certs = dir.path().join("certs");
    init(&certs, &[], 30).unwrap();
    let (addr, folder) = (nowhere(), certs.join("worker"));
    let (_go_on, first) = starts(Link::new(addr.into(), Some(folder.clone())));
    // RFC 6761: no name under `.invalid` ever resolves.
    let unknown = "coordinator.invalid:7420".parse().unwrap();
    let (leave, second) = starts(Link::new(unknown, Some(folder.clone())));
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!first.is_finished() && !second.is_finished());
    leave.send(()).unwrap();
    let setup = Setup { certs: Some(certs.join("server")), lease: patient(), ..Setup::new(addr) };
    let local = Local::open(&dir.path().join("store"), setup).await.unwrap();
    let done = local.run(spec(10), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!(done.phase(), v1::CampaignPhase::Done, "the first worker did it");
    // A name lookup may take long.
    let left = tokio::time::timeout(Duration::from_secs(60), second).await.expect("it leaves when asked to");
    left.unwrap().unwrap();
    local.stop().await.unwrap();
    first.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misconfigured_worker_says_so_at_once() {
    let house = House::new(Limits::FAR).await;
    let elsewhere = house.dir.path().join("elsewhere");
    init(&elsewhere, &[], 30).unwrap();
    let broken = house.dir.path().join("broken");
    std::fs::create_dir(&broken).unwrap();
    for name in ["tls.crt", "tls.key", "ca.crt", "token"] {
        std::fs::write(broken.join(name), "nothing of the kind").unwrap();
    }
    let far = || "192.0.2.1:7420".parse().unwrap();
    let ended = async |link: Link| {
        let (_go_on, worker) = starts(link);
        let ended = tokio::time::timeout(Duration::from_secs(20), worker).await.expect("it ends");
        match ended.unwrap().unwrap_err() {
            WorkError::Link(error) => error,
            other => panic!("{other}"),
        }
    };
    let strange = ended(house.link(&elsewhere.join("worker"))).await;
    assert!(matches!(strange, LinkError::Stranger { .. }), "{strange}");
    let none = ended(house.link(&house.dir.path().join("no such folder"))).await;
    assert!(matches!(none, LinkError::Certs { .. }), "{none}");
    let garbage = ended(Link::new(house.local.addr().into(), Some(broken))).await;
    assert!(matches!(garbage, LinkError::Wrong { .. } | LinkError::Certs { .. }), "{garbage}");
    let bare = ended(Link::new(far(), None)).await;
    assert!(matches!(bare, LinkError::NotLoopback(_)), "{bare}");
    house.local.stop().await.unwrap();
}
