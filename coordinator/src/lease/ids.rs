//! Identities that the scheduler gives out: of workers, leases and jobs.
//!
//! Contract: all come from one counter, so a number names one thing in the life of a coordinator process. Messages carry
//! the plain number.

use std::fmt;
use std::net::IpAddr;

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

identity! {
    /// A connection of a worker.
    WorkerId
}
identity! {
    /// A lease.
    LeaseId
}
identity! {
    /// A job that carries text.
    JobId
}

/// Where a worker comes from. What two workers of one source say counts once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A connection about which nothing else is known.
    Stream(WorkerId),
    /// A credential on this machine, and the loopback address that it calls from.
    Here {
        /// The holder of the credential.
        who: String,
        /// The address.
        at: IpAddr,
    },
    /// A credential on a host elsewhere.
    Known(String),
}

impl Source {
    /// The owner of a worker on this machine; `None` for a worker that comes from elsewhere. Without credentials all
    /// workers are of one owner, and on this machine.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Stream(_) => Some(""),
            Self::Here { who, .. } => Some(who),
            Self::Known(_) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(worker) => write!(f, "connection {worker}"),
            Self::Here { who, at } => write!(f, "{who} at {at}"),
            Self::Known(name) => f.write_str(name),
        }
    }
}
