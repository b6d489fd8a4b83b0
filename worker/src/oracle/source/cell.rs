//! Cells: a compiler of a release with a target, a version of PTX and a level, as a side of a claim names them.

use moire_toolchain::source::{Compiler, Kind, Options};
use std::fmt;

/// `llvm:level=2,ptx=86,release=22,target=sm_90`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) kind: Kind,
    /// The newest, unless named: `22` of LLVM, `13.4` of `nvcc`.
    release: Option<String>,
    /// Settings that are not named are those of [`Compiler::usual`].
    target: Option<String>,
    ptx: Option<u32>,
    level: Option<u8>,
    /// The level of `opt`, if it goes first.
    opt: Option<u8>,
}

/// A specification of a compiler that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` in `{spec}` is none of release=N, target=sm_N, ptx=N, level=0 to 3, opt=1 to 3")]
pub struct SourceCellError {
    word: String,
    spec: String,
}

impl Cell {
    /// The cell that is used if the plan names none.
    pub(super) fn of(compiler: &Compiler) -> Cell {
        let kind = compiler.kind();
        Cell { kind, release: None, target: None, ptx: None, level: None, opt: None }.settled(compiler)
    }

    /// The cell of another way to call the compiler, if it has one ([`Compiler::unusual`]).
    pub(super) fn unusual(compiler: &Compiler) -> Option<Cell> {
        let options = compiler.unusual()?;
        Some(Cell { target: Some(options.target), opt: options.opt, ..Cell::of(compiler) })
    }

    /// The cell with everything named, for the compiler that answers.
    pub(super) fn settled(&self, compiler: &Compiler) -> Cell {
        let options = self.options(compiler);
        Cell {
            kind: self.kind,
            release: Some(compiler.release()),
            target: Some(options.target),
            ptx: options.ptx,
            level: self.kind.has_levels().then_some(options.level),
            opt: options.opt,
        }
    }

    pub(super) fn options(&self, compiler: &Compiler) -> Options {
        let usual = compiler.usual();
        Options {
            target: self.target.clone().unwrap_or(usual.target),
            ptx: self.ptx.or(usual.ptx),
            level: self.level.unwrap_or(usual.level),
            opt: self.opt,
        }
    }

    /// The release, if it is named.
    pub(super) fn release(&self) -> &str {
        self.release.as_deref().unwrap_or_default()
    }

    /// The options of a cell that names everything, as the sides of claims do.
    pub(super) fn named(&self) -> Options {
        let target = self.target.clone().unwrap_or_else(|| "sm_90".to_owned());
        Options { target, ptx: self.ptx, level: self.level.unwrap_or(2), opt: self.opt }
    }

    /// The cell of a specification; `None` for a specification of something else.
    ///
    /// # Errors
    /// An unknown setting, or a setting with an unknown value.
    pub(super) fn parse(spec: &str) -> Option<Result<Cell, SourceCellError>> {
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let kind = Kind::ALL.into_iter().find(|k| k.name() == name)?;
        let mut cell = Cell { kind, release: None, target: None, ptx: None, level: None, opt: None };
        for word in rest.split(',').filter(|w| !w.is_empty()) {
            match word.split_once('=') {
                Some(("target", target)) if target.starts_with("sm_") && plain(target) => {
                    cell.target = Some(target.to_owned());
                }
                Some(("level", level @ ("0" | "1" | "2" | "3"))) if kind.has_levels() => {
                    cell.level = Some(level.as_bytes()[0] - b'0');
                }
                Some(("opt", level @ ("1" | "2" | "3"))) if kind == Kind::Llvm => {
                    cell.opt = Some(level.as_bytes()[0] - b'0');
                }
                Some(("ptx", ptx)) if kind == Kind::Llvm && ptx.parse::<u32>().is_ok() => {
                    cell.ptx = ptx.parse().ok();
                }
                Some(("release", release)) if release.starts_with(|c: char| c.is_ascii_digit()) => {
                    cell.release = Some(release.to_owned());
                }
                _ => {
                    return Some(Err(SourceCellError { word: word.to_owned(), spec: spec.to_owned() }));
                }
            }
        }
        Some(Ok(cell))
    }

    /// Whether the compiler is of the kind and the release asked for, and has `opt` if that is.
    pub(super) fn takes(&self, compiler: &Compiler) -> bool {
        let release = compiler.release();
        let has = self.opt.is_none() || compiler.optimiser().is_some();
        has && self.kind == compiler.kind() && self.release.as_ref().is_none_or(|r| *r == release)
    }
}

/// Whether a word may be an argument of a command.
fn plain(word: &str) -> bool {
    word.len() <= 16 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            self.level.map(|n| format!("level={n}")),
            self.opt.map(|n| format!("opt={n}")),
            self.ptx.map(|n| format!("ptx={n}")),
            self.release.as_ref().map(|r| format!("release={r}")),
            self.target.as_ref().map(|t| format!("target={t}")),
        ];
        let named: Vec<String> = named.into_iter().flatten().collect();
        f.write_str(self.kind.name())?;
        if named.is_empty() { Ok(()) } else { write!(f, ":{}", named.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_names_release_target_version_and_level() {
        let cell = |spec: &str| Cell::parse(spec).expect("a cell");
        let full = "llvm:level=0,ptx=86,release=22,target=sm_100a";
        assert_eq!(cell(full).expect("reads").to_string(), full);
        assert_eq!(cell("nvcc").expect("reads").to_string(), "nvcc");
        let optimised = cell("llvm:opt=2,level=1").expect("reads");
        assert_eq!(optimised.to_string(), "llvm:level=1,opt=2");
        for wrong in [
            "llvm:level=4",
            "llvm:opt=0",
            "nvcc:opt=2",
            "llvm:x",
            "nvcc:ptx=86",
            "triton:level=2",
            "llvm:target=sm_90;rm",
            "llvm:release=new",
        ] {
            assert!(cell(wrong).is_err(), "{wrong}");
        }
        assert!(Cell::parse("ptx").is_none() && Cell::parse("llvmx").is_none());
    }
}
