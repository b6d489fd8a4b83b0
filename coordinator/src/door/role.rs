//! Roles, and the calls that each may make.
//!
//! Contract: the table is closed. A call that it does not name is refused, so a new call needs a decision about its roles.
//! A test compares the table with the descriptors.

use std::fmt;
use std::str::FromStr;

/// The rights of a token's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads campaigns and findings.
    Viewer,
    /// Reads, and changes campaigns and findings.
    Operator,
    /// Takes leases and reports.
    Worker,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Worker];

    /// Its name, in files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Worker => "worker",
        }
    }
    /// Whether it may make calls that need the role `needed`.
    pub fn may(self, needed: Self) -> bool {
        self == needed || (self, needed) == (Self::Operator, Self::Viewer)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no role: there are viewer, operator and worker")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;
    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        let found = Self::ALL.into_iter().find(|role| role.word() == word);
        found.ok_or_else(|| UnknownRole(word.to_owned()))
    }
}

/// The right that a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The role; `None`: any peer with a certificate of the CA.
    pub(crate) role: Option<Role>,
    /// Whether the audit log has it when it is granted; it always has refusals.
    pub(crate) noted: bool,
}

/// The rule of a path such as `/moire.v1.ControlService/GetStatus`.
pub(crate) fn rule(path: &str) -> Option<Rule> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let (role, noted) = match (service, method) {
        ("moire.v1.WorkerService", "Work") => (Some(Role::Worker), true),
        (
            "moire.v1.ControlService",
            "ListCampaigns" | "GetCampaign" | "WatchCampaign" | "ListFindings" | "GetFinding" | "GetSnapshot"
            | "GetStatus",
        ) => (Some(Role::Viewer), false),
        (
            "moire.v1.ControlService",
            "CreateCampaign" | "SetCampaignState" | "MarkFinding" | "RetestFinding" | "SaveSnapshot"
            | "SubmitJob" | "Explore",
        ) => (Some(Role::Operator), true),
        ("grpc.reflection.v1.ServerReflection", _) => (Some(Role::Viewer), false),
        ("grpc.health.v1.Health", _) => (None, false),
        _ => return None,
    };
    Some(Rule { role, noted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn every_call_of_the_contract_has_a_rule_and_nothing_else_has() {
        let set = prost_types::FileDescriptorSet::decode(moire_proto::DESCRIPTORS).unwrap();
        let mut calls = 0;
        for service in set.file.iter().flat_map(|f| &f.service) {
            for method in &service.method {
                let path = format!("/moire.v1.{}/{}", service.name(), method.name());
                assert!(rule(&path).is_some_and(|r| r.role.is_some()), "nobody is named for {path}");
                calls += 1;
            }
        }
        assert!(calls > 10, "{calls}");
        for path in ["", "/", "/moire.v1.ControlService", "/moire.v1.ControlService/Drop", "/x.Y/Work"] {
            assert_eq!(rule(path), None, "{path}");
        }
    }

    #[test]
    fn an_operator_reads_and_nobody_else_does_two_things() {
        let allowed: Vec<_> =
            Role::ALL.iter().flat_map(|a| Role::ALL.map(|b| (*a, b))).filter(|(a, b)| a.may(*b)).collect();
        let more = (Role::Operator, Role::Viewer);
        let own = Role::ALL.map(|role| (role, role));
        assert_eq!(allowed.len(), 4);
        assert!(allowed.contains(&more) && own.iter().all(|pair| allowed.contains(pair)));
    }
}
