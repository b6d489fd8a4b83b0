//! What is known of a kernel without a launch, kept with it: many launches of one kernel are run ahead.

use super::equal::Equal;
use super::flow::Flow;
use super::map::Map;
use super::region::Regions;
use crate::ptx::Kernel;
use crate::specialise::led::Led;
use std::sync::OnceLock;

/// Each part is made when it is first asked for, from the kernel that it belongs to.
#[derive(Default)]
struct Studied {
    flow: OnceLock<Flow>,
    map: OnceLock<Map>,
    regions: OnceLock<Regions>,
    led: OnceLock<Led>,
    /// Of CTAs with several axes, and with one.
    equal: [OnceLock<Equal>; 2],
}

impl Kernel {
    fn studied(&self) -> &Studied {
        let kept = self.kept.get_or_init(|| Box::<Studied>::default());
        kept.downcast_ref().expect("nothing else is kept")
    }

    pub(crate) fn flow(&self) -> &Flow {
        self.studied().flow.get_or_init(|| Flow::new(self))
    }

    pub(crate) fn map(&self) -> &Map {
        self.studied().map.get_or_init(|| Map::new(self))
    }

    pub(crate) fn regions(&self) -> &Regions {
        self.studied().regions.get_or_init(|| Regions::new(self, self.map()))
    }

    pub(crate) fn led(&self) -> &Led {
        self.studied().led.get_or_init(|| Led::new(self))
    }

    /// `flat`: CTAs have one axis.
    pub(crate) fn equal(&self, flat: bool) -> &Equal {
        self.studied().equal[usize::from(flat)].get_or_init(|| Equal::new(self, flat, &self.flow().around))
    }
}
