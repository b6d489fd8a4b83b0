//! What is in `deploy/` fits the binary and itself: every command line parses, every metric is in `/metrics`, every file
//! is read by what it is for, as far as that is installed here; what is not is named on a line that says `skipped`.
//!
//! `MOIRE_DEPLOY_TOOLS` names a Python environment with the packages `kubernetes-validate` (the published schemas of
//! Kubernetes) and `check-jsonschema` (that of compose files); CI makes one.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use yaml_rust2::{Yaml, YamlLoader};

/// Folders under `deploy/kubernetes` that are applied.
const OVERLAYS: [&str; 3] = ["small", "fleet", "gpu"];

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().unwrap()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("certs") => {}
            true => walk(&path, found),
            false => found.push(path),
        }
    }
}

/// Every file with its text; the ending may be empty.
fn texts(ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(&deploy(), &mut found);
    found.retain(|p| p.to_string_lossy().ends_with(ending));
    found.sort();
    let read = |p: PathBuf| (p.display().to_string(), std::fs::read_to_string(p).unwrap());
    found.into_iter().map(read).collect()
}

/// Every YAML document.
fn documents() -> Vec<(String, Yaml)> {
    let files = texts(".yaml").into_iter().chain(texts(".yml"));
    let load = |(name, text): (String, String)| {
        let all = YamlLoader::load_from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        all.into_iter().map(move |document| (name.clone(), document))
    };
    files.flat_map(load).collect()
}

/// Every node of a document, from the top.
fn nodes(top: &Yaml) -> Vec<&Yaml> {
    let mut all = vec![top];
    let mut at = 0;
    while at < all.len() {
        match all[at] {
            Yaml::Array(list) => all.extend(list),
            Yaml::Hash(map) => all.extend(map.values()),
            _ => {}
        }
        at += 1;
    }
    all
}

fn words(list: &Yaml) -> Vec<String> {
    list.as_vec().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
}

/// A field, through the `<<` of compose files.
fn field<'a>(node: &'a Yaml, name: &str) -> &'a Yaml {
    match (&node[name], &node["<<"]) {
        (Yaml::BadValue, merged @ Yaml::Hash(_)) => field(merged, name),
        (found, _) => found,
    }
}

/// The places that run our image: file, and the words behind `moire`.
fn containers() -> Vec<(String, Vec<String>)> {
    let mut lines = Vec::new();
    for (name, document) in documents() {
        for node in nodes(&document) {
            let image = field(node, "image").as_str().unwrap_or_default();
            if image.split(':').next() != Some("moire") {
                continue;
            }
            let list = [&node["command"], &node["args"]].into_iter().find(|l| l.as_vec().is_some());
            lines.extend(list.map(|l| (name.clone(), words(l))));
        }
    }
    lines
}

/// The commands that units start.
fn units() -> Vec<(String, Vec<String>)> {
    let mut lines = Vec::new();
    for (name, text) in texts(".service") {
        // As `systemd` has it from the unit's environment.
        let text = text.replace("${MOIRE_COORDINATOR}", "localhost:7420");
        for line in text.lines().filter_map(|l| l.strip_prefix("ExecStart=")) {
            let mut words = line.split_whitespace().map(str::to_owned);
            assert_eq!(words.next().as_deref(), Some("/usr/local/bin/moire"), "{name}");
            lines.push((name.clone(), words.collect()));
        }
    }
    lines
}

fn moire(args: &[impl AsRef<std::ffi::OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moire")).args(args).stdin(Stdio::null()).output().unwrap()
}

/// A flag there is none of: where clap complains of it, it has taken all before it.
const BEYOND: &str = "--beyond-the-last-word";

#[test]
fn every_command_line_is_one_of_the_binary() {
    let (containers, units) = (containers(), units());
    assert!(containers.len() >= 5 && units.len() >= 2, "{containers:?} {units:?}");
    for (name, words) in containers.into_iter().chain(units) {
        let out = moire(&[&words[..], &[BEYOND.to_owned()]].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(&format!("unexpected argument '{BEYOND}'")), "{name}: {words:?}\n{said}");
    }
}

/// Lines of a text that a person types: the words from `moire` on.
fn typed(text: &str) -> Vec<Vec<String>> {
    let line = |line: &str| {
        let line = line.trim_start_matches(['#', '$', ' ']);
        let rest = line.strip_prefix("moire ")?;
        let words = rest.split_whitespace().take_while(|w| !w.starts_with(['#', '&', '|', '(', '>']));
        let clean = |w: &str| w.trim_matches(['`', ';', ',', '.']).to_owned();
        let words: Vec<String> = words.map(clean).collect();
        words.iter().any(|w| w.starts_with("--")).then_some(words)
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn every_command_that_a_comment_or_the_readme_tells_to_type_has_its_flags() {
    let readme = std::fs::read_to_string(deploy().join("../README.md")).unwrap();
    let mut lines: Vec<_> = typed(&readme).into_iter().map(|l| ("README.md".to_owned(), l)).collect();
    for (name, text) in texts("") {
        lines.extend(typed(&text).into_iter().map(|l| (name.clone(), l)));
    }
    assert!(lines.len() > 30, "{lines:?}");
    for (name, words) in lines {
        let mut help = String::new();
        for end in (1..=words.len().min(2)).rev().filter(|n| words[..*n].iter().all(|w| !w.starts_with('-')))
        {
            let out = moire(&[&words[..end], &["--help".to_owned()]].concat());
            if out.status.success() {
                help = String::from_utf8_lossy(&out.stdout).into_owned();
                break;
            }
        }
        for flag in words.iter().filter(|w| w.starts_with("--")) {
            let flag = flag.split('=').next().unwrap();
            let known = help.split([' ', '\n', ',', '=', '[', ']']).any(|w| w == flag);
            assert!(known, "{name}: {words:?}: no {flag} in\n{help}");
        }
    }
}

/// `/metrics` of a coordinator that has done nothing.
fn metrics() -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--store"])
        .arg(dir.path())
        .env_remove("MOIRE_CERTS")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let addr = lines.find_map(|l| Some(l.unwrap().split_once("http://")?.1.to_owned())).expect("an address");
    let mut stream = std::net::TcpStream::connect(&addr).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    page
}

/// Names of metrics in a text, with the selector of equal labels behind each, if there is one.
fn named(text: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("moire_") {
        let before = text[..at].chars().next_back();
        let part_of_more = before.is_some_and(|c| c.is_ascii_alphanumeric() || "_-/.".contains(c));
        let rest = &text[at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let selector = rest[end..].strip_prefix('{').and_then(|s| s.split_once('}')).map_or("", |s| s.0);
        if !part_of_more {
            found.insert((rest[..end].to_owned(), selector.replace("\\\"", "\"")));
        }
    }
    found
}

#[test]
fn every_metric_is_in_the_page_of_metrics() {
    let page = metrics();
    let mut names = BTreeSet::new();
    // The names of the Python module and of crates begin as those of metrics do.
    let code = |file: &str| ["/python/", "/playground/"].iter().any(|part| file.contains(part));
    for (file, text) in texts("").into_iter().filter(|(file, _)| !code(file)) {
        let text = text.replace("moire_check", "");
        for (name, selector) in named(&text) {
            let family = name.trim_end_matches("_total");
            assert!(page.contains(&format!("# TYPE {family} ")), "{file}: {name} is no metric");
            if !selector.is_empty() && !selector.contains(['~', '!']) {
                assert!(page.contains(&format!("{name}{{{selector}}}")), "{file}: {name}{{{selector}}}");
            }
            names.insert(name);
        }
    }
    assert!(names.len() > 20, "{names:?}");
    let shown = page.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next());
    let unused: Vec<_> = shown.filter(|n| !names.contains(*n)).collect();
    println!("shown and used by no dashboard or rule: {unused:?}");
}

#[test]
fn images_secrets_and_names_agree() {
    let version = env!("CARGO_PKG_VERSION");
    let certs = tempfile::tempdir().unwrap();
    let base = certs.path().join("certs");
    assert!(moire(&["certs", "init", base.to_str().unwrap()]).status.success());
    let (mut tags, mut pods) = (0, 0_u32);
    for (name, document) in documents() {
        let all = nodes(&document);
        for node in &all {
            if let Some(tag) = node["newTag"].as_str() {
                assert_eq!(tag, version, "{name}");
                tags += 1;
            }
            if let Some((_, tag)) = node["image"].as_str().and_then(|i| i.split_once("moire:")) {
                assert_eq!(tag, version, "{name}");
                tags += 1;
            }
            // `moire-ROLE` is the secret of a folder that `moire certs init` makes, with the file that is its key.
            let secret = node["secretName"].as_str().or(node["key"].as_str().and(node["name"].as_str()));
            if let Some(secret) = secret {
                let role = secret.strip_prefix("moire-").unwrap_or_else(|| panic!("{name}: {secret}"));
                assert!(
                    base.join(role).join(node["key"].as_str().unwrap_or("tls.crt")).exists(),
                    "{name}: {secret}"
                );
            }
        }
        if document["kind"].as_str().is_some_and(|k| ["Deployment", "StatefulSet", "CronJob"].contains(&k)) {
            pods += u32::from(hardened(&name, &all));
        }
    }
    assert!(tags >= 3 && pods >= 4, "{tags} {pods}");
    for (name, told) in texts("Containerfile").into_iter().chain(texts(".prebuilt")) {
        assert!(told.contains(&format!("moire:{version} ")), "{name}");
        assert!(told.contains("\nUSER 65532:65532\n"), "{name}");
        let ending = "EXPOSE 7420 7421\nVOLUME [\"/var/lib/moire\"]\nENTRYPOINT [\"/usr/local/bin/moire\"]\n";
        assert!(told.ends_with(ending), "{name} makes another image");
    }
}

/// The demands of the strictest pod security, and limits.
fn hardened(name: &str, all: &[&Yaml]) -> bool {
    let pod = all.iter().map(|n| &n["template"]["spec"]).find(|s| s["containers"].as_vec().is_some());
    // A patch of an overlay has no containers of its own.
    let Some(pod) = pod else { return false };
    let context = &pod["securityContext"];
    assert_eq!(context["runAsNonRoot"].as_bool(), Some(true), "{name}");
    assert_eq!(context["seccompProfile"]["type"].as_str(), Some("RuntimeDefault"), "{name}");
    assert_eq!(pod["automountServiceAccountToken"].as_bool(), Some(false), "{name}");
    for container in pod["containers"].as_vec().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["readOnlyRootFilesystem"].as_bool(), Some(true), "{name}");
        assert_eq!(context["allowPrivilegeEscalation"].as_bool(), Some(false), "{name}");
        assert_eq!(words(&context["capabilities"]["drop"]), ["ALL"], "{name}");
        assert!(container["resources"]["limits"]["memory"].as_str().is_some(), "{name}");
    }
    true
}

#[test]
fn dashboards_are_json_and_every_panel_asks_something() {
    let dashboards = texts(".json");
    assert!(!dashboards.is_empty());
    for (name, text) in dashboards.into_iter().filter(|d| d.0.contains("monitoring")) {
        let board: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let panels = board["panels"].as_array().unwrap();
        let mut ids = BTreeSet::new();
        for panel in panels {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: an id twice");
            assert!(panel["targets"][0]["expr"].as_str().is_some_and(|e| !e.is_empty()), "{name}: {panel}");
        }
        assert!(panels.len() > 5, "{name}");
    }
}

/// The tool, if it is installed: in the environment of `MOIRE_DEPLOY_TOOLS`, or on the path.
fn tool(name: &str) -> Option<PathBuf> {
    let own = std::env::var_os("MOIRE_DEPLOY_TOOLS").map(|venv| Path::new(&venv).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        own.into_iter().chain(std::env::split_paths(&path)).map(|d| d.join(name)).find(|p| p.is_file());
    if found.is_none() {
        println!("skipped: {name} is not installed");
    }
    found
}

fn run(command: &mut Command) -> String {
    let out = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{command:?}\n{said}\n{}", String::from_utf8_lossy(&out.stderr));
    said
}

#[test]
fn kubernetes_takes_every_overlay() {
    let Some(kubectl) = tool("kubectl") else { return };
    let validate = tool("kubernetes-validate");
    for overlay in OVERLAYS {
        let folder = deploy().join("kubernetes/overlays").join(overlay);
        let built = run(Command::new(&kubectl).arg("kustomize").arg(folder));
        let kinds: BTreeSet<_> = built.lines().filter_map(|l| l.strip_prefix("kind: ")).collect();
        assert!(kinds.contains("StatefulSet") && kinds.contains("NetworkPolicy"), "{overlay}: {kinds:?}");
        let images = built.lines().filter_map(|l| l.trim().trim_start_matches("- ").strip_prefix("image: "));
        let expected = format!("moire:{}", env!("CARGO_PKG_VERSION"));
        assert!(images.clone().all(|i| i == expected), "{overlay}: {:?}", images.collect::<Vec<_>>());
        let Some(validate) = &validate else { continue };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("built.yaml");
        std::fs::write(&file, &built).unwrap();
        let said = run(Command::new(validate).arg("--strict").arg(&file));
        println!("{overlay}: {} resources, {said}", kinds.len());
    }
}

#[test]
fn compose_and_prometheus_take_their_files() {
    let (compose, monitoring) = (deploy().join("compose/compose.yaml"), deploy().join("monitoring"));
    if let Some(check) = tool("check-jsonschema") {
        run(Command::new(check).args(["--builtin-schema", "vendor.compose-spec"]).arg(compose));
    }
    if let Some(promtool) = tool("promtool") {
        run(Command::new(promtool).args(["check", "rules"]).arg(monitoring.join("alerts.yml")));
    }
}

#[test]
fn systemd_takes_the_units() {
    let Some(analyze) = tool("systemd-analyze") else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in texts(".service").into_iter().chain(texts(".timer")) {
        // The binary is looked for, and is elsewhere here.
        let text = text.replace("/usr/local/bin/moire", env!("CARGO_BIN_EXE_moire"));
        let text = text.replace("User=moire\n", "").replace("Group=moire\n", "");
        std::fs::write(dir.path().join(Path::new(&name).file_name().unwrap()), text).unwrap();
    }
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let out = Command::new(&analyze).arg("verify").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let stem = name.split(['@', '.']).next().unwrap();
        let ours: Vec<_> = said.lines().filter(|l| l.contains(stem)).collect();
        assert!(ours.is_empty(), "{name}:\n{said}");
    }
}

/// A builder that leaves nothing behind: its storage is in `dir`, and it needs no daemon and no registry.
fn buildah(builder: &Path, dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(builder);
    let (root, run) = (dir.join("storage"), dir.join("run"));
    command.args(["--storage-driver", "vfs", "--root"]).arg(root).arg("--runroot").arg(run).args(args);
    command.env("BUILDAH_ISOLATION", "chroot").current_dir(dir);
    command
}

/// A base with what the binary of the tests is linked with, in place of the one that a registry has.
fn base_of_this_machine(dir: &Path) {
    let libraries = run(Command::new("ldd").arg(env!("CARGO_BIN_EXE_moire")));
    for path in libraries.split_whitespace().filter(|w| w.starts_with('/')) {
        let to = dir.join("rootfs").join(path.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(path, to).unwrap();
    }
    std::fs::write(dir.join("Base"), "FROM scratch\nCOPY rootfs /\n").unwrap();
}

#[test]
fn the_image_is_built_and_runs_where_there_is_a_builder() {
    let Some(builder) = tool("buildah") else { return };
    let dir = tempfile::tempdir().unwrap();
    if !buildah(&builder, dir.path(), &["from", "scratch"]).output().unwrap().status.success() {
        return println!("skipped: buildah may not work here");
    }
    base_of_this_machine(dir.path());
    run(&mut buildah(&builder, dir.path(), &["bud", "-f", "Base", "-t", "localhost/base", "."]));
    let context = dir.path().join("context");
    std::fs::create_dir_all(context.join("state")).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_moire"), context.join("moire")).unwrap();
    let file = deploy().join("container/Containerfile.prebuilt");
    let words = ["bud", "--build-arg", "BASE=localhost/base", "-t", "localhost/moire", "-f"];
    run(buildah(&builder, dir.path(), &words).arg(file).arg(&context));
    let made = run(&mut buildah(&builder, dir.path(), &["inspect", "--type", "image", "localhost/moire"]));
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let config = &made["OCIv1"]["config"];
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["Entrypoint"][0], "/usr/local/bin/moire");
    let name = run(&mut buildah(&builder, dir.path(), &["from", "localhost/moire"]));
    let words = ["run", name.trim(), "--", "/usr/local/bin/moire", "models", "list"];
    let said = run(&mut buildah(&builder, dir.path(), &words));
    assert!(said.contains("ptx"), "{said}");
}

/// Runs a script of `deploy/`; its exit code and what it says.
fn script(name: &str, words: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(deploy().join(name));
    let out = command.args(words).envs(variables.iter().copied()).output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// The scripts are tried with a small program in the place of the binary, whose archive takes long to make.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn an_archive_is_installed_if_it_is_what_its_checksum_says() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let small = "#!/bin/sh\ncase $1 in man) echo page > \"$2/moire.1\" ;; *) echo \"moire small\" ;; esac\n";
    std::fs::write(path("small"), small).unwrap();
    std::fs::set_permissions(path("small"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for out in ["one", "two"] {
        let (code, said) = script("archive", &["--binary", &path("small"), "--out", &path(out)], &[]);
        assert!(code == Some(0) && said.contains(".tar.gz"), "{said}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("moire-{version}-x86_64-unknown-linux-gnu.tar.gz");
    let archive = |out: &str| std::fs::read(folder.path().join(out).join(&name)).unwrap();
    assert_eq!(archive("one"), archive("two"), "equal binaries give equal archives");
    let sum = std::fs::read_to_string(folder.path().join("one").join(format!("{name}.sha256"))).unwrap();
    let sum = sum.split_whitespace().next().unwrap();
    let releases = [path("one"), format!("file://{}", path("one"))];
    for (releases, sha256) in [(&releases[0], ""), (&releases[1], ""), (&releases[0], sum)] {
        let variables = [("RELEASES", releases.as_str()), ("VERSION", version), ("SHA256", sha256)];
        let (code, said) = script("action/install", &[&path("bin")], &variables);
        assert!(code == Some(0) && said == "moire small\n", "{said}");
    }
    std::fs::remove_dir_all(path("bin")).unwrap();
    // Another archive, a checksum of something else, and none at all.
    let wrong = "0".repeat(64);
    let sums = [Some(format!("{wrong}  {name}\n")), Some(format!("{sum}  other\n")), None];
    for text in sums {
        let beside = folder.path().join("two").join(format!("{name}.sha256"));
        match &text {
            Some(text) => std::fs::write(&beside, text).unwrap(),
            None => std::fs::remove_file(&beside).unwrap(),
        }
        let variables =
            [("RELEASES", path("two")), ("VERSION", version.to_owned()), ("SHA256", String::new())];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let (code, said) = script("action/install", &[&path("bin")], &variables);
        assert!(code != Some(0) && !folder.path().join("bin/moire").exists(), "{text:?}: {said}");
    }
}

#[test]
fn the_action_installs_this_version() {
    let action = std::fs::read_to_string(deploy().join("action/action.yml")).unwrap();
    let document = &YamlLoader::load_from_str(&action).unwrap()[0];
    assert_eq!(document["inputs"]["version"]["default"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    assert!(action.contains(&format!("deploy/action@v{}\n", env!("CARGO_PKG_VERSION"))), "{action}");
    assert!(!action.contains("cargo"), "{action}");
}
