//! Where NVIDIA's tools are looked for: a named file, a Python environment that has the wheel, `PATH`, the CUDA toolkit.

use crate::run::RunError;
use std::path::{Path, PathBuf};

/// Environment variable with a Python environment that has NVIDIA's wheels, or several as in `PATH`.
pub const VENV: &str = "MOIRE_VENV";

/// A place that has the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// Why it was looked for there.
    pub why: String,
}

/// Why the tool in a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// It does not run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It runs and does not say which release it is of.
    #[error("it prints no version")]
    NoVersion,
    /// Its file, or a folder for its runs, cannot be used.
    #[error("{what}: {source}")]
    Folder {
        /// The part that cannot be used.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// It does not compile for GPUs of NVIDIA.
    #[error("it has no target nvptx64")]
    NoTarget,
    /// It does not even read an empty text: its headers are missing.
    #[error("it reads nothing: {0}")]
    Nothing(#[from] crate::failure::Failure),
    /// A part that it needs is missing.
    #[error("`{what}` is not beside it: pip install {wheel} of the same release")]
    Incomplete {
        /// The missing file.
        what: &'static str,
        /// The wheel that has it.
        wheel: &'static str,
    },
}

/// A candidate that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} ({}): {why}", .candidate.path.display(), .candidate.why)]
pub struct Unusable {
    /// The candidate.
    pub candidate: Candidate,
    /// Why it cannot be used.
    pub why: ToolError,
}

/// The first candidate of the tool `name` that `open` can use.
///
/// # Errors
/// The candidates that were tried; none where no file was found at all.
pub(crate) fn first<T>(
    name: &str,
    venv: Option<&Path>,
    open: impl Fn(&Path) -> Result<T, ToolError>,
) -> Result<T, Vec<Unusable>> {
    let mut tried = Vec::new();
    for candidate in candidates(name, venv, &environment) {
        match open(&candidate.path) {
            Ok(tool) => return Ok(tool),
            Err(why) => tried.push(Unusable { candidate, why }),
        }
    }
    Err(tried)
}

/// Places of the tool `name`, best first: `MOIRE_NAME` names the file, `MOIRE_VENV` or `venv` a Python environment,
/// then `PATH`, then `CUDA_HOME` and `CUDA_PATH`. Both of the first may be lists, so that several releases stand side by
/// side. `environment` answers for the variables.
pub fn candidates(
    name: &str,
    venv: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<PathBuf>,
) -> Vec<Candidate> {
    let bin = format!("bin/{name}");
    let mut out = named(name, environment);
    let venvs = venv.map(|v| (v.to_owned(), "the environment named".to_owned()));
    for (venv, why) in venvs.into_iter().chain(venvs_named(environment)) {
        out.extend(wheels(&venv, &bin).into_iter().map(|path| Candidate { path, why: why.clone() }));
    }
    for folder in list("PATH", environment) {
        out.push(Candidate { path: folder.join(name), why: "PATH".into() });
    }
    out.extend(toolkits(&bin, environment));
    out.retain(|c| c.path.is_file());
    out
}

/// Places of the library `name` of NVIDIA, best first: as [`candidates`], without `PATH`, in the folders of wheels and toolkits.
pub fn libraries(name: &str, environment: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Candidate> {
    let files =
        [format!("lib/{name}.so.4"), format!("nvvm/lib64/{name}.so.4"), format!("nvvm/lib64/{name}.so")];
    let mut out = named(name, environment);
    for (venv, why) in venvs_named(environment) {
        let all = files.iter().flat_map(|file| wheels(&venv, file));
        out.extend(all.map(|path| Candidate { path, why: why.clone() }));
    }
    out.extend(files.iter().flat_map(|file| toolkits(file, environment)));
    out.retain(|c| c.path.is_file());
    out
}

/// Interpreters of Python that have a package, best first: named by `MOIRE_NAME`, or of an environment that `MOIRE_VENV` names.
pub fn interpreters(package: &str, environment: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Candidate> {
    let mut out = named(package, environment);
    for (venv, why) in venvs_named(environment) {
        let has = |python: PathBuf| python.join("site-packages").join(package).is_dir();
        if inside(venv.join("lib")).into_iter().any(has) {
            out.push(Candidate { path: venv.join("bin/python"), why });
        }
    }
    out.retain(|c| c.path.is_file());
    out
}

/// What a folder holds, in order.
fn inside(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut all: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    all.sort();
    all
}

/// The paths in a variable.
fn list(variable: &str, environment: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let all = environment(variable).unwrap_or_default();
    std::env::split_paths(&all).filter(|p| !p.as_os_str().is_empty()).collect()
}

/// The files that `MOIRE_NAME` names.
fn named(name: &str, environment: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Candidate> {
    let variable = format!("MOIRE_{}", name.to_ascii_uppercase());
    let all = list(&variable, environment).into_iter();
    all.map(|path| Candidate { path, why: variable.clone() }).collect()
}

/// The environments that `MOIRE_VENV` names, each with that word.
fn venvs_named(environment: &dyn Fn(&str) -> Option<PathBuf>) -> impl Iterator<Item = (PathBuf, String)> {
    list(VENV, environment).into_iter().map(|v| (v, VENV.to_owned()))
}

/// A file of the CUDA toolkits.
fn toolkits(file: &str, environment: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Candidate> {
    let of = |variable: &str| {
        let path = environment(variable)?.join(file);
        Some(Candidate { path, why: variable.to_owned() })
    };
    ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(of).collect()
}

/// A file of every package of NVIDIA in the environment.
fn wheels(venv: &Path, file: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for python in inside(venv.join("lib")) {
        for package in inside(python.join("site-packages/nvidia")) {
            out.push(package.join(file));
        }
    }
    out
}

/// The variables of this process.
pub fn environment(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_file_comes_first_and_what_is_not_there_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let (named, wheel) = (put("mine"), put("venv/lib/python3.11/site-packages/nvidia/cu13/bin/ptxas"));
        let (path, toolkit) = (put("path/ptxas"), put("cuda/bin/ptxas"));
        let environment = |name: &str| match name {
            "MOIRE_PTXAS" => Some(named.clone()),
            "MOIRE_VENV" => std::env::join_paths([folder.path().join("none"), folder.path().join("venv")])
                .ok()
                .map(PathBuf::from),
            "PATH" => std::env::join_paths([folder.path().join("empty"), folder.path().join("path")])
                .ok()
                .map(PathBuf::from),
            "CUDA_HOME" => Some(folder.path().join("cuda")),
            "CUDA_PATH" => Some(folder.path().join("nowhere")),
            _ => None,
        };
        let found = candidates("ptxas", None, &environment);
        let paths: Vec<&PathBuf> = found.iter().map(|c| &c.path).collect();
        assert_eq!(paths, [&named, &wheel, &path, &toolkit]);
        assert_eq!(found[1].why, VENV);
        assert!(candidates("nvdisasm", None, &environment).is_empty());
        assert_eq!(candidates("ptxas", Some(&folder.path().join("venv")), &|_| None)[0].path, wheel);
        let library = put("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvvm.so.4");
        let toolkit = put("cuda/nvvm/lib64/libnvvm.so");
        let found: Vec<PathBuf> = libraries("libnvvm", &environment).into_iter().map(|c| c.path).collect();
        assert_eq!(found, [library, toolkit]);
    }
}
