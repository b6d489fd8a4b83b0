//! Where things are: CTAs, clusters and pairs, copies of objects, and the addresses that name them.
//!
//! An address is 2^32 times one more than the position of a copy of an object, plus the offset in it. Smaller numbers are
//! addresses in tensor memory that an allocation returned: lane in the upper half, column in the lower.

use moire_program::ir::{Placement, Program, Scope, Space, SymbolId};

/// Distance between the addresses of two copies of objects.
pub(crate) const STRIDE: u128 = 1 << 32;

/// A copy of an object: one a CTA in shared memory, otherwise one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) object: usize,
    pub(crate) cta: Option<usize>,
}

/// Bytes of a copy of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Span {
    /// Position in [`Layout::copies`].
    pub(crate) copy: usize,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

impl Span {
    pub(crate) fn meets(&self, other: &Span) -> bool {
        self.copy == other.copy
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The threads of each CTA.
    pub(crate) ctas: Vec<Vec<usize>>,
    /// By thread.
    pub(crate) cta_of: Vec<usize>,
    /// By CTA: the CTAs of its cluster, by rank.
    pub(crate) clusters: Vec<Vec<usize>>,
    pub(crate) copies: Vec<Copy>,
    /// By CTA, then by object: the position of the copy.
    found: Vec<Vec<usize>>,
    /// By object.
    sizes: Vec<u32>,
    spaces: Vec<Space>,
    /// By symbol.
    objects: Vec<usize>,
}

impl Layout {
    pub(crate) fn new(program: &Program) -> Self {
        let place = |t: usize| -> &Placement { &program.threads[t].place };
        let mut ctas: Vec<Vec<usize>> = Vec::new();
        let mut cta_of = Vec::new();
        for t in 0..program.threads.len() {
            let known = ctas.iter().position(|c| place(c[0]).same_cta(place(t)));
            let cta = known.unwrap_or_else(|| {
                ctas.push(Vec::new());
                ctas.len() - 1
            });
            ctas[cta].push(t);
            debug_assert!(place(ctas[cta][0]).same_cta(place(t)), "threads of one CTA are together");
            cta_of.push(cta);
        }
        let clusters = ctas
            .iter()
            .map(|own| {
                let near = |c: &usize| place(ctas[*c][0]).includes(Scope::Cluster, place(own[0]));
                let mut all: Vec<usize> = (0..ctas.len()).filter(near).collect();
                all.sort_by_key(|c| place(ctas[*c][0]).cta);
                all
            })
            .collect();
        let mut copies = Vec::new();
        let mut found = vec![vec![0; program.objects.len()]; ctas.len()];
        for (object, is) in program.objects.iter().enumerate() {
            if is.space == Space::SharedCta {
                for (cta, row) in found.iter_mut().enumerate() {
                    row[object] = copies.len();
                    copies.push(Copy { object, cta: Some(cta) });
                }
            } else {
                found.iter_mut().for_each(|row| row[object] = copies.len());
                copies.push(Copy { object, cta: None });
            }
        }
        Layout {
            ctas,
            cta_of,
            clusters,
            copies,
            found,
            sizes: program.objects.iter().map(|o| o.bytes).collect(),
            spaces: program.objects.iter().map(|o| o.space).collect(),
            objects: program.symbols.iter().map(|s| s.object.index()).collect(),
        }
    }

    /// The address of a symbol for a thread.
    pub(crate) fn address(&self, symbol: SymbolId, thread: usize) -> u128 {
        let copy = self.found[self.cta_of[thread]][self.objects[symbol.index()]];
        (1 + copy as u128) * STRIDE
    }

    /// The bytes that an address names.
    pub(crate) fn locate(&self, address: u128, bytes: u32) -> Option<Span> {
        let copy = usize::try_from((address / STRIDE).checked_sub(1)?).ok()?;
        let offset = u32::try_from(address % STRIDE).ok()?;
        let size = self.sizes[self.copies.get(copy)?.object];
        (offset.checked_add(bytes)? <= size).then_some(Span { copy, offset, bytes })
    }

    /// The `.tmem` object that an address belongs to, and the lane and column.
    pub(crate) fn tensor(&self, address: u128) -> Option<(usize, u32)> {
        let copy = usize::try_from((address / STRIDE).checked_sub(1)?).ok()?;
        let object = self.copies.get(copy)?.object;
        let at = u32::try_from(address % STRIDE).ok()?;
        (self.spaces[object] == Space::Tensor).then_some((object, at))
    }

    /// The address that names the same in the CTA of a rank of the cluster of a thread.
    pub(crate) fn mapped(&self, address: u128, rank: u128, thread: usize) -> Option<u128> {
        let span = self.locate(address, 0)?;
        let is = self.copies[span.copy];
        is.cta?;
        let cta = *self.clusters[self.cta_of[thread]].get(usize::try_from(rank).ok()?)?;
        Some((1 + self.found[cta][is.object] as u128) * STRIDE + u128::from(span.offset))
    }

    /// The same bytes in another CTA.
    pub(crate) fn twin(&self, span: Span, cta: usize) -> Option<Span> {
        let is = self.copies[span.copy];
        is.cta?;
        Some(Span { copy: self.found[cta][is.object], ..span })
    }

    /// The other CTA of the pair: ranks differ in the last bit.
    pub(crate) fn peer(&self, cta: usize) -> Option<usize> {
        let all = &self.clusters[cta];
        debug_assert!(all.contains(&cta), "a CTA is in its cluster");
        let rank = all.iter().position(|c| *c == cta)?;
        all.get(rank ^ 1).copied()
    }

    /// The CTA whose memory it is.
    pub(crate) fn owner(&self, span: &Span) -> Option<usize> {
        self.copies[span.copy].cta
    }

    pub(crate) fn space(&self, span: &Span) -> Space {
        self.spaces[self.copies[span.copy].object]
    }

    /// The size of an object in bytes.
    pub(crate) fn size(&self, object: usize) -> u32 {
        self.sizes[object]
    }
}
