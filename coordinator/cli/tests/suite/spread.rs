//! One exploration shared by workers: totals and the sum of the digests of all executions are those of one thread, whichever
//! processes are killed meanwhile. A piece that is lost or counted twice would change the sum.

use crate::fleet::Fleet;
use moire_cat::{Model, Variants};
use moire_coordinator::v1::control_service_client::ControlServiceClient;
use moire_coordinator::{Local, lease, v1};
use moire_explore::search::LeafView;
use moire_explore::search::share::Piece;
use moire_explore::{Abstain, Limits, explore};
use moire_generate::families::named;
use moire_program::text::{Format, parse};
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Reduced, Verification};
use moire_worker::oracle::Oracles;
use moire_worker::piece::{Exploration, Explored, Step, tree};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The numbers that do not depend on who explores: complete, blocked, dead ends, sum of the numbers.
type Sum = (u64, u64, u64, u64);

fn model() -> Model {
    moire_models::load("ptx", &Variants::new()).unwrap()
}

fn family(name: &str, n: usize) -> String {
    named(name).unwrap().text(n)
}

/// Two rounds at an mbarrier between three warps, and a ring of stores and loads beside it.
fn barriers(ring: usize) -> String {
    let mut text = "moire \"barriers\"\n.shared .b64 bar;\n.shared .b32 s;\n".to_owned();
    (0..ring).for_each(|i| text += &format!(".global .b32 x{i};\n"));
    text += "P0 (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [bar], 2;\n  bar.sync 0;\n\
             L:\n  mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n  @!p bra L;\n\
             ld.relaxed.cta.shared.u32 r, [s];\n}\n";
    for i in 1..3 {
        text += &format!(
            "P{i} (gpu 0, cta 0) {{ bar.sync 0; st.relaxed.cta.shared.u32 [s], {i}; \
             mbarrier.arrive.shared::cta.b64 _, [bar]; }}\n"
        );
    }
    for i in 0..ring {
        let next = (i + 1) % ring;
        text += &format!(
            "R{i} (gpu 0, cta {}) {{ st.relaxed.gpu.u32 [x{i}], 1; ld.relaxed.gpu.u32 r, [x{next}]; }}\n",
            i + 1
        );
    }
    text
}

fn alone(text: &str) -> Sum {
    let program = parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut digest = 0u64;
    let summary = explore(&program, &model(), &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        digest = digest.wrapping_add(leaf.digest());
        ControlFlow::Continue(())
    });
    let summary = summary.unwrap();
    (summary.complete, summary.blocked, summary.dead_ends, digest)
}

fn asked(text: &str) -> v1::Exploration {
    let model = model();
    v1::Exploration {
        program: text.to_owned(),
        model: "ptx".to_owned(),
        switches: model.variants().clone(),
        fingerprint: blake3::hash(model.canonical_text().as_bytes()).as_bytes().to_vec(),
        tree: tree().to_owned(),
        loop_bound: Limits::default().loop_bound,
        ..v1::Exploration::default()
    }
}

/// Workers are killed often here, and a piece may be in the hands of each.
fn patient() -> lease::Config {
    lease::Config { attempts_max: 10_000, ..lease::Config::default() }
}

async fn start(store: &Path) -> Local {
    Local::start(store, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), patient()).await.unwrap()
}

fn worker<E: Engine + 'static>(to: SocketAddr, engine: &Arc<E>, name: &str) -> tokio::task::JoinHandle<()> {
    let options = moire_worker::Options { name: name.to_owned(), threads: 1 };
    let engine = engine.clone();
    tokio::spawn(async move { _ = moire_worker::work(to, engine, options).await })
}

/// Asks until it is over, or until `enough`.
async fn follow(
    to: SocketAddr,
    asked: v1::Exploration,
    enough: impl Fn(&v1::ExploreStatus) -> bool,
) -> v1::ExploreStatus {
    let mut client = ControlServiceClient::connect(format!("http://{to}")).await.unwrap();
    let mut stream = client.explore(asked).await.unwrap().into_inner();
    let found = async {
        while let Some(status) = stream.message().await.unwrap() {
            if status.over || enough(&status) {
                return status;
            }
        }
        panic!("the stream ended before the exploration")
    };
    tokio::time::timeout(Duration::from_secs(300), found).await.expect("it ends")
}

fn sum(status: &v1::ExploreStatus) -> Sum {
    assert!(status.over && status.failed.is_empty() && status.unsupported.is_none(), "{status:?}");
    let e = status.explored.clone().unwrap();
    assert_eq!(e.bounded, "");
    (e.complete, e.blocked, e.dead_ends, e.digest)
}

async fn shared<E: Engine + 'static>(text: &str, engine: Arc<E>, workers: usize) -> v1::ExploreStatus {
    let store = tempfile::tempdir().unwrap();
    let here = start(store.path()).await;
    (0..workers).for_each(|n| drop(worker(here.addr(), &engine, &format!("w{n}"))));
    let status = follow(here.addr(), asked(text), |_| false).await;
    here.stop().await.unwrap();
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_workers_counts_what_one_thread_counts() {
    for text in [family("lbf", 15), family("ainc", 7), barriers(7)] {
        let expected = alone(&text);
        assert!(expected.0 > 100, "too small to share: {expected:?}");
        for workers in [1, 2, 8] {
            let status = shared(&text, Arc::new(Oracles::new()), workers).await;
            assert_eq!(sum(&status), expected, "{workers} workers\n{text}");
            assert!(workers > 1 || status.leases == 1, "nobody waited: {status:?}");
        }
    }
    let many = shared(&family("lbf", 15), Arc::new(Oracles::new()), 8).await;
    assert!(many.leases > 3 && many.checks.len() > 2, "it was not shared: {many:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_are_killed_lose_and_repeat_nothing() {
    let text = family("lbf", 16);
    let expected = alone(&text);
    let store = tempfile::tempdir().unwrap();
    let here = start(store.path()).await;
    let (addr, engine) = (here.addr(), Arc::new(Oracles::new()));
    let killer = tokio::spawn(async move {
        let mut alive: Vec<_> = (0..3).map(|n| worker(addr, &engine, &format!("w{n}"))).collect();
        let mut kills = 0u64;
        // One at a time, at moments that have no period in common with anything.
        loop {
            tokio::time::sleep(Duration::from_millis(23 + kills * 37 % 41)).await;
            let next = worker(addr, &engine, &format!("k{kills}"));
            let victim = usize::try_from(kills % 3).unwrap();
            std::mem::replace(&mut alive[victim], next).abort();
            kills += 1;
        }
    });
    let status = follow(addr, asked(&text), |_| false).await;
    killer.abort();
    assert_eq!(sum(&status), expected);
    assert!(status.leases > 5, "nobody was killed with a piece: {status:?}");
    here.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_goes_on_where_its_store_is() {
    let text = family("lbf", 16);
    let expected = alone(&text);
    let store = tempfile::tempdir().unwrap();
    let engine = Arc::new(Oracles::new());
    let (mut restarts, mut before) = (0, 0);
    loop {
        let here = start(store.path()).await;
        (0..3).for_each(|n| drop(worker(here.addr(), &engine, &format!("w{n}"))));
        let count = |s: &v1::ExploreStatus| s.explored.as_ref().map_or(0, |e| e.complete);
        // A few times before the end.
        let enough = |s: &v1::ExploreStatus| restarts < 3 && count(s) > before;
        let status = follow(here.addr(), asked(&text), enough).await;
        assert!(count(&status) >= before, "what was counted is counted");
        before = count(&status);
        here.stop().await.unwrap();
        if status.over {
            assert_eq!(sum(&status), expected, "after {restarts} restarts");
            break;
        }
        restarts += 1;
    }
    assert!(restarts > 0, "it ended before it was stopped");
    // It is over for good: asked again, nobody explores it.
    let here = start(store.path()).await;
    let status = follow(here.addr(), asked(&text), |_| false).await;
    assert_eq!((sum(&status), status.leases), (expected, 0));
    here.stop().await.unwrap();
}

/// A mistake in how a worker gives away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// It forgets the part it gives away, and tells nobody.
    Loses,
    /// It explores the part it gives away, too.
    Repeats,
}

struct Careless {
    oracles: Oracles,
    mistake: Mistake,
    given: AtomicUsize,
}

impl Engine for Careless {
    fn capabilities(&self) -> Vec<String> {
        self.oracles.capabilities()
    }
    fn fingerprint(&self) -> String {
        self.oracles.fingerprint()
    }
    fn run(&self, item: &Item, cancel: &Cancel) -> ItemReport {
        self.oracles.run(item, cancel)
    }
    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification {
        self.oracles.verify(claim, cancel)
    }
    fn minimise(&self, c: &Claim, b: Budget, cancel: &Cancel, p: &mut dyn FnMut(&Claim)) -> Reduced {
        self.oracles.minimise(c, b, cancel, p)
    }
    fn explore(
        &self,
        asked: &Exploration,
        piece: &Piece,
        cancel: &Cancel,
        tell: &(dyn Fn(Step) + Sync),
    ) -> Result<Explored, Abstain> {
        let given = Mutex::new(Vec::new());
        let careless = |step: Step| {
            if let Step::Given(node) = &step {
                self.given.fetch_add(1, Ordering::Relaxed);
                given.lock().unwrap().push(node.clone());
                if self.mistake == Mistake::Loses {
                    return;
                }
            }
            tell(step);
        };
        let mut explored = self.oracles.explore(asked, piece, cancel, &careless)?;
        let given = given.into_inner().unwrap();
        if let Some(behind) = given.first().filter(|_| self.mistake == Mistake::Repeats) {
            let first = Piece { behind: behind.clone(), until: piece.until.clone() };
            let again = self.oracles.explore(asked, &first, &Cancel::new(), &|_| {})?;
            explored.summary = explored.summary.plus(&again.summary);
            explored.digest = explored.digest.wrapping_add(again.digest);
        }
        Ok(explored)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_that_is_lost_or_counted_twice_shows() {
    let text = family("lbf", 15);
    let expected = alone(&text);
    for mistake in [Mistake::Loses, Mistake::Repeats] {
        let careless = Careless { oracles: Oracles::new(), mistake, given: AtomicUsize::new(0) };
        let engine = Arc::new(careless);
        let status = shared(&text, engine.clone(), 3).await;
        assert!(engine.given.load(Ordering::Relaxed) > 0, "{mistake:?}: nothing was given away");
        if !status.failed.is_empty() {
            // Another worker counted the same stretch again.
            assert!(status.failed.contains("contradict") || status.failed.contains("differ"), "{status:?}");
            continue;
        }
        let found = sum(&status);
        assert_ne!(found.3, expected.3, "{mistake:?}");
        assert_eq!(found.0 < expected.0, mistake == Mistake::Loses, "{mistake:?}: {found:?} {expected:?}");
    }
}

/// Another tree of decisions: nothing is leased, and that is said.
#[tokio::test(flavor = "multi_thread")]
async fn workers_of_another_build_get_no_piece() {
    let store = tempfile::tempdir().unwrap();
    let here = start(store.path()).await;
    let _worker = worker(here.addr(), &Arc::new(Oracles::new()), "w");
    let foreign = v1::Exploration { tree: "tree-of-others".to_owned(), ..asked(&family("lbf", 4)) };
    let mut client = ControlServiceClient::connect(format!("http://{}", here.addr())).await.unwrap();
    let mut stream = client.explore(foreign).await.unwrap().into_inner();
    let status = stream.message().await.unwrap().unwrap();
    assert_eq!((status.over, status.able, status.waiting), (false, 0, 1));
    let hostile = [
        v1::Exploration::default(),
        v1::Exploration { fingerprint: vec![1; 31], ..asked("x") },
        v1::Exploration { program: "x".repeat(70_000), ..asked("") },
        v1::Exploration { model: "m".repeat(501), ..asked("x") },
    ];
    for bad in hostile {
        assert_eq!(client.explore(bad).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    }
    here.stop().await.unwrap();
}

fn moire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
    command.args(args).stdin(Stdio::null());
    command
}

fn serve(listen: &str, store: &Path) -> (Child, String) {
    let mut child = moire(&["serve", "--listen", listen, "--store", store.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find(|l| l.as_ref().unwrap().starts_with("serving")).unwrap().unwrap();
    let addr = line.split(" on ").nth(1).unwrap().split(';').next().unwrap().to_owned();
    std::thread::spawn(move || lines.for_each(drop));
    (child, addr)
}

fn work(to: &str) -> Child {
    moire(&["work", "--coordinator", to, "--threads", "1"]).stderr(Stdio::null()).spawn().unwrap()
}

/// Exit code and stdout without the number of checks. A worker that takes over a piece repeats some checks.
fn words(out: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&out.stdout);
    let line = |line: &str| match line.split_once(" dead ends, ") {
        Some((before, _)) => format!("{before} dead ends\n"),
        None => format!("{line}\n"),
    };
    (out.status.code(), text.lines().map(line).collect())
}

/// `moire check` says the same with a fleet and without, of what is wrong as of what is right.
#[test]
fn a_fleet_says_what_one_process_says() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let (server, addr) = serve("127.0.0.1:0", &folder.path().join("store"));
    let _fleet = Fleet(vec![server, work(&addr), work(&addr)]);
    let own = folder.path().join("own.cat");
    std::fs::write(&own, "include \"part.cat\"\nacyclic (po-loc | communication) as coherent\n").unwrap();
    std::fs::write(folder.path().join("part.cat"), "let communication = rf | co | fr\n").unwrap();
    let lbf = folder.path().join("lbf.litmus");
    std::fs::write(&lbf, family("lbf", 9)).unwrap();
    let file = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let (lbf, own) = (lbf.to_str().unwrap().to_owned(), own.to_str().unwrap().to_owned());
    let asked: &[&[&str]] = &[
        &[&lbf],
        &[&lbf, "--limit", "100"],
        &[&file("mp/mp-fences.litmus"), "--model", &own],
        &[&file("mbarrier/missing-arrive.litmus")],
        &[&file("mbarrier/early-pass.litmus")],
        &[&file("mbarrier/missing-init-fence.litmus"), "--contest"],
    ];
    let mut verdicts = std::collections::BTreeSet::new();
    for args in asked {
        let alone = words(&moire(&[&["check"], *args].concat()).output().unwrap());
        let shared = moire(&[&["check"], *args, &["--coordinator", &addr]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&shared.stderr);
        if args.contains(&"--limit") {
            // About so many executions, so the line with their number may differ.
            assert_eq!((words(&shared).0, alone.0), (Some(11), Some(11)), "{said}");
        } else {
            assert_eq!(words(&shared), alone, "{args:?}\n{said}");
        }
        verdicts.insert(alone.1.lines().next().unwrap().rsplit(": ").next().unwrap().to_owned());
    }
    assert!(verdicts.len() >= 4, "{verdicts:?}");
}

/// Workers and coordinator are killed as processes in the middle of an exploration; the client still gets its answer.
#[test]
fn killed_processes_change_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (store, program) = (folder.path().join("store"), folder.path().join("lbf.litmus"));
    std::fs::write(&program, family("lbf", 18)).unwrap();
    let program = program.to_str().unwrap();
    let (server, addr) = serve("127.0.0.1:0", &store);
    let mut fleet = Fleet(vec![server, work(&addr), work(&addr)]);
    let mut check = moire(&["check", program, "--coordinator", &addr]);
    let check = check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for round in 0..2 {
        std::thread::sleep(Duration::from_millis(400));
        fleet.0[1 + round].kill().unwrap();
        fleet.0.push(work(&addr));
        std::thread::sleep(Duration::from_millis(200));
        fleet.0[0].kill().unwrap();
        fleet.0[0].wait().unwrap();
        fleet.0[0] = serve(&addr, &store).0;
    }
    let shared = check.wait_with_output().unwrap();
    let (code, text) = words(&shared);
    let said = String::from_utf8_lossy(&shared.stderr);
    assert_eq!(code, Some(0), "{text}{said}");
    // 2^18 - 1.
    assert!(text.contains(" 262,143 executions\n"), "{text}{said}");
}
