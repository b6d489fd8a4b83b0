//! Fences of the async and tensormap proxies with a space, a direction or a range; `tensormap.*`.

use super::words::Words;
use super::*;
use crate::text::print::{RESTRICTIONS, TENSORMAP_FIELDS};

impl Reader<'_, '_> {
    /// The words after `fence.`, if they are a form of this module.
    pub(super) fn proxy_order(&mut self, words: &[&str]) -> Parsed<bool> {
        let one_sided = ["async::generic", "tensormap::generic", "generic::fabric", "fabric::generic"];
        let op = match words {
            ["proxy", "async", space @ ("global" | "shared::cta" | "shared::cluster")] => {
                ProxyOrder::AsyncSpace(match *space {
                    "global" => Space::Global,
                    "shared::cta" => Space::SharedCta,
                    _ => Space::SharedCluster,
                })
            }
            ["proxy", "alias", "acquire", "sys"] => ProxyOrder::AliasOneSided(Side::Acquire),
            ["proxy", "alias", "release", "sys"] => ProxyOrder::AliasOneSided(Side::Release),
            ["proxy", rest @ ..] if rest.iter().any(|w| one_sided.contains(w)) => self.one_sided(rest)?,
            rest if rest.iter().any(|w| w.starts_with("sync_restrict::")) => self.restricted(rest)?,
            _ => return Ok(false),
        };
        self.push(Op::ProxyOrder(op))?;
        Ok(true)
    }

    fn side(&self, w: &mut Words<'_>) -> Parsed<Side> {
        match w.pick(&[("acquire", Side::Acquire), ("release", Side::Release)]) {
            Some(side) => Ok(side),
            None => self.fail(format!("{} needs .acquire or .release", w.name()), None),
        }
    }

    fn fence_scope(&self, w: &mut Words<'_>) -> Parsed<Scope> {
        match w.scope() {
            Some(scope) => Ok(scope),
            None => self.fail(format!("{} needs a scope", w.name()), None),
        }
    }

    fn restriction(&self, w: &mut Words<'_>) -> Parsed<Restrict> {
        match w.pick(&RESTRICTIONS) {
            Some(restrict) => Ok(restrict),
            None => {
                let hint = "for example .release.sync_restrict::shared::cta.cluster".to_owned();
                self.fail(format!("{} needs .sync_restrict", w.name()), Some(hint))
            }
        }
    }

    fn one_sided(&mut self, words: &[&str]) -> Parsed<ProxyOrder> {
        let mut w = Words::new("this proxy fence", words);
        if w.take("async::generic") {
            let (side, restrict) = (self.side(&mut w)?, self.restriction(&mut w)?);
            let scope = self.fence_scope(&mut w)?;
            self.done(&w)?;
            return Ok(ProxyOrder::AsyncRestricted { side, restrict, scope });
        }
        let fabric = w.pick(&[("generic::fabric", false), ("fabric::generic", true)]);
        if let Some(from_fabric) = fabric {
            self.need(&mut w, &["alias", "sys"])?;
            let side = self.side(&mut w)?;
            self.done(&w)?;
            return Ok(ProxyOrder::Fabric { side, from_fabric });
        }
        self.need(&mut w, &["tensormap::generic"])?;
        let (side, scope) = (self.side(&mut w)?, self.fence_scope(&mut w)?);
        self.done(&w)?;
        if side == Side::Release {
            return Ok(ProxyOrder::TensormapRelease { scope });
        }
        let addr = self.address()?;
        self.map_size()?;
        Ok(ProxyOrder::TensormapAcquire { scope, addr })
    }

    /// `, 128`
    fn map_size(&mut self) -> Parsed<()> {
        self.scan.expect(",")?;
        let size = i128::from(TENSORMAP_BYTES);
        self.range("a tensor map of", size, size).map(drop)
    }

    fn restricted(&mut self, words: &[&str]) -> Parsed<ProxyOrder> {
        let mut w = Words::new("this fence", words);
        let (side, restrict) = (self.side(&mut w)?, self.restriction(&mut w)?);
        self.need(&mut w, &["cluster"])?;
        self.done(&w)?;
        Ok(ProxyOrder::Restricted { side, restrict })
    }

    /// `tensormap.*`
    pub(super) fn tensormap(&mut self, words: &[&str]) -> Parsed<()> {
        let op = match words {
            ["cp_fenceproxy", rest @ ..] => {
                let mut w = Words::new("tensormap.cp_fenceproxy", rest);
                let needed = ["global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"];
                self.need(&mut w, &needed)?;
                let scope = self.fence_scope(&mut w)?;
                self.done(&w)?;
                let dst = self.address()?;
                self.scan.expect(",")?;
                let src = self.address()?;
                self.map_size()?;
                ProxyOrder::CopyTensormap { scope, dst, src }
            }
            ["replace", rest @ ..] => self.replace_tensormap(rest)?,
            _ => {
                let hint = "known are tensormap.replace and tensormap.cp_fenceproxy".to_owned();
                return self.fail("this is not an instruction on tensor maps".into(), Some(hint));
            }
        };
        self.push(Op::ProxyOrder(op))
    }

    fn replace_tensormap(&mut self, words: &[&str]) -> Parsed<ProxyOrder> {
        let mut w = Words::new("tensormap.replace", words);
        self.need(&mut w, &["tile", "b1024"])?;
        let Some(field) = w.pick(&TENSORMAP_FIELDS) else {
            let known: Vec<&str> = TENSORMAP_FIELDS.iter().map(|(f, _)| *f).collect();
            return self.fail(
                "tensormap.replace needs a field".into(),
                Some(format!("one of {}", known.join(", "))),
            );
        };
        let space = w.space().unwrap_or(Space::Generic);
        let Some(ty) = w.pick(&[("b32", Ty::B(32)), ("b64", Ty::B(64))]) else {
            return self.fail("tensormap.replace needs .b32 or .b64".into(), None);
        };
        self.done(&w)?;
        let addr = self.address()?;
        self.scan.expect(",")?;
        let by_dimension = matches!(
            field,
            TensormapField::BoxDim
                | TensormapField::GlobalDim
                | TensormapField::GlobalStride
                | TensormapField::ElementStride
        );
        let ordinal = if by_dimension {
            let n = self.range("a dimension of", 0, 4)?;
            self.scan.expect(",")?;
            u8::try_from(n).ok()
        } else {
            None
        };
        let value = self.operand()?;
        Ok(ProxyOrder::ReplaceTensormap { field, space, ty, addr, ordinal, value })
    }
}
