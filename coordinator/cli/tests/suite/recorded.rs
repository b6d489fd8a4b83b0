//! `moire record`: programs launch kernels over the stand-in of the driver, and `moire check` judges what was recorded. Needs
//! a C compiler; the test of containers as NVIDIA's tools write them needs those and says so where it is skipped.

use crate::cli::moire;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const LAUNCHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/recorded/launcher.c");

/// Two warps: the first stores behind one pointer, the second behind the other.
const PAIR: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
    .visible .entry pair(.param .u64 first, .param .u64 second)\n.reqntid 64\n{\n\
    .reg .pred %p;\n.reg .b32 %r<2>;\n.reg .b64 %rd<5>;\n\
    ld.param.u64 %rd0, [first];\nld.param.u64 %rd1, [second];\nmov.u32 %r0, %tid.x;\nsetp.lt.u32 %p, %r0, 32;\n\
    selp.b64 %rd2, %rd0, %rd1, %p;\nand.b32 %r1, %r0, 31;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\n\
    st.global.u32 [%rd4], %r0;\nret;\n}\n";

/// The same with both pointers in a structure, and a number: with 0 nothing is stored.
fn in_structure() -> String {
    PAIR.replace(".param .u64 first, .param .u64 second", ".param .align 8 .b8 both[24]")
        .replace("[first]", "[both]")
        .replace("[second]", "[both+8]")
        .replace(
            "mov.u32 %r0, %tid.x;\n",
            "ld.param.u32 %r1, [both+16];\nsetp.eq.u32 %p, %r1, 0;\n@%p ret;\nmov.u32 %r0, %tid.x;\n",
        )
}

/// A copy of a tile through shared memory, from one tensor map to another.
const THROUGH: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
    .visible .entry through(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])\n.reqntid 32\n{\n\
    .reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n.shared .align 128 .b8 tile[8192];\n.shared .align 8 .b64 full;\n\
    mov.u32 %r0, %tid.x;\nmov.b32 %r1, tile;\nmov.b32 %r2, full;\nmov.b32 %r3, 0;\nmov.b64 %rd0, from;\nmov.b64 %rd1, to;\n\
    setp.ne.u32 %p0, %r0, 0;\n@%p0 bra DONE;\nmbarrier.init.shared::cta.b64 [%r2], 1;\nfence.proxy.async;\n\
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 8192;\n\
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd0, {%r3, %r3}], [%r2];\n\
    WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;\n@!%p1 bra WAIT;\n\
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r3, %r3}], [%r1];\n\
    cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE:\nret;\n}\n";

/// A ring that a parameter turns, and one whose producer does not wait for the consumer: wrong from the third round on.
fn ring(right: bool) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx/ring.ptx");
    let text = std::fs::read_to_string(path).unwrap();
    let wait = "mbarrier.try_wait.parity.shared.b64 p, [%r15], %r14;";
    assert!(text.contains(wait));
    if right { text } else { text.replace(wait, "setp.eq.b32 p, 0, 0;") }
}

/// The launcher, compiled; none without a compiler.
fn launcher() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(tempfile::TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("launcher");
        let out =
            Command::new("cc").args(["-O1", "-o"]).arg(&program).args([LAUNCHER, "-ldl"]).output().ok()?;
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Some((folder, program))
    });
    if built.is_none() {
        println!("skipped: no C compiler");
    }
    built.as_ref().map(|b| b.1.as_path())
}

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let here = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(here.path().join(name), bytes).unwrap());
    here
}

/// Runs the launcher under the recorder; its exit code, and what the recorder says.
fn record(here: &Path, out: &str, words: &str) -> (i32, String) {
    let program = launcher().unwrap().to_str().unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    let all = [&["record", "--target", "90", "--out", out, "--", program], &words[..]].concat();
    let done = moire(here, &all);
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

/// The launches of a record, by the names of their files.
fn launches(here: &Path, record: &str) -> Vec<(String, Value)> {
    let all = std::fs::read_dir(here.join(record).join("launches")).unwrap();
    let mut out: Vec<(String, Value)> = all
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), serde_json::from_str(&text).unwrap())
        })
        .collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// The verdicts of `moire check` on a record, sorted, and its exit code.
fn verdicts(here: &Path, record: &str) -> (Vec<String>, i32) {
    let done = moire(here, &["check", "--format", "json", record]);
    let text = String::from_utf8(done.stdout).unwrap();
    let one = |line: &str| {
        let answer: Value = serde_json::from_str(line).unwrap();
        let words = answer["verdicts"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned());
        words.collect::<Vec<_>>().join(", ")
    };
    let mut out: Vec<String> = text.lines().map(one).collect();
    out.sort();
    (out, done.status.code().unwrap())
}

#[test]
fn a_parameter_that_decides_a_trip_count_arrives() {
    if launcher().is_none() {
        return;
    }
    let here = folder(&[("right.ptx", ring(true).as_bytes()), ("wrong.ptx", ring(false).as_bytes())]);
    let words =
        |file| format!("dlsym load {file} kernel ring u32 2 launch 1 64 u32 4 launch 1 64 u32 4 launch 1 64");
    let (code, said) = record(here.path(), "right", &words("right.ptx"));
    assert!(code == 0 && said.contains("recorded 2 shapes of 1 kernel in right"), "{code} {said}");
    assert!(said.contains("check them with: moire check right\n"), "{said}");
    assert_eq!(verdicts(here.path(), "right"), (vec!["clean".to_owned(), "clean".to_owned()], 0));
    record(here.path(), "wrong", &words("wrong.ptx"));
    // Two rounds have no third one.
    let (found, code) = verdicts(here.path(), "wrong");
    assert!(found[0] == "clean" && found[1].starts_with("race") && code == 10, "{found:?}");
    // One launch is checked by its file, and what is checked has the numbers of the record.
    let four =
        launches(here.path(), "wrong").into_iter().find(|l| l.1["params"][0]["bytes"] == "04000000").unwrap();
    let file = format!("wrong/launches/{}", four.0);
    let done = moire(here.path(), &["check", &file]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("parameter 0 (ring_rounds) = 4 (the record)"), "{text}");
    let done = moire(here.path(), &["check", "--format", "json", &file]);
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer["launch"]["command"], format!("moire check {file}"));
    assert_eq!(answer["launch"]["assumed"], false);
    // The command line comes before the record.
    let done = moire(here.path(), &["check", &file, "--param", "0=2"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stdout));
}

#[test]
fn the_driver_is_reached_in_every_way() {
    let Some(program) = launcher() else { return };
    let here = folder(&[("k.ptx", ring(true).as_bytes()), ("p.ptx", PAIR.as_bytes())]);
    let words = "load k.ptx kernel ring u32 1 launch 1 64 u32 2 extra 1 64 u32 3 graph 1 64 u32 4 ex 2 64 2 \
                 library p.ptx kernel pair alloc 4096 at 0 0 at 0 256 launch 3 64";
    for how in ["dlsym", "proc"] {
        let (code, said) = record(here.path(), how, &format!("{how} {words}"));
        assert!(code == 0 && said.contains("recorded 5 shapes of 2 kernels"), "{how}: {code} {said}");
    }
    // Linked to the driver: the stand-in is where the recorder puts it.
    let build =
        format!("cc -DLINKED {LAUNCHER} -o linked -L\"${{LD_LIBRARY_PATH%%:*}}\" -l:libcuda.so.1 -ldl");
    let done = moire(here.path(), &["record", "--target", "90", "--out", "built", "--", "sh", "-c", &build]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let own = here.path().join("linked");
    let all = [
        &["record", "--target", "90", "--out", "by-symbol", "--", own.to_str().unwrap(), "linked"],
        &words.split_whitespace().collect::<Vec<_>>()[..],
    ]
    .concat();
    assert!(moire(here.path(), &all).status.success());
    assert!(program.is_file());
    let one = launches(here.path(), "dlsym");
    assert_eq!(one, launches(here.path(), "proc"));
    assert_eq!(one, launches(here.path(), "by-symbol"));
    let of = |kernel: &str| one.iter().filter(|l| l.1["entry"] == kernel).map(|l| &l.1).collect::<Vec<_>>();
    let graphs = of("ring").into_iter().filter(|l| l["graph"] == true).count();
    let clusters = of("ring").into_iter().filter(|l| l["cluster"] == serde_json::json!([2, 1, 1])).count();
    assert_eq!((graphs, clusters, of("pair").len()), (1, 1, 1));
    assert_eq!(
        of("pair")[0]["params"][1]["pointers"],
        serde_json::json!([{"at": 0, "memory": 0, "offset": 256}])
    );
}

#[test]
fn pointers_into_one_allocation_are_one_memory() {
    if launcher().is_none() {
        return;
    }
    let here = folder(&[("pair.ptx", PAIR.as_bytes()), ("both.ptx", in_structure().as_bytes())]);
    let two = "dlsym load pair.ptx kernel pair alloc 4096 alloc 4096";
    for (n, (words, expected)) in [
        (format!("{two} at 0 0 at 1 0 launch 1 64"), "clean"),
        (format!("{two} at 0 0 at 0 128 launch 1 64"), "clean"),
        (format!("{two} at 0 0 at 0 124 launch 1 64"), "race"),
        (format!("{two} at 0 64 at 0 0 launch 1 64"), "race"),
        ("dlsym load both.ptx kernel pair alloc 4096 struct 0 128 1 launch 1 64".to_owned(), "clean"),
        ("dlsym load both.ptx kernel pair alloc 4096 struct 0 4 1 launch 1 64".to_owned(), "race"),
        ("dlsym load both.ptx kernel pair alloc 4096 struct 0 4 0 launch 1 64".to_owned(), "clean"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("r{n}");
        let (code, said) = record(here.path(), &name, &words);
        assert_eq!(code, 0, "{words}: {said}");
        assert_eq!(verdicts(here.path(), &name).0, [expected], "{words}");
    }
}

#[test]
fn boxes_of_different_tensor_maps_may_be_the_same_bytes() {
    if launcher().is_none() {
        return;
    }
    let here = folder(&[("through.ptx", THROUGH.as_bytes())]);
    let load = "dlsym load through.ptx kernel through alloc 8192 alloc 8192";
    for (name, maps) in
        [("apart", "map 0 64 map 1 32"), ("equal", "map 0 64 map 0 64"), ("over", "map 0 64 map 0 32")]
    {
        let (code, said) = record(here.path(), name, &format!("{load} {maps} launch 1 32"));
        assert!(code == 0 && !said.contains("not recorded"), "{said}");
        let (found, code) = verdicts(here.path(), name);
        match name {
            "over" => assert!(code == 11 && found[0].contains("a box of a tensor that line"), "{found:?}"),
            _ => assert_eq!((&found[..], code), (&["clean".to_owned()][..], 0), "{name}"),
        }
        let params = &launches(here.path(), name)[0].1["params"];
        assert_eq!(params[0]["maps"][0]["encode"]["box"], serde_json::json!([64, 64]), "{params}");
    }
}

#[test]
fn a_grid_that_is_too_large_is_judged_with_a_smaller_one() {
    if launcher().is_none() {
        return;
    }
    let here = folder(&[("pair.ptx", PAIR.as_bytes())]);
    record(here.path(), "r", "dlsym load pair.ptx kernel pair alloc 4096 at 0 0 at 0 0 launch 5000 64");
    assert_eq!(launches(here.path(), "r")[0].1["grid"], serde_json::json!([5000, 1, 1]));
    let done = moire(here.path(), &["check", "r"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.code() == Some(10) && text.contains("(assumed)"), "{text}");
}

/// A container with one entry, whose sizes may lie.
fn container(payload: &[u8], size: u64) -> Vec<u8> {
    let mut out = vec![0; 16 + 64];
    out[..8].copy_from_slice(&[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0]);
    out[8..16].copy_from_slice(&(64 + payload.len() as u64).to_le_bytes());
    out[16..24].copy_from_slice(&[1, 0, 1, 1, 64, 0, 0, 0]);
    out[24..32].copy_from_slice(&size.to_le_bytes());
    out.extend(payload);
    out
}

#[test]
fn what_lies_is_said_and_the_program_goes_on() {
    if launcher().is_none() {
        return;
    }
    let text = ring(true);
    // Compilers put a zero behind the text.
    let ended = format!("{text}\0\0");
    let packed = container(ended.as_bytes(), ended.len() as u64);
    let mut far = packed.clone();
    far[8..16].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let broken = text.replace(".param .u32 ring_rounds", ".param .what ring_rounds");
    let here = folder(&[
        ("good.fatbin", &packed),
        ("entry.fatbin", &container(text.as_bytes(), u64::MAX)),
        ("far.fatbin", &far),
        ("k.ptx", text.as_bytes()),
        ("broken.ptx", broken.as_bytes()),
    ]);
    let (code, said) = record(here.path(), "good", "dlsym load good.fatbin kernel ring u32 3 launch 1 64");
    assert!(code == 0 && said.contains("recorded 1 shape of 1 kernel"), "{said}");
    assert_eq!(verdicts(here.path(), "good"), (vec!["clean".to_owned()], 0));
    // The stand-in refuses them as a driver does; the recorder has not crashed before.
    for file in ["entry.fatbin", "far.fatbin", "broken.ptx"] {
        let (code, said) =
            record(here.path(), file.split('.').next().unwrap(), &format!("proc load {file} kernel ring"));
        assert!(code == 3 && said.contains("no launch was seen"), "{file}: {code} {said}");
    }
    let (code, said) = record(here.path(), "null", "dlsym load k.ptx kernel ring null launch 1 64");
    assert!(
        code == 0 && said.contains("not recorded: ring: parameters of a launch were not recorded"),
        "{said}"
    );
    let (_, code) = verdicts(here.path(), "null");
    assert_eq!(code, 11, "what is not recorded is not clean");
}

#[test]
fn what_nvcc_registers_is_launched_by_the_runtime() {
    if launcher().is_none() {
        return;
    }
    let text = ring(false);
    let here = folder(&[("k.fatbin", &container(text.as_bytes(), text.len() as u64))]);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/recorded/registered.c");
    let build = format!("cc {source} -o registered -L\"${{LD_LIBRARY_PATH%%:*}}\" -l:libcudart.so.13");
    let done = moire(here.path(), &["record", "--target", "100", "--out", "built", "--", "sh", "-c", &build]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let own = here.path().join("registered");
    let words =
        ["record", "--target", "100", "--out", "r", "--", own.to_str().unwrap(), "k.fatbin", "ring", "4"];
    let done = moire(here.path(), &words);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && said.contains("recorded 1 shape of 1 kernel in r"), "{said}");
    let (found, code) = verdicts(here.path(), "r");
    assert!(found[0].starts_with("race") && code == 10, "{found:?}");
}

#[test]
fn a_command_is_run_as_it_is() {
    let here = folder(&[]);
    let run = |words: &[&str]| {
        let done = moire(here.path(), &[&["record"], words].concat());
        (
            done.status.code().unwrap(),
            String::from_utf8(done.stdout).unwrap(),
            String::from_utf8(done.stderr).unwrap(),
        )
    };
    let (code, out, said) = run(&["--out", "a", "--", "sh", "-c", "echo told; exit 7"]);
    assert!(
        (code, out.as_str()) == (7, "told\n") && said.contains("no launch was seen"),
        "{code} {out} {said}"
    );
    let (code, _, said) = run(&["--out", "a", "--", "true"]);
    assert!(
        code == 2 && said.contains("is not empty: remove it, or name another folder with --out"),
        "{said}"
    );
    let (code, _, said) = run(&["--out", "b", "--target", "none", "--", "true"]);
    assert!(code == 2 && said.contains("give 90, 100, or a file"), "{said}");
    let (code, _, said) = run(&["--out", "c", "--", "no-such-program"]);
    assert!(code == 2 && said.contains("cannot run no-such-program"), "{said}");
}

/// Containers as NVIDIA's tool writes them.
#[test]
fn containers_of_nvidias_tools_are_unpacked() {
    if launcher().is_none() {
        return;
    }
    let tool = std::env::var("MOIRE_VENV").ok().and_then(|venv| {
        let lib = std::fs::read_dir(Path::new(&venv).join("lib")).ok()?;
        let packages = lib.flatten().map(|e| e.path().join("site-packages/nvidia")).find(|p| p.is_dir())?;
        let tools = std::fs::read_dir(packages).ok()?.flatten().map(|e| e.path().join("bin/fatbinary"));
        tools.into_iter().find(|t| t.is_file())
    });
    let Some(tool) = tool else { return println!("skipped: no fatbinary, set MOIRE_VENV") };
    let here = folder(&[("k.ptx", ring(true).as_bytes())]);
    for mode in ["none", "speed", "balance", "size"] {
        let create = format!("--create={mode}.fatbin");
        let compress = format!("--compress-mode={mode}");
        let image = "--image3=kind=ptx,sm=100,file=k.ptx";
        let out =
            Command::new(&tool).args([&create, &compress, image]).current_dir(here.path()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let words = format!("proc load {mode}.fatbin kernel ring u32 3 launch 1 64");
        let (code, said) = record(here.path(), mode, &words);
        assert!(code == 0 && said.contains("recorded 1 shape of 1 kernel"), "{mode}: {said}");
        assert_eq!(verdicts(here.path(), mode).0, ["clean"], "{mode}");
    }
}
