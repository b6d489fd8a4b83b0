//! Cells: a target, a level and a release to compile for, as a side of a claim names them.

use crate::oracle::tools::TILEIRAS;
use moire_toolchain::tile::Tileiras;

/// The target when none is asked for: every release since 13.3 has it.
const TARGET: &str = "sm_90";
/// The level when none is asked for.
const LEVEL: u8 = 3;

/// `tileiras:level=3,release=13.5,target=sm_90`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Such as `sm_90`.
    pub(super) target: String,
    /// 0 to 3.
    pub(super) level: u8,
    /// The newest, unless named: `13.4`.
    pub(super) release: Option<String>,
}

/// A specification that is no cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// It names something else.
    #[error("`{0}` is no compiler")]
    NoCompiler(String),
    /// It has an unknown setting, or a setting with an unknown value.
    #[error("`{word}` in `{spec}` is none of target=sm_N, level=0 to 3, release=13.N")]
    Setting {
        /// The setting.
        word: String,
        /// The specification.
        spec: String,
    },
}

impl Cell {
    /// The cell of a specification that should name one.
    ///
    /// # Errors
    /// See [`CellError`].
    pub(super) fn of(spec: &str) -> Result<Cell, CellError> {
        Cell::parse(spec).unwrap_or_else(|| Err(CellError::NoCompiler(spec.to_owned())))
    }

    /// The cell of a specification; `None` for a specification of something else.
    ///
    /// # Errors
    /// An unknown setting, or a setting with an unknown value.
    pub(super) fn parse(spec: &str) -> Option<Result<Cell, CellError>> {
        let rest = match spec.strip_prefix(TILEIRAS.capability)? {
            "" => "",
            rest => rest.strip_prefix(':')?,
        };
        let mut cell = Cell { target: TARGET.to_owned(), level: LEVEL, release: None };
        for word in rest.split(',').filter(|w| !w.is_empty()) {
            match word.split_once('=') {
                Some(("target", target)) if target.starts_with("sm_") => cell.target = target.to_owned(),
                Some(("level", level @ ("0" | "1" | "2" | "3"))) => cell.level = level.as_bytes()[0] - b'0',
                Some(("release", release)) if release.contains('.') => {
                    cell.release = Some(release.to_owned());
                }
                _ => {
                    return Some(Err(CellError::Setting { word: word.to_owned(), spec: spec.to_owned() }));
                }
            }
        }
        Some(Ok(cell))
    }

    /// The specification, with the release that answered.
    pub(super) fn spec(&self, compiler: &Tileiras) -> String {
        let version = compiler.version();
        format!(
            "{}:level={},release={}.{},target={}",
            TILEIRAS.capability, self.level, version.major, version.minor, self.target
        )
    }

    /// Whether the compiler is of the release asked for.
    pub(super) fn takes(&self, compiler: &Tileiras) -> bool {
        let version = compiler.version();
        self.release.as_ref().is_none_or(|r| *r == format!("{}.{}", version.major, version.minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_names_target_level_and_release() {
        let cell = |spec| Cell::parse(spec).expect("a cell");
        assert_eq!(cell("tileiras").unwrap().level, 3);
        let full = cell("tileiras:level=0,release=13.4,target=sm_100").unwrap();
        assert_eq!((full.level, full.release.as_deref(), &*full.target), (0, Some("13.4"), "sm_100"));
        assert!(cell("tileiras:level=4").is_err() && cell("tileiras:x").is_err());
        assert!(Cell::parse("ptx").is_none() && Cell::parse("tileirasx").is_none());
    }
}
