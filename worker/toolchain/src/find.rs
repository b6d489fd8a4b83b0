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
    let variable = format!("MOIRE_{}", name.to_ascii_uppercase());
    let mut out = Vec::new();
    let list = |variable: &str| {
        let all = environment(variable).unwrap_or_default();
        std::env::split_paths(&all).filter(|p| !p.as_os_str().is_empty()).collect::<Vec<_>>()
    };
    out.extend(list(&variable).into_iter().map(|path| Candidate { path, why: variable.clone() }));
    let venvs = venv.map(|v| (v.to_owned(), "the environment named".to_owned()));
    for (venv, why) in venvs.into_iter().chain(list(VENV).into_iter().map(|v| (v, VENV.to_owned()))) {
        out.extend(wheels(&venv, name).into_iter().map(|path| Candidate { path, why: why.clone() }));
    }
    for folder in list("PATH") {
        out.push(Candidate { path: folder.join(name), why: "PATH".into() });
    }
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = environment(variable) {
            out.push(Candidate { path: home.join("bin").join(name), why: variable.into() });
        }
    }
    out.retain(|c| c.path.is_file());
    out
}

/// `bin/NAME` of every package of NVIDIA in the environment.
fn wheels(venv: &Path, name: &str) -> Vec<PathBuf> {
    let inside = |folder: PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut all: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        all.sort();
        all
    };
    let mut out = Vec::new();
    for python in inside(venv.join("lib")) {
        for package in inside(python.join("site-packages/nvidia")) {
            out.push(package.join("bin").join(name));
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
    }
}
