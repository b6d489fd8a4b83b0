//! What a process has made: handles, allocations, modules.

use moire_record::{Field, Image};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, PoisonError};

pub(crate) type Pointer = *mut c_void;

/// A kernel of a module.
pub(crate) struct Kernel {
    pub(crate) module: usize,
    pub(crate) name: CString,
    pub(crate) fields: Vec<Field>,
    pub(crate) attributes: HashMap<c_int, c_int>,
}

#[derive(Default)]
pub(crate) struct Known {
    next: usize,
    pub(crate) modules: HashMap<usize, Image>,
    pub(crate) kernels: HashMap<usize, Kernel>,
    memory: BTreeMap<u64, u64>,
}

/// First handle; addresses of this size are nobody's.
const HANDLES: usize = 0x5000;
/// Alignment of allocations.
const ALIGN: usize = 512;

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

thread_local! {
    /// The contexts of a thread, the current one last.
    pub(crate) static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn with<T>(act: impl FnOnce(&mut Known) -> T) -> T {
    act(KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

impl Known {
    pub(crate) fn handle(&mut self) -> usize {
        self.next += 16;
        HANDLES + self.next
    }

    pub(crate) fn load(&mut self, image: Image) -> usize {
        let handle = self.handle();
        self.modules.insert(handle, image);
        handle
    }

    /// The kernel of this name; `None` if the module has none.
    pub(crate) fn kernel(&mut self, module: usize, name: CString) -> Option<usize> {
        let image = self.modules.get(&module)?;
        let fields = image.layouts.get(name.to_str().ok()?)?.clone();
        let found = self.kernels.iter().find(|(_, k)| k.module == module && k.name == name).map(|k| *k.0);
        Some(found.unwrap_or_else(|| {
            let handle = self.handle();
            self.kernels.insert(handle, Kernel { module, name, fields, attributes: HashMap::new() });
            handle
        }))
    }

    /// Memory of the process, zero at the start. It takes room only where it is written.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Option<u64> {
        let layout = std::alloc::Layout::from_size_align(bytes.max(1), ALIGN).ok()?;
        // SAFETY: the layout has at least one byte.
        let start = unsafe { std::alloc::alloc_zeroed(layout) } as u64;
        (start != 0).then(|| {
            self.memory.insert(start, bytes.max(1) as u64);
            start
        })
    }

    pub(crate) fn free(&mut self, start: u64) -> bool {
        let Some(bytes) = self.memory.remove(&start) else { return start == 0 };
        let layout =
            usize::try_from(bytes).ok().and_then(|n| std::alloc::Layout::from_size_align(n, ALIGN).ok());
        // SAFETY: it was allocated with this layout and is forgotten.
        layout.into_iter().for_each(|l| unsafe { std::alloc::dealloc(start as *mut u8, l) });
        true
    }

    pub(crate) fn allocation(&self, at: u64) -> Option<(u64, u64)> {
        let found = self.memory.range(..=at).next_back()?;
        (at - found.0 < *found.1).then_some((*found.0, *found.1))
    }
}
