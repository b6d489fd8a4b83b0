//! Versions as NVIDIA's tools print them.

use std::fmt;

/// `release 13.5, V13.5.37`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major number of the release.
    pub major: u32,
    /// Minor number of the release.
    pub minor: u32,
    /// Number of the tool in the release.
    pub build: u32,
}

impl Version {
    /// Reads the output of `--version`; `None` if it has no `V1.2.3`.
    pub fn parse(text: &str) -> Option<Version> {
        let word = text.split_whitespace().rev().find(|w| {
            w.strip_prefix('V').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })?;
        let mut numbers = word[1..].splitn(3, '.').map(|n| n.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Version { major: next()?, minor: next()?, build: next()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_tools_print() {
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.5, V13.5.37\nBuild x\n";
        let version = Version::parse(text).unwrap();
        assert_eq!(version.to_string(), "13.5.37");
        assert!(version > Version { major: 12, minor: 9, build: 86 });
        for bad in ["", "Version 13", "V13.5", "V13.5.x", "V.."] {
            assert_eq!(Version::parse(bad), None, "{bad}");
        }
    }
}
