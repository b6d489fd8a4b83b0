//! Proxy fences with a space, a side or a range, and changes of tensor maps. (PTX ISA 9.2 to 9.4, fence page.)

use super::event::{Refusal, UNKNOWN, VEIL};
use super::motion::Sphere;
use super::space::Range;
use super::state::{Runner, State};
use super::tags::bit;
use moire_cat::vocabulary::sets;
use moire_program::ir::{Address, ProxyOrder, Restrict, Scope, Side, Space};

pub(super) fn proxies(run: &Runner<'_>, s: &mut State, order: &ProxyOrder) -> Result<(), Refusal> {
    let half = |side: Side| if side == Side::Acquire { sets::ACQ } else { sets::REL };
    let asynchronous = bit(sets::PF) | bit(sets::ASYNC);
    match order {
        ProxyOrder::AsyncSpace(Space::SharedCta) => {
            fence(run, s, asynchronous, None, Some(Sphere::OwnShared))
        }
        ProxyOrder::AsyncSpace(Space::SharedCluster) => {
            fence(run, s, asynchronous | bit(sets::PF_CLUSTER), None, Some(Sphere::AnyShared));
        }
        ProxyOrder::AsyncSpace(_) => fence(run, s, asynchronous, None, Some(Sphere::NotShared)),
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
            fence(run, s, tags, Some(*scope), Some(sphere));
        }
        ProxyOrder::Restricted { side, .. } => {
            let tags = bit(sets::MF) | bit(sets::GEN) | bit(sets::RESTRICTED) | bit(half(*side));
            fence(run, s, tags, Some(Scope::Cluster), None);
        }
        ProxyOrder::TensormapRelease { scope } => map_fence(run, s, sets::REL, *scope, None),
        ProxyOrder::TensormapAcquire { scope, addr } => {
            let range = map(run, s, addr)?;
            map_fence(run, s, sets::ACQ, *scope, Some(Sphere::Only(range)));
        }
        ProxyOrder::CopyTensormap { scope, dst, src } => {
            let tags = [sets::M, sets::R, sets::WEAK, sets::GEN].iter().fold(0, |t, set| t | bit(*set));
            let mut read = run.event(s, tags, None);
            read.range = Some(map(run, s, src)?);
            Runner::push(s, read);
            change_map(run, s, dst)?;
            map_fence(run, s, sets::REL, *scope, None);
        }
        ProxyOrder::ReplaceTensormap { addr, .. } => change_map(run, s, addr)?,
        ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. } => {
            return Err(Refusal::Unsupported(order.name().to_owned()));
        }
    }
    Ok(())
}

fn fence(run: &Runner<'_>, s: &mut State, tags: u128, scope: Option<Scope>, sphere: Option<Sphere>) {
    let mut e = run.event(s, tags | bit(sets::F), scope);
    e.sphere = sphere;
    Runner::push(s, e);
}

fn map_fence(run: &Runner<'_>, s: &mut State, side: usize, scope: Scope, sphere: Option<Sphere>) {
    let tags = bit(sets::PF) | bit(sets::TMAP) | bit(sets::GEN) | bit(side);
    fence(run, s, tags, Some(scope), sphere);
}

fn map(run: &Runner<'_>, s: &State, addr: &Address) -> Result<Range, Refusal> {
    let found = run.memory.resolve(run.address(s, addr), 128);
    found.ok_or_else(|| Refusal::Unsupported("a tensor map that is nowhere".into()))
}

fn change_map(run: &Runner<'_>, s: &mut State, addr: &Address) -> Result<(), Refusal> {
    let range = map(run, s, addr)?;
    let cells = run.memory.cells_of(&range);
    let cells = cells.ok_or_else(|| Refusal::Unsupported("a part of a tensor map".into()))?;
    let tags = [sets::M, sets::W, sets::WEAK, sets::GEN].iter().fold(0, |t, set| t | bit(*set));
    let mut e = run.event(s, tags, None);
    e.range = Some(range);
    e.cells = cells.into_iter().map(|c| (c, VEIL)).collect();
    e.data = UNKNOWN;
    Runner::push(s, e);
    Ok(())
}
