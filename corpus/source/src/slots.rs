//! The parameters of the kernels of a program, the same for every printer and for the reader of compiled code.

use crate::syntax::{Source, Space};

/// The parameters of each kernel of a program, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The global objects, by position.
    pub(crate) objects: Vec<usize>,
    /// The registers of all threads: thread and register.
    pub(crate) results: Vec<(usize, usize)>,
}

impl Slots {
    pub(crate) fn of(source: &Source) -> Slots {
        let global = |o: &usize| source.objects[*o].space != Space::Shared;
        let objects = (0..source.objects.len()).filter(global).collect();
        let registers = |(t, thread): (usize, &crate::Thread)| {
            (0..thread.registers.len()).map(move |r| (t, r)).collect::<Vec<_>>()
        };
        Slots { objects, results: source.threads.iter().enumerate().flat_map(registers).collect() }
    }

    /// The sizes in bytes of what the parameters point to.
    pub(crate) fn sizes(&self, source: &Source) -> Vec<u32> {
        let object = |o: &usize| u32::from(source.objects[*o].bits / 8);
        let result = |(t, r): &(usize, usize)| u32::from(source.threads[*t].registers[*r].bits / 8);
        self.objects.iter().map(object).chain(self.results.iter().map(result)).collect()
    }
}

/// The name of the kernel of a thread. It is part of no other word.
pub fn kernel_name(program: usize, thread: usize) -> String {
    format!("moire_{program}_{thread}_")
}
