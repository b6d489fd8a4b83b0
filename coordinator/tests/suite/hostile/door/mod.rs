//! A coordinator with certificates and tokens: access control, the permissions of each role, replaced certificates and
//! tokens, and bounds on hostile clients of the control service.

mod early;
mod slow;

use super::{Hand, hello, patient};
use crate::fake::{Fake, spec};
use moire_coordinator::certs::{Holder, init, issue};
use moire_coordinator::v1::{self, from_worker::Message as Up};
use moire_coordinator::{Limits, Local, Role, Setup};
use moire_proto::Linked;
use moire_worker::link::Link;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};
use v1::control_service_client::ControlServiceClient;
use v1::worker_service_client::WorkerServiceClient;

/// A coordinator with certificates, and the folders of its clients.
struct House {
    dir: tempfile::TempDir,
    local: Local,
}

impl House {
    async fn new(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let certs = dir.path().join("certs");
        init(&certs, &[], 30).unwrap();
        let setup = Setup {
            certs: Some(certs.join("server")),
            limits: Some(limits),
            lease: patient(),
            ..Setup::new("127.0.0.1:0".parse().unwrap())
        };
        let local = Local::open(&dir.path().join("store"), setup).await.unwrap();
        Self { dir, local }
    }
    fn certs(&self) -> PathBuf {
        self.dir.path().join("certs")
    }
    fn link(&self, folder: &Path) -> Link {
        Link::new(self.local.addr().into(), Some(folder.to_owned()))
    }
    /// Connects a client with the folder of this name.
    async fn people(&self, name: &str) -> ControlServiceClient<Linked> {
        ControlServiceClient::new(self.link(&self.certs().join(name)).connect().await.unwrap())
    }
    /// Connects with the certificates of this folder, and returns the first answer.
    async fn ask(&self, folder: &Path) -> Result<v1::Status, String> {
        let linked = self.link(folder).connect().await.map_err(|e| e.to_string())?;
        let answer = ControlServiceClient::new(linked).get_status(v1::GetStatusRequest {}).await;
        answer.map(tonic::Response::into_inner).map_err(|s| format!("{:?}: {}", s.code(), s.message()))
    }
    /// Connects with the folder's certificate but without a token.
    async fn anonymous(&self, name: &str) -> Channel {
        let read = |file: &str| std::fs::read(self.certs().join(name).join(file)).unwrap();
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(read("ca.crt")))
            .identity(Identity::from_pem(read("tls.crt"), read("tls.key")));
        let endpoint = Endpoint::from_shared(format!("https://{}", self.local.addr())).unwrap();
        endpoint.tls_config(tls).unwrap().connect().await.unwrap()
    }
    fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.dir.path().join("store/audit.jsonl")).unwrap_or_default();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }
}

/// Opens a worker's stream on this connection.
async fn stream(linked: Linked) -> Result<Hand, Status> {
    let (up, outgoing) = mpsc::channel(64);
    up.send(v1::FromWorker { message: Some(Up::Hello(hello())) }).await.unwrap();
    let mut down = WorkerServiceClient::new(linked).work(ReceiverStream::new(outgoing)).await?.into_inner();
    down.message().await?;
    Ok(Hand { up, down })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_loopback_nothing_is_served_without_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let (everywhere, here) = ("0.0.0.0:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap());
    let pages = Setup { http: Some(everywhere), ..Setup::new(here) };
    for setup in [Setup::new(everywhere), Setup::new("[::]:0".parse().unwrap()), pages] {
        let refused = Local::open(dir.path(), setup).await.err().unwrap().to_string();
        assert!(refused.contains("moire certs init"), "{refused}");
    }
    init(&dir.path().join("certs"), &[], 1).unwrap();
    let certs = Some(dir.path().join("certs/server"));
    let none = Setup { certs: Some(dir.path().join("certs/worker")), ..Setup::new(everywhere) };
    let refused = Local::open(&dir.path().join("store"), none).await.err().unwrap().to_string();
    assert!(refused.contains("tokens"), "a worker's folder is not a coordinator's: {refused}");
    let setup = Setup { certs, http: Some(everywhere), ..Setup::new(everywhere) };
    Local::open(&dir.path().join("store"), setup).await.unwrap().stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_needs_a_certificate_of_the_ca_and_a_token() {
    let house = House::new(Limits::FAR).await;
    let (certs, elsewhere) = (house.certs(), house.dir.path().join("elsewhere"));
    assert!(house.ask(&certs.join("viewer")).await.is_ok());
    // Another CA: this coordinator does not know it, and its clients do not know ours.
    init(&elsewhere, &[], 30).unwrap();
    assert!(house.ask(&elsewhere.join("viewer")).await.is_err());
    for (ca, own) in [("certs", "elsewhere"), ("elsewhere", "certs")] {
        let mixed = house.dir.path().join(format!("{ca}-{own}"));
        std::fs::create_dir(&mixed).unwrap();
        let copy = |from: &str, name: &str| {
            std::fs::copy(house.dir.path().join(from).join("viewer").join(name), mixed.join(name)).unwrap()
        };
        copy(ca, "ca.crt");
        ["tls.crt", "tls.key", "token"].iter().for_each(|name| _ = copy(own, name));
        assert!(house.ask(&mixed).await.is_err(), "trusts {ca}, shows {own}");
    }
    // An expired certificate with a good token.
    let old = issue(&certs, "old", &Holder::Client(Role::Viewer), -1).unwrap();
    assert!(house.ask(&old).await.is_err());
    // Our certificate without a token, and with the token of another coordinator.
    let mut bare = ControlServiceClient::new(house.anonymous("viewer").await);
    let status = bare.get_status(v1::GetStatusRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    let wrong = house.dir.path().join("wrong");
    std::fs::create_dir(&wrong).unwrap();
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        std::fs::copy(certs.join("viewer").join(name), wrong.join(name)).unwrap();
    }
    std::fs::copy(elsewhere.join("viewer/token"), wrong.join("token")).unwrap();
    assert!(house.ask(&wrong).await.unwrap_err().starts_with("Unauthenticated"));
    // Plain text instead of TLS.
    let plain = Endpoint::from_shared(format!("http://{}", house.local.addr())).unwrap().connect().await;
    if let Ok(channel) = plain {
        assert!(ControlServiceClient::new(channel).get_status(v1::GetStatusRequest {}).await.is_err());
    }
    // Every client with a certificate may ask for health.
    let mut health = tonic_health::pb::health_client::HealthClient::new(house.anonymous("worker").await);
    assert!(health.check(tonic_health::pb::HealthCheckRequest::default()).await.is_ok());
    let refusals = house.audit();
    assert_eq!(refusals.len(), 2, "{refusals:?}");
    assert!(
        refusals.iter().all(|l| l["answer"].as_str().unwrap().starts_with("Unauthenticated")),
        "{refusals:?}"
    );
    assert!(refusals[0]["certificate"].is_string(), "{refusals:?}");
    house.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_may_do_its_part_and_calls_are_audited() {
    let house = House::new(Limits::FAR).await;
    let list = v1::ListCampaignsRequest {};
    for (role, reads, creates, works) in
        [("viewer", true, false, false), ("operator", true, true, false), ("worker", false, false, true)]
    {
        let mut client = house.people(role).await;
        let named = v1::CampaignSpec { name: format!("of-{role}"), ..spec(10) };
        let codes = [client.list_campaigns(list).await.err(), client.create_campaign(named).await.err()];
        let worked = stream(house.link(&house.certs().join(role)).connect().await.unwrap()).await.err();
        for (refused, allowed) in codes.iter().chain([&worked]).zip([reads, creates, works]) {
            let code = refused.as_ref().map(|s| s.code());
            assert_eq!(code, (!allowed).then_some(Code::PermissionDenied), "{role}: {refused:?}");
        }
    }
    let linked = house.link(&house.certs().join("viewer")).connect().await.unwrap();
    let mut reflection =
        tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(linked);
    let nothing = tokio_stream::iter(Vec::<tonic_reflection::pb::v1::ServerReflectionRequest>::new());
    assert!(reflection.server_reflection_info(nothing).await.is_ok());
    let found = |who: &str, what: &str, about: &str, answer: &str| {
        let lines = house.audit();
        let field = |l: &serde_json::Value, name: &str| l[name].as_str().unwrap_or_default().to_owned();
        let fits = |l: &serde_json::Value| {
            field(l, "who") == who
                && field(l, "what").ends_with(what)
                && field(l, "about") == about
                && field(l, "answer").starts_with(answer)
                && l["at_ms"].as_u64() > Some(1_600_000_000_000)
        };
        assert!(lines.iter().any(fits), "{who} {what} {about} {answer}: {lines:#?}");
    };
    found("operator", "/CreateCampaign", "of-operator", "ok");
    found("worker", "/Work", "", "ok");
    found(
        "viewer",
        "/CreateCampaign",
        "",
        "PermissionDenied: this needs a token of the role operator; viewer is viewer",
    );
    // The refusal of a second campaign of this name is audited too.
    let named = v1::CampaignSpec { name: "of-operator".to_owned(), ..spec(10) };
    assert!(house.people("operator").await.create_campaign(named).await.is_err());
    found("operator", "/CreateCampaign", "of-operator", "AlreadyExists");
    house.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_campaign_runs_with_certificates_and_marks_carry_the_name_of_the_token() {
    let house = House::new(Limits::FAR).await;
    let link = house.link(&house.certs().join("worker"));
    let (_go_on, stop) = tokio::sync::watch::channel(());
    let options = moire_worker::Options { name: "w".to_owned(), threads: 2 };
    let task =
        tokio::spawn(
            async move { moire_worker::stay(&link, Arc::new(Fake::default()), options, stop).await },
        );
    let end = house.local.run(spec(300), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!(end.phase(), v1::CampaignPhase::Done);
    let id = house.local.findings().await.unwrap()[0].id.to_string();
    let mark = |why: &str| v1::MarkFindingRequest {
        id: id.clone(),
        state: "invalid".to_owned(),
        who: "the emperor".to_owned(),
        why: why.to_owned(),
        until_ms: 0,
    };
    let mut operator = house.people("operator").await;
    let record = operator.mark_finding(mark("not a bug")).await.unwrap().into_inner();
    let change: serde_json::Value = serde_json::from_str(&record.json).unwrap();
    assert_eq!(change["history"][0]["who"], "operator", "{change}");
    // Many long marks: the record still fits the store, and the coordinator goes on.
    for _ in 0..100 {
        operator.mark_finding(mark(&"\"".repeat(5_000))).await.unwrap();
    }
    assert!(house.ask(&house.certs().join("viewer")).await.is_ok());
    house.local.stop().await.unwrap();
    task.abort();
}

/// Asks until access is as wanted: the coordinator polls its files twice a second.
async fn until(house: &House, folder: &Path, good: bool) {
    let asked = async {
        while house.ask(folder).await.is_ok() != good {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.expect("the files are read again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_tokens_are_replaced_without_a_restart() {
    let house = House::new(Limits::FAR).await;
    let (certs, server) = (house.certs(), house.certs().join("server"));
    let mut worker = stream(house.link(&certs.join("worker")).connect().await.unwrap()).await.unwrap();
    // A new holder has access at once.
    let second = issue(&certs, "second", &Holder::Client(Role::Viewer), 30).unwrap();
    until(&house, &second, true).await;
    // If a file holds garbage, the old certificate stays in force.
    let good = std::fs::read(server.join("tls.crt")).unwrap();
    std::fs::write(server.join("tls.crt"), "no certificate").unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(house.ask(&second).await.is_ok());
    // An expired certificate, which clients refuse, shows that new connections get the new one. Open connections go on.
    let expired = issue(&certs, "server-old", &Holder::Server(Vec::new()), -1).unwrap();
    for name in ["tls.crt", "tls.key"] {
        std::fs::copy(expired.join(name), server.join(name)).unwrap();
    }
    until(&house, &second, false).await;
    worker.say(Up::Heartbeat(v1::Heartbeat::default())).await;
    assert!(worker.leases().await.is_empty(), "its message is handled");
    let fresh = issue(&certs, "server-new", &Holder::Server(Vec::new()), 30).unwrap();
    for name in ["tls.crt", "tls.key"] {
        std::fs::copy(fresh.join(name), server.join(name)).unwrap();
    }
    until(&house, &second, true).await;
    assert_ne!(std::fs::read(server.join("tls.crt")).unwrap(), good);
    // Once its line is removed, a token is refused, even on an open stream.
    let tokens = std::fs::read_to_string(server.join("tokens")).unwrap();
    let kept: String =
        tokens.lines().filter(|l| !l.starts_with("worker")).map(|l| format!("{l}\n")).collect();
    std::fs::write(server.join("tokens"), kept).unwrap();
    let ended = async {
        loop {
            worker.say(Up::Heartbeat(v1::Heartbeat::default())).await;
            let next = tokio::time::timeout(Duration::from_millis(50), worker.down.message()).await;
            if let Ok(Err(status)) = next {
                return status;
            }
        }
    };
    let status = tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    assert_eq!(status.code(), Code::Unauthenticated);
    house.local.stop().await.unwrap();
}

/// Rewrites the list of tokens, whole or not at all.
fn tokens(house: &House, text: &str) {
    let path = house.certs().join("server/tokens");
    std::fs::write(path.with_extension("new"), text).unwrap();
    std::fs::rename(path.with_extension("new"), path).unwrap();
}

/// How a stream ends, within twenty seconds.
async fn end<T>(mut stream: tonic::Streaming<T>) -> Code {
    let ended = async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Code::Ok,
                Err(status) => return status.code(),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_ends_everything_it_opened() {
    let house = House::new(Limits::FAR).await;
    house.local.create(spec(1_000_000)).await.unwrap();
    let list = std::fs::read_to_string(house.certs().join("server/tokens")).unwrap();
    let (mut viewer, mut operator) = (house.people("viewer").await, house.people("operator").await);
    let watched = v1::CampaignName { name: "c".to_owned() };
    let watched = viewer.watch_campaign(watched).await.unwrap().into_inner();
    let asked = v1::Exploration {
        program: "any".to_owned(),
        fingerprint: vec![7; 32],
        tree: "nobody knows it".to_owned(),
        ..v1::Exploration::default()
    };
    let explored = operator.explore(asked).await.unwrap().into_inner();
    let job = v1::submit_job_request::Job::Replay(v1::ReplayJob { program: "nobody runs it".to_owned() });
    let waits = tokio::spawn(async move {
        let job = v1::SubmitJobRequest { plan: None, job: Some(job) };
        operator.submit_job(job).await.unwrap_err().code()
    });
    // A worker that says nothing at all.
    let silent = stream(house.link(&house.certs().join("worker")).connect().await.unwrap()).await.unwrap();
    let stays = list.lines().filter(|l| l.starts_with("viewer")).collect::<String>();
    tokens(&house, &format!("{stays}\n"));
    assert_eq!(end(explored).await, Code::Unauthenticated);
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap().unwrap(),
        Code::Unauthenticated
    );
    assert_eq!(end(silent.down).await, Code::Unauthenticated);
    tokens(&house, "# nobody\n");
    assert_eq!(end(watched).await, Code::Unauthenticated);
    house.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_tokens_that_is_bad_or_gone_lets_nobody_in() {
    let house = House::new(Limits::FAR).await;
    let (viewer, operator) = (house.certs().join("viewer"), house.certs().join("operator"));
    let list = std::fs::read_to_string(house.certs().join("server/tokens")).unwrap();
    assert!(house.ask(&viewer).await.is_ok() && house.ask(&operator).await.is_ok());
    // A slip in one line closes that line, and removes what stood in it before.
    tokens(&house, &list.replace("operator", "0perator"));
    until(&house, &operator, false).await;
    assert!(house.ask(&viewer).await.is_ok());
    std::fs::remove_file(house.certs().join("server/tokens")).unwrap();
    until(&house, &viewer, false).await;
    tokens(&house, &list);
    until(&house, &viewer, true).await;
    until(&house, &operator, true).await;
    // A start with such a line serves the others.
    let dir = tempfile::tempdir().unwrap();
    tokens(&house, &list.replace("operator", "0perator"));
    let setup =
        Setup { certs: Some(house.certs().join("server")), ..Setup::new("127.0.0.1:0".parse().unwrap()) };
    let other = Local::open(&dir.path().join("store"), setup).await.unwrap();
    let ask = async |folder: &Path| {
        let linked = Link::new(other.addr().into(), Some(folder.to_owned())).connect().await.unwrap();
        ControlServiceClient::new(linked).get_status(v1::GetStatusRequest {}).await.is_ok()
    };
    assert_eq!((ask(&viewer).await, ask(&operator).await), (true, false));
    other.stop().await.unwrap();
    house.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_calls_and_streams_of_one_peer_are_bounded() {
    let limits =
        Limits { peer_connections: 3, peer_calls: 8, patience: Duration::from_secs(2), ..Limits::FAR };
    let house = House::new(limits).await;
    let viewer = house.certs().join("viewer");
    // Silent connections take all places for a while; then they are closed.
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(tokio::net::TcpStream::connect(house.local.addr()).await.unwrap());
    }
    for stream in &mut silent {
        let end = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut [0; 16])).await.unwrap();
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }
    until(&house, &viewer, true).await;
    let held = [house.people("viewer").await, house.people("viewer").await, house.people("viewer").await];
    assert!(house.ask(&viewer).await.is_err(), "the fourth");
    drop(held);
    until(&house, &viewer, true).await;
    // Streams that send no first message are ended after a time, and free their places.
    let linked = house.link(&house.certs().join("worker")).connect().await.unwrap();
    let mut open = Vec::new();
    for _ in 0..8 {
        let (up, outgoing) = mpsc::channel::<v1::FromWorker>(1);
        let mut client = WorkerServiceClient::new(linked.clone());
        open.push((
            up,
            tokio::spawn(async move { client.work(ReceiverStream::new(outgoing)).await.map(drop) }),
        ));
    }
    for (_up, task) in open {
        let status = task.await.unwrap().unwrap_err();
        assert!(matches!(status.code(), Code::DeadlineExceeded | Code::ResourceExhausted), "{status:?}");
    }
    assert!(stream(linked).await.is_ok());
    house.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_calls_too_often_waits_and_the_log_is_not_washed_out() {
    let house = House::new(Limits { calls_per_second: 2, ..Limits::FAR }).await;
    let mut bare = ControlServiceClient::new(house.anonymous("viewer").await);
    let mut codes = Vec::new();
    for _ in 0..200 {
        codes.push(bare.get_status(v1::GetStatusRequest {}).await.unwrap_err().code());
    }
    let count = |code| codes.iter().filter(|c| **c == code).count();
    assert_eq!(count(Code::Unauthenticated) + count(Code::ResourceExhausted), 200);
    assert!(count(Code::ResourceExhausted) >= 100, "{codes:?}");
    assert_eq!(house.audit().len(), 30);
    house.local.stop().await.unwrap();
}

/// Waits until this many jobs are queued.
async fn until_queued(client: &ControlServiceClient<Linked>, jobs: u32) {
    let asked = async {
        while client.clone().get_status(v1::GetStatusRequest {}).await.unwrap().into_inner().queued != jobs {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.expect("the number of queued jobs");
}

/// One hostile client of the control service does not harm the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_client_fills_nothing_and_stops_nothing() {
    let house = House::new(Limits { calls_per_second: 10_000, ..Limits::FAR }).await;
    let mut client = house.people("operator").await;
    let huge = v1::CampaignSpec { name: "n".repeat(9 << 20), ..spec(1) };
    assert!(client.create_campaign(huge).await.is_err(), "larger than a message");
    let mut client = house.people("operator").await;
    let many = |n: usize, long: usize| vec!["o".repeat(long); n];
    let bad = [
        v1::CampaignSpec { oracles: many(65, 1), ..spec(1) },
        v1::CampaignSpec { models: many(1, 501), ..spec(1) },
        v1::CampaignSpec { needs: many(1_000, 1_000), ..spec(1) },
        v1::CampaignSpec { profile: "p".repeat(101), ..spec(1) },
        v1::CampaignSpec { fingerprint: "f".repeat(501), ..spec(1) },
        v1::CampaignSpec { name: "../../etc".to_owned(), ..spec(1) },
    ];
    for spec in bad {
        assert_eq!(client.create_campaign(spec).await.unwrap_err().code(), Code::InvalidArgument);
    }
    // Jobs whose clients disconnect: more of them than may wait, but they free their places.
    use v1::submit_job_request::Job;
    let job = || v1::SubmitJobRequest {
        plan: None,
        job: Some(Job::Replay(v1::ReplayJob { program: "p".to_owned() })),
    };
    for _ in 0..moire_coordinator::CLIENT_JOBS_MAX / 128 + 1 {
        let mut tasks = Vec::new();
        for _ in 0..128 {
            let mut client = client.clone();
            tasks.push(tokio::spawn(async move { client.submit_job(job()).await.map(drop) }));
        }
        // All calls have begun before they are dropped, and all are gone before the next begin. Calls dropped
        // before the coordinator has handled them would cost the connection (`RESETS_MAX`).
        until_queued(&client, 128).await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for task in tasks {
            if let Ok(answer) = task.await {
                panic!("{answer:?}");
            }
        }
        until_queued(&client, 0).await;
    }
    // Watchers that disconnect free their places.
    client.create_campaign(spec(100)).await.unwrap();
    for _ in 0..600 {
        let name = v1::CampaignName { name: "c".to_owned() };
        match client.watch_campaign(name).await {
            Ok(stream) => drop(stream),
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    until(&house, &house.certs().join("viewer"), true).await;
    // Bytes that begin a TLS record but no handshake.
    let mut raw = tokio::net::TcpStream::connect(house.local.addr()).await.unwrap();
    raw.write_all(&[0x16, 3, 1, 0xFF, 0xFF]).await.unwrap();
    drop(raw);
    assert!(house.ask(&house.certs().join("viewer")).await.is_ok());
    house.local.stop().await.unwrap();
}
