//! The few commands of WebDriver that the test needs, over plain HTTP to a `chromedriver` of its own.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything a page does.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser without a window.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.try_ask("DELETE", "", &json!({}));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    /// `Err`: what is missing.
    pub(crate) fn start() -> Result<Self, String> {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().map_err(|e| format!("chromedriver does not start: {e}"))?;
        let said = BufReader::new(driver.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let port = said
            .filter_map(|l| l.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok())
            .next();
        let mut browser = Self { driver, port: port.unwrap_or(0), session: String::new() };
        let options = json!({"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--window-size=1280,1400", "--force-prefers-reduced-motion"]});
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}});
        let answer = match browser.try_ask("POST", "/session", &wanted) {
            Err(why) if why.contains("cannot find") => return Err(why),
            answer => answer.unwrap_or_else(|e| panic!("{e}")),
        };
        browser.session = answer["sessionId"].as_str().ok_or("no session")?.to_owned();
        Ok(browser)
    }

    fn try_ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let prefix =
            if self.session.is_empty() { String::new() } else { format!("/session/{}", self.session) };
        let body = body.to_string();
        let request = format!(
            "{method} {prefix}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut answer = Vec::new();
        let mut read = || -> std::io::Result<()> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(request.as_bytes())?;
            // Some versions keep the connection: the length says where the answer ends.
            let mut stream = BufReader::new(stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line)?;
                if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap_or(0);
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            answer.resize(length, 0);
            stream.read_exact(&mut answer)
        };
        read().map_err(|e| format!("chromedriver does not answer: {e}"))?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|e| e.to_string())?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{path}: {error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        self.try_ask("POST", path, body).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn open(&self, url: &str) {
        self.ask("/url", &json!({"url": url}));
    }
    /// The result of a script.
    pub(crate) fn eval(&self, script: &str) -> Value {
        self.ask("/execute/sync", &json!({"script": script, "args": []}))
    }
    /// Waits until a script returns true.
    pub(crate) fn until(&self, script: &str) {
        let start = Instant::now();
        while self.eval(script) != Value::Bool(true) {
            assert!(
                start.elapsed() < PATIENCE,
                "never true: {script}\n{}",
                self.eval("return document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    fn element(&self, css: &str) -> String {
        let found = self.ask("/element", &json!({"using": "css selector", "value": css}));
        found
            .as_object()
            .and_then(|o| o.values().next())
            .and_then(Value::as_str)
            .expect("an element")
            .to_owned()
    }
    pub(crate) fn click(&self, css: &str) {
        self.ask(&format!("/element/{}/click", self.element(css)), &json!({}));
    }
    pub(crate) fn keys(&self, css: &str, text: &str) {
        self.ask(&format!("/element/{}/value", self.element(css)), &json!({"text": text}));
    }
    /// A picture of the page, as an artefact.
    pub(crate) fn picture(&self, path: &Path) {
        let answer = self.try_ask("GET", "/screenshot", &json!({})).unwrap_or_else(|e| panic!("{e}"));
        let bytes = data_encoding::BASE64.decode(answer.as_str().unwrap().as_bytes()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    /// As a person who prefers dark, or light, sees it.
    pub(crate) fn scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let command = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.ask("/goog/cdp/execute", &command);
    }
}
