//! Proxy fences with a space, a side or a range, and changes of tensor maps. (PTX ISA 9.2 to 9.4, fence page.)

use super::body::{Refusal, Runner, State};
use super::copies::{Sphere, VEIL};
use super::space::Range;
use super::tags::bit;
use super::tensor::UNKNOWN;
use moire_cat::vocabulary::sets;
use moire_program::ir::{Address, ProxyOrder, Restrict, Scope, Side, Space};

impl Runner<'_> {
    pub(super) fn proxies(&self, s: &mut State, order: &ProxyOrder) -> Result<(), Refusal> {
        let half = |side: Side| if side == Side::Acquire { sets::ACQ } else { sets::REL };
        let asynchronous = bit(sets::PF) | bit(sets::ASYNC);
        match order {
            ProxyOrder::AsyncSpace(Space::SharedCta) => {
                self.fence(s, asynchronous, None, Some(Sphere::OwnShared))
            }
            ProxyOrder::AsyncSpace(Space::SharedCluster) => {
                self.fence(s, asynchronous | bit(sets::PF_CLUSTER), None, Some(Sphere::AnyShared));
            }
            ProxyOrder::AsyncSpace(_) => self.fence(s, asynchronous, None, Some(Sphere::NotShared)),
            ProxyOrder::AsyncRestricted { side, restrict, scope } => {
                let more = match restrict {
                    Restrict::SharedClusterRead => bit(sets::PF_READ),
                    Restrict::SharedCta | Restrict::SharedCluster => 0,
                };
                let sphere = match restrict {
                    Restrict::SharedCta => Sphere::OwnShared,
                    Restrict::SharedCluster | Restrict::SharedClusterRead => Sphere::AnyShared,
                };
                let tags = asynchronous | bit(sets::GEN) | bit(sets::PF_CLUSTER) | bit(half(*side)) | more;
                self.fence(s, tags, Some(*scope), Some(sphere));
            }
            ProxyOrder::Restricted { side, .. } => {
                let tags = bit(sets::MF) | bit(sets::GEN) | bit(sets::RESTRICTED) | bit(half(*side));
                self.fence(s, tags, Some(Scope::Cluster), None);
            }
            ProxyOrder::TensormapRelease { scope } => self.map_fence(s, sets::REL, *scope, None),
            ProxyOrder::TensormapAcquire { scope, addr } => {
                let range = self.map(s, addr)?;
                self.map_fence(s, sets::ACQ, *scope, Some(Sphere::Only(range)));
            }
            ProxyOrder::CopyTensormap { scope, dst, src } => {
                let tags = [sets::M, sets::R, sets::WEAK, sets::GEN].iter().fold(0, |t, set| t | bit(*set));
                let mut read = self.event(s, tags, None);
                read.range = Some(self.map(s, src)?);
                Self::push(s, read);
                self.change_map(s, dst)?;
                self.map_fence(s, sets::REL, *scope, None);
            }
            ProxyOrder::ReplaceTensormap { addr, .. } => self.change_map(s, addr)?,
            ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. } => {
                return Err(Refusal::Unsupported(order.name().to_owned()));
            }
        }
        Ok(())
    }

    fn fence(&self, s: &mut State, tags: u128, scope: Option<Scope>, sphere: Option<Sphere>) {
        let mut e = self.event(s, tags | bit(sets::F), scope);
        e.sphere = sphere;
        Self::push(s, e);
    }

    fn map_fence(&self, s: &mut State, side: usize, scope: Scope, sphere: Option<Sphere>) {
        let tags = bit(sets::PF) | bit(sets::TMAP) | bit(sets::GEN) | bit(side);
        self.fence(s, tags, Some(scope), sphere);
    }

    fn map(&self, s: &State, addr: &Address) -> Result<Range, Refusal> {
        let found = self.memory.resolve(self.whither(s, addr), 128);
        found.ok_or_else(|| Refusal::Unsupported("a tensor map that is nowhere".into()))
    }

    fn change_map(&self, s: &mut State, addr: &Address) -> Result<(), Refusal> {
        let range = self.map(s, addr)?;
        let cells = self.memory.cells_of(&range);
        let cells = cells.ok_or_else(|| Refusal::Unsupported("a part of a tensor map".into()))?;
        let tags = [sets::M, sets::W, sets::WEAK, sets::GEN].iter().fold(0, |t, set| t | bit(*set));
        let mut e = self.event(s, tags, None);
        e.range = Some(range);
        e.cells = cells.into_iter().map(|c| (c, VEIL)).collect();
        e.data = UNKNOWN;
        Self::push(s, e);
        Ok(())
    }
}
