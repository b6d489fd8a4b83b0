//! The report and the live pages in headless Chromium: find a finding, open its graph, copy its replay line, run it,
//! the same verdict. Pictures are kept in the build folder, under `tmp/pictures`. Without `chromedriver` and a browser
//! the test says so and passes.

mod driver;

use driver::Browser;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// As WebDriver writes the control key held down, and all keys up.
const CONTROL: char = '\u{e009}';

fn moire(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_moire")).args(args).current_dir(folder).output().unwrap();
    (out.status.code(), String::from_utf8(out.stdout).unwrap())
}

/// A coordinator on a store; ends with the test.
struct Served(Child, String);

impl Served {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--store", "store"]);
        let mut child = command.current_dir(folder).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = said
            .filter_map(|line| {
                Some(format!("http://{}", line.split("http://").nth(1)?.split(['/', ' ', ';', ',']).next()?))
            })
            .next();
        Self(child, url.expect("it says where its pages are"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where pictures are kept.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The audit finds nothing wrong with the page, in the light and in the dark scheme. Takes a picture of each.
fn audit(browser: &Browser, name: &str) {
    for scheme in ["light", "dark"] {
        browser.scheme(scheme);
        let wrong = browser.eval(include_str!("browser/audit.js"));
        assert_eq!(wrong, serde_json::json!([]), "{name}, {scheme}");
        browser.picture(&pictures().join(format!("{name}-{scheme}.png")));
    }
    browser.scheme("light");
}

/// Copies the replay line of the open finding with its button, pastes it into the search field, and runs what arrived.
fn copied_line_replays(browser: &Browser, id: &str, paste: impl Fn(&Browser)) {
    let button = format!("button[data-copy=r{id}]");
    browser.click(&button);
    browser
        .until("return document.getElementById('say')?.textContent.startsWith('The replay line is copied')");
    paste(browser);
    browser.keys("input[type=search]", &format!("{CONTROL}av"));
    let pasted = browser.eval("return document.querySelector('input[type=search]').value");
    let line = pasted.as_str().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let word = line.strip_prefix("moire replay ").unwrap_or_else(|| panic!("pasted: {line}"));
    let (code, said) = moire(empty.path(), &["replay", word]);
    assert_eq!((code, said.contains("reproduced")), (Some(10), true), "{said}");
}

#[test]
fn a_finding_is_found_drawn_copied_and_replayed() {
    let browser = match Browser::start() {
        Ok(browser) => browser,
        Err(why) => return println!("skipped: {why}; Debian has chromium and chromium-driver"),
    };
    let folder = tempfile::tempdir().unwrap();
    let fuzz =
        ["fuzz", "--programs", "1000", "--oracle", "model-pair", "--model", "ptx-6.0", "--model", "ptx-7.5"];
    let (code, said) = moire(folder.path(), &[&fuzz[..], &["--store", "store"]].concat());
    assert_eq!(code, Some(0), "{said}");
    let (_, listed) = moire(folder.path(), &["findings", "list", "--store", "store"]);
    let ids: Vec<&str> = listed.lines().filter_map(|l| l.split(' ').next()).collect();
    assert!(ids.len() > 1, "{said}");
    let mark =
        ["findings", "mark", ids[1], "suppress", "--until", "14d", "--who", "a person", "--why", "known"];
    assert_eq!(moire(folder.path(), &[&mark[..], &["--store", "store"]].concat()).0, Some(0));
    assert_eq!(moire(folder.path(), &["report", "--out", "out", "--store", "store"]).0, Some(0));
    report(&browser, &folder.path().join("out/report.html"), ids[0], ids.len());
    live(&browser, folder.path(), ids[0]);
}

fn report(browser: &Browser, page: &Path, id: &str, all: usize) {
    browser.open(&format!("file://{}", page.display()));
    audit(browser, "report");
    let shown = |n: usize| {
        browser.until(&format!("return document.querySelector('form output').textContent === '{n} shown'"));
        let script =
            "return [...document.querySelectorAll('[data-item]')].filter((n) => n.checkVisibility()).length";
        assert_eq!(browser.eval(script), serde_json::json!(n));
    };
    shown(all);
    browser.click("input[name=suppressed]");
    shown(all - 1);
    browser.keys("body", "/");
    browser.until("return document.activeElement.type === 'search'");
    browser.keys("input[type=search]", id);
    shown(1);
    browser.click(&format!("#f{id} summary"));
    browser.until(&format!("return document.querySelector('#f{id} svg').checkVisibility()"));
    assert_ne!(browser.eval(&format!("return document.querySelectorAll('#f{id} svg path.rf').length")), 0);
    audit(browser, "report-finding");
    copied_line_replays(browser, id, |_| {});
    browser.keys("input[type=search]", &format!("{CONTROL}a\u{e000}nothing like that"));
    shown(0);
}

fn live(browser: &Browser, folder: &Path, id: &str) {
    let served = Served::start(folder);
    let url = &served.1;
    browser.open(url);
    browser.until("return document.querySelectorAll('#campaign-list tbody tr').length === 1");
    audit(browser, "overview");
    // The page reads itself again; what is read replaces what was there.
    browser.eval("document.querySelector('#campaign-list').textContent = 'old'");
    browser.until("return document.querySelectorAll('#campaign-list tbody tr').length === 1");
    browser.click("nav a[href='/findings']");
    audit(browser, "findings");
    browser.keys("body", "/");
    browser.keys("input[type=search]", &format!("{id} model-pair\u{e007}"));
    browser
        .until("return document.querySelectorAll('tbody tr').length === 1 && location.search.includes('q=')");
    browser.click("tbody a");
    browser.until("return document.querySelector('.graph svg')?.checkVisibility() === true");
    audit(browser, "finding");
    copied_line_replays(browser, id, |browser| {
        browser.open(&format!("{url}/findings"));
        // The field takes less than a line, and the test wants to read all of it.
        browser.eval("document.querySelector('input[type=search]').maxLength = 9999");
    });
    // What is typed into the address stays text, and what is not there is said.
    browser.open(&format!("{url}/findings?q=%22%3E%3Cscript%3Ewrong=1%3C/script%3E&state=fixed"));
    browser.until(
        "return document.body.innerText.includes('No finding matches') && typeof wrong === 'undefined'",
    );
    browser.open(&format!("{url}/findings/0123456789"));
    browser.until("return document.body.innerText.includes('no finding starts with 0123456789')");
}

/// The page of the playground, which `MOIRE_PLAYGROUND` names: it judges without a server, and its link carries a program.
#[test]
fn the_playground_judges_by_itself() {
    let Some(page) = std::env::var_os("MOIRE_PLAYGROUND") else {
        eprintln!("skipped: MOIRE_PLAYGROUND names no page; deploy/playground/build makes one");
        return;
    };
    let browser = match Browser::start() {
        Ok(browser) => browser,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let page = std::fs::canonicalize(page).expect("the page is there");
    browser.open(&format!("file://{}", page.display()));
    let verdict = |word: &str| {
        browser.until(&format!(
            "return document.body.dataset.answered && document.getElementById('verdict').textContent === '{word}'"
        ));
    };
    verdict("race");
    let late = browser.eval(
        "const paint = performance.getEntriesByName('first-paint')[0].startTime; return Math.round(window.judgedAt - paint)",
    );
    eprintln!("judged {late} ms after the first paint");
    let seen = browser.eval(
        "return [document.querySelectorAll('.picture svg').length > 0, document.querySelectorAll('#numbers b').length]",
    );
    assert_eq!(seen, serde_json::json!([true, 2]));
    audit(&browser, "playground");

    browser.eval(
        "const e = document.getElementById('example'); e.value = 'sb-relaxed.litmus'; e.onchange(); return 1",
    );
    verdict("clean");
    browser.eval("document.getElementById('link').click(); return 1");
    browser.until("return location.hash.length > 100");
    let link = browser.eval("return location.href");
    browser.open("about:blank");
    browser.open(link.as_str().expect("an address"));
    verdict("clean");
    assert_eq!(
        browser.eval("return document.getElementById('name').value"),
        serde_json::json!("sb-relaxed.litmus")
    );
    browser.eval("const t = document.getElementById('text'); t.value = 'nonsense'; t.oninput(); return 1");
    verdict("rejected");
}
