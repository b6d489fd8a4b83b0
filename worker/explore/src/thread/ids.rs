//! Positions as types of their own, and tables that only the right kind of position indexes: a cell is no thread, and no
//! event.
//!
//! The conversion from a number is checked, because a number that wraps would name something else.

use moire_program::ir::ThreadId;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A position in tables of one kind.
pub(crate) trait Id: Copy {
    /// The id of a position.
    ///
    /// # Panics
    /// The position is beyond every table of this kind.
    fn at(position: usize) -> Self;

    /// The position.
    fn index(self) -> usize;
}

impl Id for ThreadId {
    // Not `ThreadId::at`, which is no function of this crate: in the scheduler a call costs more than the check.
    #[inline]
    fn at(position: usize) -> Self {
        ThreadId(u16::try_from(position).expect("a program has fewer than 65536 threads"))
    }

    #[inline]
    fn index(self) -> usize {
        ThreadId::index(self)
    }
}

/// A position of 16 bits: what it is, why it fits.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $fits:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u16);

        impl $crate::thread::ids::Id for $name {
            #[inline]
            fn at(position: usize) -> Self {
                $name(u16::try_from(position).expect($fits))
            }

            #[inline]
            fn index(self) -> usize {
                usize::from(self.0)
            }
        }

        impl $name {
            /// The position as it is numbered outside this crate.
            #[inline]
            pub(crate) fn number(self) -> u16 {
                self.0
            }
        }
    };
}
pub(crate) use id;

id!(
    /// An instance of an object, by position in [`super::layout::Layout::instances`].
    InstanceId,
    "a layout has fewer than 65536 instances"
);
id!(
    /// A cell of memory, by position in [`super::layout::Layout::cells`].
    CellId,
    "a layout has fewer than 65536 cells"
);

/// A table with one entry for each position of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Table<I, T> {
    entries: Vec<T>,
    kind: PhantomData<fn(I)>,
}

impl<I: Id, T> Table<I, T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The positions, ascending.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.entries.len()).map(I::at)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// The entries with their positions, ascending.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (I, &T)> + Clone {
        self.entries.iter().enumerate().map(|(i, entry)| (I::at(i), entry))
    }

    pub(crate) fn push(&mut self, entry: T) {
        self.entries.push(entry);
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.entries.pop()
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.entries.last()
    }

    /// Keeps the first entries, at most `len` of them.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Table { entries: Vec::new(), kind: PhantomData }
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Table { entries: entries.into_iter().collect(), kind: PhantomData }
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.entries[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.index()]
    }
}
