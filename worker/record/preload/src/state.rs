//! What this process has asked of the driver: modules, kernels, memory, tensor maps, nodes of graphs.

use crate::{folder, hooks, lookup};
use moire_record::{Encode, Field, Image, Launch, memory};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Arc, Mutex, PoisonError};

/// A handle of the driver: a module, a library, a function, a kernel, a node.
pub(crate) type Handle = usize;

/// Most shapes of one kernel that are recorded in one process.
const SHAPES: usize = 64;

/// A module that was loaded.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Its file in the record; empty if it could not be read.
    pub(crate) file: String,
    pub(crate) layouts: BTreeMap<String, Vec<Field>>,
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) module: Arc<Module>,
    pub(crate) name: String,
    /// What was set for it, by the number of the attribute.
    pub(crate) attributes: BTreeMap<c_int, c_int>,
}

#[derive(Default)]
pub(crate) struct State {
    modules: HashMap<Handle, Arc<Module>>,
    kernels: HashMap<Handle, Kernel>,
    /// First bytes and sizes.
    memory: BTreeMap<u64, u64>,
    pub(crate) maps: HashMap<[u8; 128], Encode>,
    /// Nodes of graphs whose launches are not yet written.
    pub(crate) nodes: HashMap<Handle, Launch>,
    /// Texts given to a linker, and the image that it made of them.
    links: HashMap<Handle, Vec<u8>>,
    linked: HashMap<usize, Vec<u8>>,
    written: HashSet<Launch>,
    shapes: HashMap<(String, String), usize>,
    notes: HashSet<String>,
    device: Option<u32>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Does something with what is known. Nothing that goes wrong here reaches the program.
pub(crate) fn with<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    folder::folder()?;
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let state = state.get_or_insert_default();
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(state))).ok()
}

/// The name at this address.
pub(crate) fn name(at: *const c_char) -> String {
    String::from_utf8_lossy(&memory::text(at as usize)).into_owned()
}

impl State {
    /// Says once that something was not recorded.
    pub(crate) fn note(&mut self, line: &str) {
        if self.notes.insert(line.to_owned()) {
            folder::note(line);
        }
    }

    /// Takes in the image of a module that the driver has loaded.
    pub(crate) fn load(&mut self, handle: Handle, image: Option<Vec<u8>>) {
        let module = match image {
            Some(bytes) => self.read(&bytes),
            None => {
                self.note("a module was loaded whose bytes are not readable, or say a wrong size: its kernels are not recorded");
                Module::default()
            }
        };
        self.kernels.remove(&handle);
        self.modules.insert(handle, Arc::new(module));
    }

    /// Takes in a module at an address.
    pub(crate) fn load_at(&mut self, handle: Handle, at: usize) {
        let image = self.linked.get(&at).cloned().or_else(|| memory::image(at));
        self.load(handle, image);
    }

    fn read(&mut self, bytes: &[u8]) -> Module {
        let device = *self.device.get_or_insert_with(device);
        let image = Image::of(bytes, device);
        image.notes.iter().for_each(|n| self.note(n));
        let file = match (&image.ptx, &image.cubin) {
            (Some(text), _) => folder::module(text, "ptx"),
            (None, Some(cubin)) => folder::module(cubin, "cubin"),
            (None, None) => None,
        };
        if file.is_none() {
            self.note("a module was loaded that is no PTX, no cubin and no container of them, or could not be written");
        }
        Module { file: file.unwrap_or_default(), layouts: image.layouts }
    }

    pub(crate) fn unload(&mut self, handle: Handle) {
        if let Some(module) = self.modules.remove(&handle) {
            self.kernels.retain(|_, k| !Arc::ptr_eq(&k.module, &module));
        }
    }

    /// The module of a library.
    pub(crate) fn module_of(&mut self, module: Handle, library: Handle) {
        if let Some(known) = self.modules.get(&library).cloned() {
            self.modules.insert(module, known);
        }
    }

    /// A kernel of a module or a library was named.
    pub(crate) fn kernel(&mut self, handle: Handle, module: Handle, name: String) {
        let Some(module) = self.modules.get(&module).cloned() else { return };
        self.kernels.insert(handle, Kernel { module, name, attributes: BTreeMap::new() });
    }

    /// The function of a kernel.
    pub(crate) fn function(&mut self, function: Handle, kernel: Handle) {
        if let Some(known) = self.kernels.get(&kernel).cloned() {
            self.kernels.insert(function, known);
        }
    }

    pub(crate) fn set(&mut self, kernel: Handle, attribute: c_int, value: c_int) {
        if let Some(known) = self.known(kernel) {
            let attributes = BTreeMap::from([(attribute, value)]);
            self.kernels.entry(kernel).or_insert(known).attributes.extend(attributes);
        }
    }

    /// A kernel by its handle; the driver knows those that were found in another way than by name.
    pub(crate) fn known(&self, handle: Handle) -> Option<Kernel> {
        let told = || {
            let (module, name) = told(handle, c"cuFuncGetModule", c"cuFuncGetName")
                .or_else(|| told(handle, c"cuKernelGetLibrary", c"cuKernelGetName"))?;
            Some(Kernel { module: self.modules.get(&module)?.clone(), name, attributes: BTreeMap::new() })
        };
        self.kernels.get(&handle).cloned().or_else(told)
    }

    pub(crate) fn allocated(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        let old: Vec<u64> =
            self.memory.range(..end).filter(|m| m.0.saturating_add(*m.1) > start).map(|m| *m.0).collect();
        self.memory.retain(|m, _| !old.contains(m));
        self.memory.insert(start, bytes);
    }

    pub(crate) fn freed(&mut self, start: u64) {
        self.memory.remove(&start);
    }

    /// The first byte of the allocation that an address points into, as far as this process or the driver knows.
    pub(crate) fn allocation(&self, address: u64) -> Option<u64> {
        let own = self.memory.range(..=address).next_back().filter(|m| address - m.0 < *m.1).map(|m| *m.0);
        own.or_else(|| (address >> 32 != 0 && address >> 57 == 0).then(|| range(address)).flatten())
    }

    pub(crate) fn link(&mut self, link: Handle, part: Option<Vec<u8>>) {
        let text = part.and_then(|bytes| Image::of(&bytes, 0).ptx).unwrap_or_default();
        match self.links.get(&link) {
            Some(_) => self.note("several modules were linked: only the first one with PTX is recorded"),
            None if text.is_empty() => {}
            None => drop(self.links.insert(link, text)),
        }
    }

    pub(crate) fn linked(&mut self, link: Handle, image: usize) {
        if let Some(text) = self.links.remove(&link) {
            self.linked.insert(image, text);
        }
    }

    /// Writes a launch, unless it is known.
    pub(crate) fn write(&mut self, launch: Launch) {
        if self.written.contains(&launch) {
            return;
        }
        let seen = self.shapes.entry((launch.module.clone(), launch.entry.clone())).or_default();
        *seen += 1;
        if *seen > SHAPES {
            let line = format!(
                "{}: launched in more than {SHAPES} shapes: the others are not recorded",
                launch.entry
            );
            return self.note(&line);
        }
        if folder::launch(&launch).is_none() {
            self.note(&format!("{}: a launch could not be written", launch.entry));
        }
        self.written.insert(launch);
    }
}

/// Calls a function of the driver that fills in one or two words.
fn asked(function: &CStr, from: Handle) -> Option<usize> {
    let address = lookup::driver(function);
    if address.is_null() {
        return None;
    }
    let mut out = 0;
    // SAFETY: the functions named here take a place for the answer and a handle.
    let function: unsafe extern "C" fn(*mut usize, Handle) -> c_int = unsafe { std::mem::transmute(address) };
    // SAFETY: as above.
    (unsafe { function(&raw mut out, from) } == hooks::SUCCESS).then_some(out)
}

fn told(handle: Handle, owner: &CStr, called: &CStr) -> Option<(Handle, String)> {
    Some((asked(owner, handle)?, name(asked(called, handle)? as *const c_char)))
}

/// The first byte of the allocation that the driver says this address points into.
fn range(at: u64) -> Option<u64> {
    let address = lookup::driver(c"cuMemGetAddressRange_v2");
    if address.is_null() {
        return None;
    }
    let (mut start, mut bytes) = (0, 0);
    // SAFETY: the type is that of the driver's function.
    let function: unsafe extern "C" fn(*mut u64, *mut usize, u64) -> c_int =
        unsafe { std::mem::transmute(address) };
    // SAFETY: both places live; any address is taken.
    (unsafe { function(&raw mut start, &raw mut bytes, at) } == hooks::SUCCESS).then_some(start)
}

/// The compute capability of the device in use, such as 90; 0 if the driver does not say it.
fn device() -> u32 {
    let mut device = 0;
    let current = lookup::driver(c"cuCtxGetDevice");
    if !current.is_null() {
        // SAFETY: the type is that of the driver's function.
        let current: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { std::mem::transmute(current) };
        // SAFETY: the place lives. Without a context it stays the first device.
        unsafe { current(&raw mut device) };
    }
    let attribute = lookup::driver(c"cuDeviceGetAttribute");
    if attribute.is_null() {
        return 0;
    }
    // SAFETY: the type is that of the driver's function.
    let attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int =
        unsafe { std::mem::transmute(attribute) };
    let one = |which| {
        let mut out = 0;
        // SAFETY: the place lives.
        unsafe { attribute(&raw mut out, which, device) };
        u32::try_from(out).unwrap_or(0)
    };
    10 * one(75) + one(76)
}
