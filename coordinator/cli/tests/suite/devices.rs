//! Devices in campaigns, on stand-ins: an honest one is quiet, and what a lying one shows becomes one finding, which is seen
//! again, shown with its histogram, and judged anew from it.

use crate::cli::moire;
use std::path::Path;

/// Exit code, and both outputs.
fn run(folder: &Path, args: &[&str]) -> (i32, String) {
    let out = moire(folder, args);
    let said = [out.stdout, out.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (out.status.code().unwrap(), said.concat())
}

#[test]
fn a_lie_becomes_one_finding_and_the_truth_none() {
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &str| run(folder.path(), &args.split(' ').collect::<Vec<_>>());
    let fuzz = |device: &str| {
        here(&format!("fuzz --device {device} --programs 128 --seed 5 --workers 2 --store {device}"))
    };
    let (code, said) = fuzz("stand-in");
    assert!(code == 0 && said.contains("findings: none") && said.contains("stand-in/sm_90: "), "{said}");
    assert!(!said.contains("forbidden") && !said.contains("lost"), "{said}");
    let (code, said) = fuzz("lying-stand-in");
    assert!(code == 10 && said.contains("findings: 1;") && said.contains(" forbidden"), "{said}");
    assert!(said.contains("open, seen again by another worker"), "{said}");
    let (_, listed) = here("findings list --store lying-stand-in");
    let id = listed.split(' ').next().unwrap();
    let (_, said) = here(&format!("findings show {id} --store lying-stand-in"));
    assert!(
        said.contains("samples on stand-in that lies (sm_90") && said.contains("not allowed  P0:r0 = 64"),
        "{said}"
    );
    let replay = |device: &str| here(&format!("replay {id} --store lying-stand-in{device}"));
    let (code, said) = replay("");
    assert!(code == 11 && said.contains("not re-tested: no device here"), "{said}");
    let (code, said) = replay(" --device stand-in");
    assert!(code == 11 && said.contains("not re-tested: not seen again in "), "{said}");
    let (code, said) = replay(" --device lying-stand-in");
    assert!(code == 10 && said.contains("reproduced"), "{said}");
    let (_, campaigns) = here("campaign list --store lying-stand-in");
    let name = campaigns.split(' ').next().unwrap();
    let (_, said) = here(&format!("campaign show {name} --store lying-stand-in"));
    assert!(said.contains("are not allowed by ptx"), "{said}");
    let (_, said) = here("report --store lying-stand-in --out r");
    let page = std::fs::read_to_string(folder.path().join("r/report.html")).unwrap();
    assert!(page.contains("open, seen again by another worker"), "{said}");
    let (code, said) = here(&format!("findings export {id} h.json --histogram --store lying-stand-in"));
    assert_eq!(code, 0, "{said}");
    let (code, said) = here("gpu --replay h.json");
    assert!(code == 10 && said.contains("the histogram: FORBIDDEN") && said.contains("P0:r0 = 64"), "{said}");
    // A model that allows everything of one thread does not: the same histogram without the lie is allowed.
    let text = std::fs::read_to_string(folder.path().join("h.json")).unwrap();
    std::fs::write(folder.path().join("honest.json"), text.replace("\"regs\":[64]", "\"regs\":[0]")).unwrap();
    let (code, said) = here("gpu --replay honest.json");
    assert!(code == 0 && said.contains("the histogram: allowed"), "{said}");
}

#[test]
fn a_device_that_is_not_here_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &str| run(folder.path(), &args.split(' ').collect::<Vec<_>>());
    let (code, text) = said("fuzz --oracle stand-in --programs 1");
    assert!(code == 2 && text.contains("needs stand-in, which is not here: --device stand-in"), "{text}");
    let (code, text) = said("fuzz --oracle device --device stand-in --programs 1");
    assert!(code == 2 && text.contains("needs device, which is not here"), "a stand-in is no device: {text}");
    let (code, text) = said("fuzz --device 999 --programs 1");
    assert!(code == 2 && text.contains("there is no device 999"), "{text}");
    let (code, text) = said("fuzz --device one --programs 1");
    assert!(code == 2 && text.contains("the number of a device, or `stand-in`"), "{text}");
}
