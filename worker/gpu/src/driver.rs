//! NVIDIA's driver: the few calls that the lane needs. The library is loaded when a device is opened.
//!
//! Contract: every call's status is checked; memory and modules are released whatever happens. Signatures are those of
//! the CUDA Driver API reference (`cuda.h`, versioned entry points such as `cuMemAlloc_v2`). This is the only file with
//! unsafe code, and nothing of it leaves.

#![expect(unsafe_code, reason = "the driver's interface is C; each call says why it is sound")]

use crate::device::{Batch, Device, DeviceError, Identity, Samples};
use crate::histogram::{Histogram, Seen};
use crate::kernel::Kernel;
use crate::strategy::roles;
use crate::takes::compared;
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// Words of the scratch memory of CTAs that make traffic.
const SCRATCH_WORDS: usize = 1 << 14;
/// Most bytes of one allocation.
const MAX_BYTES: usize = 2 << 30;
/// Names of the library, the most usual first.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

type Status = c_int;
type Handle = *mut c_void;
type Pointer = u64;

/// The entry points, as the reference declares them.
struct Api {
    init: unsafe extern "C" fn(c_uint) -> Status,
    driver_version: unsafe extern "C" fn(*mut c_int) -> Status,
    device_get: unsafe extern "C" fn(*mut c_int, c_int) -> Status,
    device_name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status,
    device_uuid: unsafe extern "C" fn(*mut [u8; 16], c_int) -> Status,
    device_attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status,
    context_create: unsafe extern "C" fn(*mut Handle, c_uint, c_int) -> Status,
    context_destroy: unsafe extern "C" fn(Handle) -> Status,
    synchronize: unsafe extern "C" fn() -> Status,
    module_load:
        unsafe extern "C" fn(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void) -> Status,
    module_unload: unsafe extern "C" fn(Handle) -> Status,
    module_function: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> Status,
    allocate: unsafe extern "C" fn(*mut Pointer, usize) -> Status,
    free: unsafe extern "C" fn(Pointer) -> Status,
    to_device: unsafe extern "C" fn(Pointer, *const c_void, usize) -> Status,
    to_host: unsafe extern "C" fn(*mut c_void, Pointer, usize) -> Status,
    launch: unsafe extern "C" fn(
        Handle,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        Handle,
        *mut *mut c_void,
        *mut *mut c_void,
    ) -> Status,
    /// Keeps the code of the entry points loaded.
    _library: Library,
}

fn failed(call: &'static str, why: impl std::fmt::Display) -> DeviceError {
    DeviceError::Failed { call, why: why.to_string() }
}

/// Turns the status of a call into a result.
fn checked(call: &'static str, status: Status) -> Result<(), DeviceError> {
    if status == 0 { Ok(()) } else { Err(failed(call, format!("error {status} of the CUDA driver"))) }
}

impl Api {
    fn load() -> Result<Self, DeviceError> {
        let mut why = String::new();
        for name in NAMES {
            // SAFETY: the driver's library has no initialiser that asks anything of its process.
            match unsafe { Library::new(name) } {
                Ok(library) => return Self::of(library),
                Err(error) => why = error.to_string(),
            }
        }
        Err(failed("loading NVIDIA's driver", why))
    }

    fn of(library: Library) -> Result<Self, DeviceError> {
        macro_rules! entry {
            ($name:literal) => {{
                // SAFETY: the type of the field is the declaration of this name in the reference.
                let found = unsafe { library.get($name) };
                *found.map_err(|e: libloading::Error| failed($name, e))?
            }};
        }
        Ok(Self {
            init: entry!("cuInit"),
            driver_version: entry!("cuDriverGetVersion"),
            device_get: entry!("cuDeviceGet"),
            device_name: entry!("cuDeviceGetName"),
            device_uuid: entry!("cuDeviceGetUuid"),
            device_attribute: entry!("cuDeviceGetAttribute"),
            context_create: entry!("cuCtxCreate_v2"),
            context_destroy: entry!("cuCtxDestroy_v2"),
            synchronize: entry!("cuCtxSynchronize"),
            module_load: entry!("cuModuleLoadDataEx"),
            module_unload: entry!("cuModuleUnload"),
            module_function: entry!("cuModuleGetFunction"),
            allocate: entry!("cuMemAlloc_v2"),
            free: entry!("cuMemFree_v2"),
            to_device: entry!("cuMemcpyHtoD_v2"),
            to_host: entry!("cuMemcpyDtoH_v2"),
            launch: entry!("cuLaunchKernel"),
            _library: library,
        })
    }

    fn identity(&self, device: c_int) -> Result<Identity, DeviceError> {
        let (mut name, mut uuid, mut version) = ([0; 128], [0_u8; 16], 0);
        // SAFETY: each pointer is to a value of its type; the name's length is that of its buffer.
        unsafe {
            checked("cuDeviceGetName", (self.device_name)(name.as_mut_ptr().cast(), 128, device))?;
            checked("cuDeviceGetUuid", (self.device_uuid)(&raw mut uuid, device))?;
            checked("cuDriverGetVersion", (self.driver_version)(&raw mut version))?;
        }
        let name: Vec<u8> = name.into_iter().take_while(|c: &u8| *c != 0).collect();
        Ok(Identity {
            name: String::from_utf8_lossy(&name).into_owned(),
            uuid: uuid.iter().map(|b| format!("{b:02x}")).collect(),
            // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
            capability: (self.attribute(75, device)?, self.attribute(76, device)?),
            driver: format!("{}.{}", version / 1000, version % 1000 / 10),
        })
    }
    fn attribute(&self, which: c_int, device: c_int) -> Result<u32, DeviceError> {
        let mut value = 0;
        // SAFETY: the pointer is to an integer.
        checked("cuDeviceGetAttribute", unsafe { (self.device_attribute)(&raw mut value, which, device) })?;
        u32::try_from(value).map_err(|e| failed("cuDeviceGetAttribute", e))
    }
}

/// Modules that are kept: that of the probe, and that of the program under way.
const MAX_MODULES: usize = 2;

/// A device behind NVIDIA's driver, with its own context. It stays on the thread that made it.
pub struct Nvidia {
    api: Api,
    context: Handle,
    identity: Identity,
    /// Used last, last.
    modules: Vec<Module>,
}

impl Nvidia {
    /// The device of this number.
    ///
    /// # Errors
    /// There is no driver, or no such device.
    pub fn open(number: u32) -> Result<Self, DeviceError> {
        let api = Api::load()?;
        let number = c_int::try_from(number).map_err(|e| failed("cuDeviceGet", e))?;
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: the driver is initialised before anything else is asked; the pointers are to values of their types.
        unsafe {
            checked("cuInit", (api.init)(0))?;
            checked("cuDeviceGet", (api.device_get)(&raw mut device, number))?;
        }
        let identity = api.identity(device)?;
        // SAFETY: the device was given by the driver.
        checked("cuCtxCreate", unsafe { (api.context_create)(&raw mut context, 0, device) })?;
        Ok(Self { api, context, identity, modules: Vec::new() })
    }

    /// The entry of the module of this PTX, which is compiled unless it was used just before.
    fn entry(&mut self, text: &str) -> Result<Handle, DeviceError> {
        let known = self.modules.iter().position(|m| m.text.as_c_str().to_bytes() == text.as_bytes());
        let module = match known {
            Some(at) => self.modules.remove(at),
            None => self.loaded(text)?,
        };
        let entry = module.entry;
        self.modules.push(module);
        while self.modules.len() > MAX_MODULES {
            let old = self.modules.remove(0);
            self.unload(&old);
        }
        Ok(entry)
    }

    fn loaded(&self, text: &str) -> Result<Module, DeviceError> {
        let text = CString::new(text).map_err(|e| failed("cuModuleLoadDataEx", e))?;
        let mut module = Module { text, handle: null_mut(), entry: null_mut() };
        // SAFETY: the text ends with a zero byte and outlives the call; there are no options.
        let loaded = unsafe {
            (self.api.module_load)(
                &raw mut module.handle,
                module.text.as_ptr().cast(),
                0,
                null_mut(),
                null_mut(),
            )
        };
        checked("cuModuleLoadDataEx", loaded)?;
        // SAFETY: the module is loaded; the name ends with a zero byte.
        let found =
            unsafe { (self.api.module_function)(&raw mut module.entry, module.handle, c"run".as_ptr()) };
        if found != 0 {
            self.unload(&module);
        }
        checked("cuModuleGetFunction", found)?;
        Ok(module)
    }

    fn unload(&self, module: &Module) {
        // SAFETY: the module is loaded and no launch of it is under way: launches are waited for.
        let _ = unsafe { (self.api.module_unload)(module.handle) };
    }

    fn memory(&self, bytes: &[u8]) -> Result<Memory<'_>, DeviceError> {
        if bytes.len() > MAX_BYTES {
            return Err(failed("cuMemAlloc", "more than two gigabytes for one launch"));
        }
        let mut memory = Memory { api: &self.api, at: 0 };
        // SAFETY: the pointer is to a device pointer; zero bytes are never asked for.
        checked("cuMemAlloc", unsafe { (self.api.allocate)(&raw mut memory.at, bytes.len().max(1)) })?;
        // SAFETY: the memory has as many bytes as are read from the slice.
        checked("cuMemcpyHtoD", unsafe {
            (self.api.to_device)(memory.at, bytes.as_ptr().cast(), bytes.len())
        })?;
        Ok(memory)
    }
}

impl Drop for Nvidia {
    fn drop(&mut self) {
        self.modules.iter().for_each(|module| self.unload(module));
        // SAFETY: the context is this value's own and nothing made in it is left: memory borrows this value.
        let _ = unsafe { (self.api.context_destroy)(self.context) };
    }
}

/// A loaded module. Its device unloads it.
struct Module {
    text: CString,
    handle: Handle,
    entry: Handle,
}

struct Memory<'a> {
    api: &'a Api,
    at: Pointer,
}

impl Memory<'_> {
    fn read(&self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        // SAFETY: the slice has as many bytes as are written, and the memory was made with as many.
        checked("cuMemcpyDtoH", unsafe {
            (self.api.to_host)(bytes.as_mut_ptr().cast(), self.at, bytes.len())
        })
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if self.at != 0 {
            // SAFETY: it was allocated by this value and is given back once.
            let _ = unsafe { (self.api.free)(self.at) };
        }
    }
}

/// The first content of all objects of all instances, object by object.
fn content(kernel: &Kernel, instances: usize, stride: usize) -> Vec<u8> {
    let mut bytes = vec![0; kernel.objects.len() * instances * stride];
    for (part, init) in bytes.chunks_mut(instances * stride).zip(&kernel.objects) {
        part.chunks_mut(stride).for_each(|copy| copy[..init.len()].copy_from_slice(init));
    }
    bytes
}

impl Device for Nvidia {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        let (kernel, strategy) = (batch.kernel, batch.strategy);
        let (instances, stride) = (strategy.instances() as usize, strategy.stride as usize);
        let (slots, size) = (kernel.slots as usize, instances * stride);
        let entry = self.entry(&kernel.text)?;
        let roles = roles(kernel, strategy, batch.seed);
        let words: Vec<u8> = roles.iter().flat_map(|r| r.to_le_bytes()).collect();
        let mut objects = content(kernel, instances, stride);
        let mut results = vec![0; instances * slots * 8];
        let memory = self.memory(&objects)?;
        let answers = self.memory(&results)?;
        let table = self.memory(&words)?;
        let scratch = self.memory(&vec![0; SCRATCH_WORDS * 4])?;
        let mut pointers = [memory.at, answers.at, table.at, scratch.at];
        // The low half of the seed: any number will do.
        let turn = u32::try_from(batch.seed & 0xffff_ffff).expect("32 bits");
        let mut numbers = [strategy.instances(), strategy.stride, turn, strategy.rounds];
        let mut params: Vec<*mut c_void> = pointers.iter_mut().map(|p| (&raw mut *p).cast()).collect();
        params.extend(numbers.iter_mut().map(|n| (&raw mut *n).cast::<c_void>()));
        let blocks = c_uint::try_from(roles.len()).map_err(|e| failed("cuLaunchKernel", e))?;
        // SAFETY: the eight parameters are those of the entry, in order and of its types, and live until the launch has
        // copied them; the kernel stays within its memory, whose sizes are those of its table, strategy and slots.
        let launched = unsafe {
            (self.api.launch)(
                entry,
                blocks,
                1,
                1,
                kernel.threads,
                1,
                1,
                0,
                null_mut(),
                params.as_mut_ptr(),
                null_mut(),
            )
        };
        checked("cuLaunchKernel", launched)?;
        // SAFETY: the context is current on this thread, which made it.
        checked("cuCtxSynchronize", unsafe { (self.api.synchronize)() })?;
        memory.read(&mut objects)?;
        answers.read(&mut results)?;
        let mut histogram = Histogram::default();
        for i in 0..instances {
            let mut words = &results[i * slots * 8..];
            let mut value = |n: &u32| {
                let (bytes, rest) = words.split_at(*n as usize * 8);
                words = rest;
                bytes.iter().rev().fold(0, |n, byte| n << 8 | u128::from(*byte))
            };
            let regs: Vec<u128> = kernel.words.iter().map(&mut value).collect();
            let object =
                |(o, init): (usize, &Vec<u8>)| objects[o * size + i * stride..][..init.len()].to_vec();
            let memory = kernel.objects.iter().enumerate().map(object).collect();
            histogram.add(Seen { regs, memory });
        }
        Ok(compared(batch.program, histogram))
    }
}
