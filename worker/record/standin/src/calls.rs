//! The functions, each with the types of `cuda.h`. Where the caller passes a place for an answer, it is filled in.

use crate::device::device;
pub(crate) use crate::known::Pointer;
use crate::known::{CONTEXTS, Known, with};
use moire_record::{Image, hash, memory};
use std::ffi::{CStr, CString, c_char, c_int, c_uint};

pub(crate) type Status = c_int;
pub(crate) type Name = *const c_char;

const SUCCESS: Status = 0;
const INVALID: Status = 1;
const NO_MEMORY: Status = 2;
const NO_CONTEXT: Status = 201;
const NO_IMAGE: Status = 209;
const NOT_FOUND: Status = 500;
const NOT_SUPPORTED: Status = 801;

/// The version of the driver.
const VERSION: c_int = 13_050;
/// The one context of the device, and the stream that captures.
const CONTEXT: usize = 0x4000;
/// Bytes of device memory.
const MEMORY: usize = 80 << 30;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`, and minor.
const CAPABILITY: [c_int; 2] = [75, 76];

macro_rules! calls {
    ($($function:ident($($arg:ident: $ty:ty),* $(,)?) => $act:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, reason = "the driver's function")]
            unsafe extern "C" fn $function($($arg: $ty),*) -> Status { $act }
        )*
        const CALLS: &[(&str, fn() -> Pointer)] = &[$((stringify!($function), || $function as *const () as Pointer)),*];
    };
}

/// Fills in an answer.
fn put<T>(at: *mut T, value: T) -> Status {
    if !at.is_null() {
        // SAFETY: the caller passes a place for it, or none.
        unsafe { at.write_unaligned(value) };
    }
    SUCCESS
}

fn new(at: *mut Pointer) -> Status {
    put(at, with(Known::handle) as Pointer)
}

fn text(name: Name) -> CString {
    // SAFETY: the caller passes a string that ends.
    if name.is_null() { CString::default() } else { unsafe { CStr::from_ptr(name) }.to_owned() }
}

/// Whether something is to be said on stderr.
fn traced(what: &str) {
    if std::env::var_os("MOIRE_STANDIN_TRACE").is_some() {
        use std::io::Write;
        let _lost = writeln!(std::io::stderr(), "stand-in: {what}");
    }
}

fn capability() -> u32 {
    let [major, minor] = CAPABILITY.map(|which| device().attribute(which));
    u32::try_from(10 * major + minor).unwrap_or(0)
}

/// Fills in a text with a limit.
fn say(at: *mut c_char, room: c_int, what: &str) -> Status {
    let room = usize::try_from(room).unwrap_or(0);
    for (n, byte) in what.bytes().chain([0]).take(room).enumerate() {
        // SAFETY: the caller's buffer has so many bytes.
        unsafe { at.add(n).write(byte.cast_signed()) };
    }
    SUCCESS
}

fn current() -> usize {
    CONTEXTS.with_borrow(|all| all.last().copied().unwrap_or(0))
}

fn set_current(context: Pointer) -> Status {
    CONTEXTS.with_borrow_mut(|all| {
        all.pop();
        all.extend((!context.is_null()).then_some(context as usize));
    });
    SUCCESS
}

fn push(context: Pointer) -> Status {
    CONTEXTS.with_borrow_mut(|all| all.push(context as usize));
    SUCCESS
}

fn load(to: *mut Pointer, bytes: Option<Vec<u8>>) -> Status {
    let Some(bytes) = bytes else { return NO_IMAGE };
    let image = Image::of(&bytes, capability());
    if image.ptx.is_none() && image.cubin.is_none() {
        return NO_IMAGE;
    }
    put(to, with(|k| k.load(image)) as Pointer)
}

/// The bytes of a module in the caller's memory.
fn image(at: Pointer) -> Option<Vec<u8>> {
    memory::image(at as usize)
}

fn kernel(to: *mut Pointer, module: Pointer, name: Name) -> Status {
    match with(|k| k.kernel(module as usize, text(name))) {
        Some(handle) => put(to, handle as Pointer),
        None => NOT_FOUND,
    }
}

/// `CUfunction_attribute`
fn attribute(to: *mut c_int, which: c_int, kernel: Pointer) -> Status {
    const MOST_THREADS: c_int = 0;
    const REGISTERS: c_int = 4;
    const VERSIONS: [c_int; 2] = [5, 6];
    let set = with(|k| k.kernels.get(&(kernel as usize)).and_then(|k| k.attributes.get(&which).copied()));
    let usual = match which {
        MOST_THREADS => 1024,
        REGISTERS => 32,
        which if VERSIONS.contains(&which) => c_int::try_from(capability()).unwrap_or(0),
        _ => 0,
    };
    put(to, set.unwrap_or(usual))
}

fn set_attribute(kernel: Pointer, which: c_int, value: c_int) -> Status {
    with(|k| {
        k.kernels.get_mut(&(kernel as usize)).into_iter().for_each(|k| k.attributes.extend([(which, value)]))
    });
    SUCCESS
}

fn parameter(kernel: Pointer, index: usize, at: *mut usize, size: *mut usize) -> Status {
    match with(|k| k.kernels.get(&(kernel as usize)).and_then(|k| k.fields.get(index).copied())) {
        Some(field) => put(at, field.at as usize) | put(size, field.size as usize),
        None => INVALID,
    }
}

fn module_of(to: *mut Pointer, kernel: Pointer) -> Status {
    match with(|k| k.kernels.get(&(kernel as usize)).map(|k| k.module)) {
        Some(module) => put(to, module as Pointer),
        None => INVALID,
    }
}

fn name_of(to: *mut Name, kernel: Pointer) -> Status {
    match with(|k| k.kernels.get(&(kernel as usize)).map(|k| k.name.as_ptr())) {
        Some(name) => put(to, name),
        None => INVALID,
    }
}

fn allocate(to: *mut u64, bytes: usize) -> Status {
    match with(|k| k.allocate(bytes)) {
        Some(start) => put(to, start),
        None => NO_MEMORY,
    }
}

fn free(start: u64) -> Status {
    if with(|k| k.free(start)) { SUCCESS } else { INVALID }
}

fn copy(to: u64, from: u64, bytes: usize) -> Status {
    if bytes > 0 {
        // SAFETY: device memory is memory of the process; the caller says how much it copies.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    }
    SUCCESS
}

fn fill<T: Copy>(to: u64, value: T, count: usize) -> Status {
    for n in 0..count {
        // SAFETY: as in `copy`.
        unsafe { (to as *mut T).add(n).write_unaligned(value) };
    }
    SUCCESS
}

/// `CUpointer_attribute`: context, kind of memory, device and host address, managed, first byte, size, ..
fn pointer_attribute(to: Pointer, which: c_int, at: u64) -> Status {
    let Some((start, bytes)) = with(|k| k.allocation(at)) else { return INVALID };
    const DEVICE: c_uint = 2;
    match which {
        1 => put(to.cast(), CONTEXT),
        2 => put(to.cast(), DEVICE),
        3 | 4 => put(to.cast(), at),
        11 => put(to.cast(), start),
        12 => put(to.cast(), bytes),
        7 => put(to.cast(), start),
        8 | 9 | 13 => put(to.cast::<c_int>(), 0),
        _ => NOT_SUPPORTED,
    }
}

/// A tensor map: a hash of its arguments, so that equal maps have equal bytes.
fn encode(to: Pointer, arguments: &[u64]) -> Status {
    let bytes: Vec<u8> = arguments.iter().flat_map(|a| a.to_le_bytes()).collect();
    let (low, high) = (hash(&bytes), hash(&[&bytes[..], b"more"].concat()));
    put(to.cast(), <[u8; 128]>::try_from([low, high].concat().repeat(2).as_bytes()).unwrap_or([0; 128]))
}

/// The numbers of an array of the caller.
fn all<T: Copy + Into<i128>>(at: *const T, count: c_uint) -> Vec<u64> {
    let count = if at.is_null() { 0 } else { count.min(5) };
    // SAFETY: the caller's array has so many numbers.
    let read = |n| unsafe { at.add(n).read_unaligned() }.into();
    (0..count as usize).map(|n| u64::try_from(read(n) & i128::from(u64::MAX)).unwrap_or(0)).collect()
}

/// What answers for a function that is not here.
unsafe extern "C" fn unsupported() -> Status {
    NOT_SUPPORTED
}

/// Versions of functions that take other arguments than those before, the newest first.
const VERSIONED: [(&str, &[(c_int, &str)]); 4] = [
    ("cuGetProcAddress", &[(12_000, "cuGetProcAddress_v2"), (0, "cuGetProcAddress")]),
    ("cuCtxCreate", &[(12_050, "cuCtxCreate_v4"), (11_040, "cuCtxCreate_v3"), (0, "cuCtxCreate_v2")]),
    ("cuGraphAddNode", &[(12_030, "cuGraphAddNode_v2"), (0, "cuGraphAddNode")]),
    ("cuStreamGetCaptureInfo", &[(12_030, "cuStreamGetCaptureInfo_v3"), (0, "cuStreamGetCaptureInfo_v2")]),
];

fn found(symbol: Name, to: *mut Pointer, version: c_int, result: *mut c_int) -> Status {
    let name = text(symbol).to_string_lossy().into_owned();
    let list = VERSIONED.iter().find(|v| v.0 == name).map_or(&[][..], |v| v.1);
    let chosen = list.iter().find(|v| version >= v.0).map(|v| v.1.to_owned());
    let names = chosen.into_iter().chain(["_v2", ""].map(|end| format!("{name}{end}")));
    let call = |name: String| CALLS.iter().find(|c| c.0 == name).map(|c| c.1());
    let known = names.into_iter().find_map(call);
    if known.is_none() {
        traced(&format!("{name} is not here"));
    }
    put(result, 0);
    put(to, known.unwrap_or(unsupported as *const () as Pointer))
}

calls! {
    cuInit(flags: c_uint) => SUCCESS;
    cuDriverGetVersion(to: *mut c_int) => put(to, VERSION);
    cuGetProcAddress(symbol: Name, to: *mut Pointer, version: c_int, flags: u64)
        => found(symbol, to, version, std::ptr::null_mut());
    cuGetProcAddress_v2(symbol: Name, to: *mut Pointer, version: c_int, flags: u64, result: *mut c_int)
        => found(symbol, to, version, result);
    cuGetExportTable(to: *mut Pointer, which: *const [u8; 16]) => {
        // SAFETY: the caller passes an identifier of 16 bytes.
        traced(&format!("the private table {:02x?}", unsafe { *which }));
        put(to, std::ptr::null_mut());
        NOT_FOUND
    };
    cuGetErrorName(status: Status, to: *mut Name) => put(to, c"CUDA_ERROR".as_ptr());
    cuGetErrorString(status: Status, to: *mut Name) => put(to, c"the stand-in of the driver does not support this".as_ptr());
    cuProfilerStart() => SUCCESS;
    cuProfilerStop() => SUCCESS;

    cuDeviceGet(to: *mut c_int, number: c_int) => if number == 0 { put(to, 0) } else { 101 };
    cuDeviceGetCount(to: *mut c_int) => put(to, 1);
    cuDeviceGetName(to: *mut c_char, room: c_int, number: c_int) => say(to, room, &device().name);
    cuDeviceGetUuid(to: *mut [u8; 16], number: c_int) => put(to, *b"moire stand-in 0");
    cuDeviceGetUuid_v2(to: *mut [u8; 16], number: c_int) => put(to, *b"moire stand-in 0");
    cuDeviceTotalMem_v2(to: *mut usize, number: c_int) => put(to, MEMORY);
    cuDeviceGetAttribute(to: *mut c_int, which: c_int, number: c_int) => put(to, device().attribute(which));
    cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, number: c_int)
        => put(major, device().attribute(CAPABILITY[0])) | put(minor, device().attribute(CAPABILITY[1]));
    cuDeviceGetPCIBusId(to: *mut c_char, room: c_int, number: c_int) => say(to, room, "0000:01:00.0");
    cuDeviceGetByPCIBusId(to: *mut c_int, bus: Name) => put(to, 0);
    cuDeviceCanAccessPeer(to: *mut c_int, from: c_int, other: c_int) => put(to, 0);
    cuDevicePrimaryCtxRetain(to: *mut Pointer, number: c_int) => put(to, CONTEXT as Pointer);
    cuDevicePrimaryCtxRelease_v2(number: c_int) => SUCCESS;
    cuDevicePrimaryCtxReset_v2(number: c_int) => SUCCESS;
    cuDevicePrimaryCtxSetFlags_v2(number: c_int, flags: c_uint) => SUCCESS;
    cuDevicePrimaryCtxGetState(number: c_int, flags: *mut c_uint, active: *mut c_int) => put(flags, 0) | put(active, 1);
    cuDeviceGetDefaultMemPool(to: *mut Pointer, number: c_int) => new(to);
    cuDeviceGetMemPool(to: *mut Pointer, number: c_int) => new(to);

    cuCtxCreate_v2(to: *mut Pointer, flags: c_uint, number: c_int) => push(CONTEXT as Pointer) | put(to, CONTEXT as Pointer);
    cuCtxCreate_v3(to: *mut Pointer, params: Pointer, count: c_int, flags: c_uint, number: c_int)
        => push(CONTEXT as Pointer) | put(to, CONTEXT as Pointer);
    cuCtxCreate_v4(to: *mut Pointer, params: Pointer, flags: c_uint, number: c_int)
        => push(CONTEXT as Pointer) | put(to, CONTEXT as Pointer);
    cuCtxDestroy_v2(context: Pointer) => set_current(std::ptr::null_mut());
    cuCtxPushCurrent_v2(context: Pointer) => push(context);
    cuCtxPopCurrent_v2(to: *mut Pointer)
        => match CONTEXTS.with_borrow_mut(Vec::pop) { Some(c) => put(to, c as Pointer), None => NO_CONTEXT };
    cuCtxSetCurrent(context: Pointer) => set_current(context);
    cuCtxGetCurrent(to: *mut Pointer) => put(to, current() as Pointer);
    cuCtxGetDevice(to: *mut c_int) => if current() == 0 { NO_CONTEXT } else { put(to, 0) };
    cuCtxGetFlags(to: *mut c_uint) => put(to, 0);
    cuCtxGetId(context: Pointer, to: *mut u64) => put(to, 1);
    cuCtxGetApiVersion(context: Pointer, to: *mut c_uint) => put(to, 3020);
    cuCtxGetLimit(to: *mut usize, which: c_int) => put(to, 1024);
    cuCtxSetLimit(which: c_int, value: usize) => SUCCESS;
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) => put(least, 0) | put(greatest, -5);
    cuCtxSynchronize() => SUCCESS;
    cuCtxResetPersistingL2Cache() => SUCCESS;

    cuModuleLoad(to: *mut Pointer, path: Name) => load(to, std::fs::read(text(path).to_string_lossy().as_ref()).ok());
    cuModuleLoadData(to: *mut Pointer, from: Pointer) => load(to, image(from));
    cuModuleLoadDataEx(to: *mut Pointer, from: Pointer, count: c_uint, options: Pointer, values: Pointer) => load(to, image(from));
    cuModuleLoadFatBinary(to: *mut Pointer, from: Pointer) => load(to, image(from));
    cuModuleUnload(module: Pointer) => SUCCESS;
    cuModuleGetFunction(to: *mut Pointer, module: Pointer, name: Name) => kernel(to, module, name);
    cuModuleGetGlobal_v2(to: *mut u64, bytes: *mut usize, module: Pointer, name: Name)
        => put(bytes, 4096) | allocate(to, 4096);
    cuModuleGetLoadingMode(to: *mut c_int) => put(to, 2);
    cuLibraryLoadData(
        to: *mut Pointer, from: Pointer, options: Pointer, values: Pointer, count: c_uint,
        more: Pointer, their: Pointer, number: c_uint,
    ) => load(to, image(from));
    cuLibraryLoadFromFile(
        to: *mut Pointer, path: Name, options: Pointer, values: Pointer, count: c_uint,
        more: Pointer, their: Pointer, number: c_uint,
    ) => load(to, std::fs::read(text(path).to_string_lossy().as_ref()).ok());
    cuLibraryUnload(library: Pointer) => SUCCESS;
    cuLibraryGetKernel(to: *mut Pointer, library: Pointer, name: Name) => kernel(to, library, name);
    cuLibraryGetModule(to: *mut Pointer, library: Pointer) => put(to, library);
    cuLibraryGetGlobal(to: *mut u64, bytes: *mut usize, library: Pointer, name: Name)
        => put(bytes, 4096) | allocate(to, 4096);
    cuLibraryGetKernelCount(to: *mut c_uint, library: Pointer)
        => put(to, with(|k| k.modules.get(&(library as usize)).map_or(0, |m| c_uint::try_from(m.layouts.len()).unwrap_or(0))));
    cuLibraryEnumerateKernels(to: *mut Pointer, count: c_uint, library: Pointer) => {
        let names: Vec<String> =
            with(|k| k.modules.get(&(library as usize)).map_or(Vec::new(), |m| m.layouts.keys().cloned().collect()));
        for (n, name) in names.into_iter().take(count as usize).enumerate() {
            let made = CString::new(name).ok().and_then(|name| with(|k| k.kernel(library as usize, name)));
            // SAFETY: the caller's array has so many places.
            put(unsafe { to.add(n) }, made.unwrap_or(0) as Pointer);
        }
        SUCCESS
    };
    cuKernelGetFunction(to: *mut Pointer, from: Pointer) => put(to, from);
    cuKernelGetLibrary(to: *mut Pointer, from: Pointer) => module_of(to, from);
    cuKernelGetName(to: *mut Name, from: Pointer) => name_of(to, from);
    cuKernelGetParamInfo(from: Pointer, index: usize, at: *mut usize, size: *mut usize) => parameter(from, index, at, size);
    cuKernelGetAttribute(to: *mut c_int, which: c_int, from: Pointer, number: c_int) => attribute(to, which, from);
    cuKernelSetAttribute(which: c_int, value: c_int, from: Pointer, number: c_int) => set_attribute(from, which, value);
    cuKernelSetCacheConfig(from: Pointer, which: c_int, number: c_int) => SUCCESS;
    cuFuncGetModule(to: *mut Pointer, from: Pointer) => module_of(to, from);
    cuFuncGetName(to: *mut Name, from: Pointer) => name_of(to, from);
    cuFuncGetParamInfo(from: Pointer, index: usize, at: *mut usize, size: *mut usize) => parameter(from, index, at, size);
    cuFuncGetAttribute(to: *mut c_int, which: c_int, from: Pointer) => attribute(to, which, from);
    cuFuncSetAttribute(from: Pointer, which: c_int, value: c_int) => set_attribute(from, which, value);
    cuFuncSetCacheConfig(from: Pointer, which: c_int) => SUCCESS;
    cuFuncSetSharedMemConfig(from: Pointer, which: c_int) => SUCCESS;
    cuFuncLoad(from: Pointer) => SUCCESS;
    cuFuncIsLoaded(to: *mut c_int, from: Pointer) => put(to, 1);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut c_int, from: Pointer, block: c_int, shared: usize) => put(to, 1);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(to: *mut c_int, from: Pointer, block: c_int, shared: usize, flags: c_uint)
        => put(to, 1);
    cuOccupancyMaxActiveClusters(to: *mut c_int, from: Pointer, config: Pointer) => put(to, 16);
    cuOccupancyMaxPotentialClusterSize(to: *mut c_int, from: Pointer, config: Pointer) => put(to, 8);

    cuMemAlloc_v2(to: *mut u64, bytes: usize) => allocate(to, bytes);
    cuMemAllocManaged(to: *mut u64, bytes: usize, flags: c_uint) => allocate(to, bytes);
    cuMemAllocPitch_v2(to: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint) => {
        let row = width.next_multiple_of(512);
        put(pitch, row) | allocate(to, row.saturating_mul(height))
    };
    cuMemAllocAsync(to: *mut u64, bytes: usize, stream: Pointer) => allocate(to, bytes);
    cuMemAllocFromPoolAsync(to: *mut u64, bytes: usize, pool: Pointer, stream: Pointer) => allocate(to, bytes);
    cuMemAllocHost_v2(to: *mut u64, bytes: usize) => allocate(to, bytes);
    cuMemHostAlloc(to: *mut u64, bytes: usize, flags: c_uint) => allocate(to, bytes);
    cuMemHostRegister_v2(at: Pointer, bytes: usize, flags: c_uint) => SUCCESS;
    cuMemHostUnregister(at: Pointer) => SUCCESS;
    cuMemHostGetDevicePointer_v2(to: *mut u64, at: u64, flags: c_uint) => put(to, at);
    cuMemHostGetFlags(to: *mut c_uint, at: Pointer) => put(to, 0);
    cuMemFree_v2(at: u64) => free(at);
    cuMemFreeAsync(at: u64, stream: Pointer) => free(at);
    cuMemFreeHost(at: u64) => free(at);
    cuMemGetInfo_v2(left: *mut usize, of: *mut usize) => put(left, MEMORY) | put(of, MEMORY);
    cuMemGetAddressRange_v2(start: *mut u64, bytes: *mut u64, at: u64) => match with(|k| k.allocation(at)) {
        Some(found) => put(start, found.0) | put(bytes, found.1),
        None => NOT_FOUND,
    };
    cuMemPoolCreate(to: *mut Pointer, how: Pointer) => new(to);
    cuMemPoolDestroy(pool: Pointer) => SUCCESS;
    cuMemPoolSetAttribute(pool: Pointer, which: c_int, value: Pointer) => SUCCESS;
    cuMemPoolTrimTo(pool: Pointer, bytes: usize) => SUCCESS;
    cuPointerGetAttribute(to: Pointer, which: c_int, at: u64) => pointer_attribute(to, which, at);
    cuPointerGetAttributes(count: c_uint, which: *const c_int, to: *const Pointer, at: u64) => {
        for n in 0..count as usize {
            // SAFETY: the caller's arrays have so many places.
            let (which, to) = unsafe { (*which.add(n), *to.add(n)) };
            if pointer_attribute(to, which, at) != SUCCESS {
                put(to.cast::<c_int>(), 0);
            }
        }
        SUCCESS
    };

    cuMemcpy(to: u64, from: u64, bytes: usize) => copy(to, from, bytes);
    cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Pointer) => copy(to, from, bytes);
    cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) => copy(to, from, bytes);
    cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) => copy(to, from, bytes);
    cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) => copy(to, from, bytes);
    cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Pointer) => copy(to, from, bytes);
    cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: Pointer) => copy(to, from, bytes);
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Pointer) => copy(to, from, bytes);
    cuMemsetD8_v2(to: u64, value: u8, count: usize) => fill(to, value, count);
    cuMemsetD16_v2(to: u64, value: u16, count: usize) => fill(to, value, count);
    cuMemsetD32_v2(to: u64, value: u32, count: usize) => fill(to, value, count);
    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Pointer) => fill(to, value, count);
    cuMemsetD16Async(to: u64, value: u16, count: usize, stream: Pointer) => fill(to, value, count);
    cuMemsetD32Async(to: u64, value: u32, count: usize, stream: Pointer) => fill(to, value, count);

    cuStreamCreate(to: *mut Pointer, flags: c_uint) => new(to);
    cuStreamCreateWithPriority(to: *mut Pointer, flags: c_uint, priority: c_int) => new(to);
    cuStreamDestroy_v2(stream: Pointer) => SUCCESS;
    cuStreamSynchronize(stream: Pointer) => SUCCESS;
    cuStreamQuery(stream: Pointer) => SUCCESS;
    cuStreamWaitEvent(stream: Pointer, event: Pointer, flags: c_uint) => SUCCESS;
    cuStreamGetCtx(stream: Pointer, to: *mut Pointer) => put(to, CONTEXT as Pointer);
    cuStreamGetFlags(stream: Pointer, to: *mut c_uint) => put(to, 0);
    cuStreamGetPriority(stream: Pointer, to: *mut c_int) => put(to, 0);
    cuStreamGetId(stream: Pointer, to: *mut u64) => put(to, stream as u64);
    cuStreamGetDevice(stream: Pointer, to: *mut c_int) => put(to, 0);
    cuStreamIsCapturing(stream: Pointer, to: *mut c_int) => put(to, 0);
    cuStreamGetCaptureInfo_v2(stream: Pointer, to: *mut c_int, id: *mut u64, graph: *mut Pointer, after: Pointer, count: *mut usize)
        => put(to, 0);
    cuStreamGetCaptureInfo_v3(
        stream: Pointer, to: *mut c_int, id: *mut u64, graph: *mut Pointer, after: Pointer, edges: Pointer, count: *mut usize,
    ) => put(to, 0);
    cuStreamBeginCapture_v2(stream: Pointer, how: c_int) => SUCCESS;
    cuStreamEndCapture(stream: Pointer, to: *mut Pointer) => new(to);
    cuThreadExchangeStreamCaptureMode(how: *mut c_int) => SUCCESS;
    cuEventCreate(to: *mut Pointer, flags: c_uint) => new(to);
    cuEventDestroy_v2(event: Pointer) => SUCCESS;
    cuEventRecord(event: Pointer, stream: Pointer) => SUCCESS;
    cuEventRecordWithFlags(event: Pointer, stream: Pointer, flags: c_uint) => SUCCESS;
    cuEventSynchronize(event: Pointer) => SUCCESS;
    cuEventQuery(event: Pointer) => SUCCESS;
    cuEventElapsedTime(to: *mut f32, from: Pointer, until: Pointer) => put(to, 1.0);
    cuEventElapsedTime_v2(to: *mut f32, from: Pointer, until: Pointer) => put(to, 1.0);

    cuTensorMapEncodeTiled(
        to: Pointer, element: c_uint, rank: c_uint, at: u64, sizes: *const u64, strides: *const u64,
        boxes: *const u32, steps: *const u32, interleave: c_uint, swizzle: c_uint, promotion: c_uint, outside: c_uint,
    ) => {
        let words = [0, element, rank, interleave, swizzle, promotion, outside].map(u64::from);
        let lists = [all(sizes, rank), all(strides, rank.saturating_sub(1)), all(boxes, rank), all(steps, rank)].concat();
        encode(to, &[&words[..], &[at], &lists].concat())
    };
    cuTensorMapEncodeIm2col(
        to: Pointer, element: c_uint, rank: c_uint, at: u64, sizes: *const u64, strides: *const u64,
        lower: *const c_int, upper: *const c_int, channels: c_uint, pixels: c_uint, steps: *const u32,
        interleave: c_uint, swizzle: c_uint, promotion: c_uint, outside: c_uint,
    ) => {
        let words = [1, element, rank, channels, pixels, interleave, swizzle, promotion, outside].map(u64::from);
        let corners = [all(lower, rank.saturating_sub(2)), all(upper, rank.saturating_sub(2))].concat();
        let lists = [all(sizes, rank), all(strides, rank.saturating_sub(1)), corners, all(steps, rank)].concat();
        encode(to, &[&words[..], &[at], &lists].concat())
    };

    cuLaunchKernel(
        from: Pointer, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Pointer, params: Pointer, extra: Pointer,
    ) => SUCCESS;
    cuLaunchKernelEx(config: Pointer, from: Pointer, params: Pointer, extra: Pointer) => SUCCESS;
    cuLaunchCooperativeKernel(
        from: Pointer, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Pointer, params: Pointer,
    ) => SUCCESS;
    cuLaunchHostFunc(stream: Pointer, act: Option<unsafe extern "C" fn(Pointer)>, with: Pointer) => {
        // SAFETY: the caller's function takes the caller's word.
        act.into_iter().for_each(|act| unsafe { act(with) });
        SUCCESS
    };
    cuGraphCreate(to: *mut Pointer, flags: c_uint) => new(to);
    cuGraphDestroy(graph: Pointer) => SUCCESS;
    cuGraphAddKernelNode_v2(to: *mut Pointer, graph: Pointer, after: Pointer, count: usize, params: Pointer) => new(to);
    cuGraphAddNode(to: *mut Pointer, graph: Pointer, after: Pointer, count: usize, params: Pointer) => new(to);
    cuGraphAddNode_v2(to: *mut Pointer, graph: Pointer, after: Pointer, edges: Pointer, count: usize, params: Pointer) => new(to);
    cuGraphKernelNodeSetAttribute(node: Pointer, which: c_uint, value: Pointer) => SUCCESS;
    cuGraphKernelNodeSetParams_v2(node: Pointer, params: Pointer) => SUCCESS;
    cuGraphExecKernelNodeSetParams_v2(graph: Pointer, node: Pointer, params: Pointer) => SUCCESS;
    cuGraphInstantiateWithFlags(to: *mut Pointer, graph: Pointer, flags: u64) => new(to);
    cuGraphInstantiateWithParams(to: *mut Pointer, graph: Pointer, params: Pointer) => new(to);
    cuGraphInstantiate(to: *mut Pointer, graph: Pointer, flags: u64) => new(to);
    cuGraphLaunch(graph: Pointer, stream: Pointer) => SUCCESS;
    cuGraphUpload(graph: Pointer, stream: Pointer) => SUCCESS;
    cuGraphExecDestroy(graph: Pointer) => SUCCESS;
}
