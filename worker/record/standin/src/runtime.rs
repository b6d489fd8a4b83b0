//! A stand-in of CUDA's runtime, `libcudart.so`, for programs that `nvcc --cudart shared` has built.
//!
//! NVIDIA's runtime does not start on a driver that is not NVIDIA's: it asks for proofs of that, which nothing here imitates. This
//! one is the part that programs call: what `nvcc` registers, launches, memory, streams, events, attributes. It asks for the driver's
//! functions by name, as any program does, so that a recorder sees them. What is not here leaves the program unable to start, with the
//! name of what is missing.

use crate::calls::{Name, Pointer, Status};
use crate::device::device;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int, c_uint};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

unsafe extern "C" {
    fn dlsym(handle: Pointer, name: Name) -> Pointer;
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Size {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// What programs register, and what they have begun.
#[derive(Default)]
struct Registered {
    /// Containers with their libraries, once loaded.
    images: Vec<(usize, Option<usize>)>,
    /// Kernels by the address of their stub: the container and the name.
    kernels: HashMap<usize, (usize, CString)>,
    /// Variables in the same way.
    variables: HashMap<usize, (usize, CString)>,
    /// Configurations of launches that stand before their arguments.
    configured: Vec<(Size, Size, usize, usize)>,
    last: Status,
}

static REGISTERED: Mutex<Option<Registered>> = Mutex::new(None);

fn with<T>(act: impl FnOnce(&mut Registered) -> T) -> T {
    act(REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

const INVALID_FUNCTION: Status = 98;
const INVALID_SYMBOL: Status = 13;

/// A function of the driver, as the whole program sees it.
macro_rules! driver {
    ($name:ident($($value:expr => $ty:ty),*)) => {{
        const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!(),
        };
        // SAFETY: the name ends; the null handle stands for all libraries, among them this one.
        let address = unsafe { dlsym(null_mut(), NAME.as_ptr()) };
        // SAFETY: the function of this name has this type.
        let function: unsafe extern "C" fn($($ty),*) -> Status = unsafe { std::mem::transmute(address) };
        // SAFETY: the caller's arguments are passed on.
        unsafe { function($($value),*) }
    }};
}

macro_rules! runtime {
    ($($function:ident($($arg:ident: $ty:ty),* $(,)?) => $act:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, reason = "the runtime's function")]
            unsafe extern "C" fn $function($($arg: $ty),*) -> Status {
                let status = $act;
                if status != 0 {
                    with(|r| r.last = status);
                }
                status
            }
        )*
    };
}

fn put<T>(at: *mut T, value: T) -> Status {
    if !at.is_null() {
        // SAFETY: the caller passes a place for it.
        unsafe { at.write_unaligned(value) };
    }
    0
}

/// The library of a container, loaded when it is first needed.
fn library(image: usize) -> Option<usize> {
    let (start, known) = with(|r| r.images.get(image).copied())?;
    if known.is_some() {
        return known;
    }
    started();
    let mut made: Pointer = null_mut();
    let none: Pointer = null_mut();
    let status = driver!(cuLibraryLoadData(&raw mut made => *mut Pointer, start as Pointer => Pointer, none => Pointer,
        none => Pointer, 0 => c_uint, none => Pointer, none => Pointer, 0 => c_uint));
    let made = (status == 0).then_some(made as usize);
    with(|r| r.images.get_mut(image).into_iter().for_each(|i| i.1 = made));
    made
}

/// The context of the device is made when something is first asked of it.
fn started() {
    let mut context: Pointer = null_mut();
    driver!(cuCtxGetCurrent(&raw mut context => *mut Pointer));
    if context.is_null() {
        driver!(cuInit(0 => c_uint));
        driver!(cuDevicePrimaryCtxRetain(&raw mut context => *mut Pointer, 0 => c_int));
        driver!(cuCtxSetCurrent(context => Pointer));
    }
}

/// The kernel of a stub; a kernel stands for itself.
fn kernel(stub: Pointer) -> Option<Pointer> {
    let Some((image, name)) = with(|r| r.kernels.get(&(stub as usize)).cloned()) else { return Some(stub) };
    let mut made: Pointer = null_mut();
    let library = library(image)? as Pointer;
    let status =
        driver!(cuLibraryGetKernel(&raw mut made => *mut Pointer, library => Pointer, name.as_ptr() => Name));
    (status == 0).then_some(made)
}

fn launch(
    stub: Pointer,
    grid: Size,
    block: Size,
    args: *mut Pointer,
    shared: usize,
    stream: Pointer,
) -> Status {
    let Some(kernel) = kernel(stub) else { return INVALID_FUNCTION };
    let shared = c_uint::try_from(shared).unwrap_or(c_uint::MAX);
    driver!(cuLaunchKernel(kernel => Pointer, grid.x => c_uint, grid.y => c_uint, grid.z => c_uint, block.x => c_uint,
        block.y => c_uint, block.z => c_uint, shared => c_uint, stream => Pointer, args => *mut Pointer,
        null_mut() => *mut Pointer))
}

/// `cudaLaunchConfig_t` differs from the driver's in the width of the bytes of shared memory.
fn launch_with(config: *const [u8; 56], stub: Pointer, args: *mut Pointer) -> Status {
    let Some(kernel) = kernel(stub) else { return INVALID_FUNCTION };
    // SAFETY: the caller passes a configuration.
    let config = unsafe { *config };
    driver!(cuLaunchKernelEx(config.as_ptr() => *const u8, kernel => Pointer, args => *mut Pointer, null_mut() => *mut Pointer))
}

/// The address of a variable on the device.
fn variable(stub: Pointer) -> Option<u64> {
    let (image, name) = with(|r| r.variables.get(&(stub as usize)).cloned())?;
    let (mut start, mut bytes) = (0, 0);
    let library = library(image)? as Pointer;
    let status = driver!(cuLibraryGetGlobal(&raw mut start => *mut u64, &raw mut bytes => *mut usize, library => Pointer,
        name.as_ptr() => Name));
    (status == 0).then_some(start)
}

fn allocate(to: *mut u64, bytes: usize) -> Status {
    started();
    driver!(cuMemAlloc_v2(to => *mut u64, bytes => usize))
}

fn copy(to: u64, from: u64, bytes: usize) -> Status {
    started();
    driver!(cuMemcpy(to => u64, from => u64, bytes => usize))
}

fn entry(name: Name, to: *mut Pointer, version: c_uint, flags: u64, result: *mut c_int) -> Status {
    started();
    let version = c_int::try_from(version).unwrap_or(0);
    put(result, 0);
    driver!(cuGetProcAddress_v2(name => Name, to => *mut Pointer, version => c_int, flags => u64, null_mut() => *mut c_int))
}

fn register(
    of: fn(&mut Registered) -> &mut HashMap<usize, (usize, CString)>,
    image: Pointer,
    stub: Pointer,
    name: Name,
) {
    // SAFETY: what `nvcc` writes passes a name that ends.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    with(|r| of(r).insert(stub as usize, (image as usize - 1, name)));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(image: Pointer) -> Pointer {
    with(|r| {
        r.images.push((image as usize, None));
        r.images.len() as Pointer
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    image: Pointer,
    stub: Pointer,
    _called: Name,
    name: Name,
    _limit: c_int,
) {
    register(|r| &mut r.kernels, image, stub, name);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterVar(image: Pointer, stub: Pointer, _called: Name, name: Name) {
    register(|r| &mut r.variables, image, stub, name);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetLastError() -> Status {
    with(|r| std::mem::take(&mut r.last))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetErrorName(status: Status) -> Name {
    if status == 0 { c"cudaSuccess".as_ptr() } else { c"cudaError".as_ptr() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetErrorString(status: Status) -> Name {
    if status == 0 {
        c"no error".as_ptr()
    } else {
        c"the stand-in of the runtime does not support this".as_ptr()
    }
}

/// `cudaDeviceProp`: the name, then what programs look at, at the places of version 12 or 13.
fn properties(to: *mut u8, processors: usize) -> Status {
    const WORDS: [(usize, c_int); 6] = [(304, 12), (308, 10), (320, 1), (360, 75), (364, 76), (596, 38)];
    const WIDE: [(usize, c_int); 3] = [(296, 8), (624, 81), (672, 97)];
    let name: Vec<u8> = device().name.bytes().take(255).chain([0]).collect();
    let word = |at: usize, bytes: &[u8]| {
        // SAFETY: the structure has more bytes than this in both versions.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(at), bytes.len()) };
    };
    word(0, &name);
    word(288, &(80u64 << 30).to_le_bytes());
    WORDS.iter().for_each(|(at, which)| word(*at, &device().attribute(*which).to_le_bytes()));
    WIDE.iter().for_each(|(at, which)| word(*at, &i64::from(device().attribute(*which)).to_le_bytes()));
    word(processors, &device().attribute(16).to_le_bytes());
    0
}

runtime! {
    __cudaRegisterFatBinaryEnd(image: Pointer) => 0;
    __cudaUnregisterFatBinary(image: Pointer) => 0;
    __cudaInitModule(image: Pointer) => 1;
    __cudaPushCallConfiguration(grid: Size, block: Size, shared: usize, stream: Pointer) => {
        with(|r| r.configured.push((grid, block, shared, stream as usize)));
        0
    };
    __cudaPopCallConfiguration(grid: *mut Size, block: *mut Size, shared: *mut usize, stream: *mut usize)
        => match with(|r| r.configured.pop()) {
            Some(c) => put(grid, c.0) | put(block, c.1) | put(shared, c.2) | put(stream, c.3),
            None => 52,
        };
    __cudaGetKernel(to: *mut Pointer, stub: Pointer)
        => match kernel(stub) { Some(found) => put(to, found), None => INVALID_FUNCTION };
    __cudaLaunchKernel(from: Pointer, grid: Size, block: Size, args: *mut Pointer, shared: usize, stream: Pointer)
        => launch(from, grid, block, args, shared, stream);
    cudaLaunchKernel(from: Pointer, grid: Size, block: Size, args: *mut Pointer, shared: usize, stream: Pointer)
        => launch(from, grid, block, args, shared, stream);
    cudaLaunchKernelExC(config: *const [u8; 56], from: Pointer, args: *mut Pointer) => launch_with(config, from, args);
    cudaLaunchCooperativeKernel(from: Pointer, grid: Size, block: Size, args: *mut Pointer, shared: usize, stream: Pointer)
        => launch(from, grid, block, args, shared, stream);

    cudaPeekAtLastError() => with(|r| r.last);
    cudaGetDevice(to: *mut c_int) => put(to, 0);
    cudaSetDevice(number: c_int) => if number == 0 { started(); 0 } else { 101 };
    cudaInitDevice(number: c_int, flags: c_uint, more: c_uint) => { started(); 0 };
    cudaGetDeviceCount(to: *mut c_int) => put(to, 1);
    cudaDeviceSynchronize() => 0;
    cudaDeviceReset() => 0;
    cudaDeviceGetAttribute(to: *mut c_int, which: c_int, number: c_int) => put(to, device().attribute(which));
    cudaGetDeviceProperties(to: *mut u8, number: c_int) => properties(to, 384);
    cudaGetDeviceProperties_v2(to: *mut u8, number: c_int) => properties(to, 388);
    cudaDriverGetVersion(to: *mut c_int) => driver!(cuDriverGetVersion(to => *mut c_int));
    cudaRuntimeGetVersion(to: *mut c_int) => driver!(cuDriverGetVersion(to => *mut c_int));
    cudaGetDriverEntryPoint(name: Name, to: *mut Pointer, flags: u64, result: *mut c_int) => entry(name, to, 13_000, flags, result);
    cudaGetDriverEntryPointByVersion(name: Name, to: *mut Pointer, version: c_uint, flags: u64, result: *mut c_int)
        => entry(name, to, version, flags, result);

    cudaMalloc(to: *mut u64, bytes: usize) => allocate(to, bytes);
    cudaMallocManaged(to: *mut u64, bytes: usize, flags: c_uint) => allocate(to, bytes);
    cudaMallocAsync(to: *mut u64, bytes: usize, stream: Pointer) => allocate(to, bytes);
    cudaMallocHost(to: *mut u64, bytes: usize) => allocate(to, bytes);
    cudaHostAlloc(to: *mut u64, bytes: usize, flags: c_uint) => allocate(to, bytes);
    cudaFree(at: u64) => { started(); driver!(cuMemFree_v2(at => u64)) };
    cudaFreeAsync(at: u64, stream: Pointer) => driver!(cuMemFree_v2(at => u64));
    cudaFreeHost(at: u64) => driver!(cuMemFree_v2(at => u64));
    cudaMemcpy(to: u64, from: u64, bytes: usize, kind: c_int) => copy(to, from, bytes);
    cudaMemcpyAsync(to: u64, from: u64, bytes: usize, kind: c_int, stream: Pointer) => copy(to, from, bytes);
    cudaMemcpyToSymbol(to: Pointer, from: u64, bytes: usize, at: usize, kind: c_int)
        => match variable(to) { Some(start) => copy(start + at as u64, from, bytes), None => INVALID_SYMBOL };
    cudaMemcpyFromSymbol(to: u64, from: Pointer, bytes: usize, at: usize, kind: c_int)
        => match variable(from) { Some(start) => copy(to, start + at as u64, bytes), None => INVALID_SYMBOL };
    cudaGetSymbolAddress(to: *mut u64, from: Pointer)
        => match variable(from) { Some(start) => put(to, start), None => INVALID_SYMBOL };
    cudaMemset(to: u64, value: c_int, bytes: usize)
        => driver!(cuMemsetD8_v2(to => u64, value.to_le_bytes()[0] => u8, bytes => usize));
    cudaMemsetAsync(to: u64, value: c_int, bytes: usize, stream: Pointer)
        => driver!(cuMemsetD8_v2(to => u64, value.to_le_bytes()[0] => u8, bytes => usize));
    cudaMemGetInfo(left: *mut usize, of: *mut usize) => driver!(cuMemGetInfo_v2(left => *mut usize, of => *mut usize));

    cudaFuncSetAttribute(from: Pointer, which: c_int, value: c_int) => match kernel(from) {
        Some(kernel) => driver!(cuFuncSetAttribute(kernel => Pointer, which => c_int, value => c_int)),
        None => INVALID_FUNCTION,
    };
    cudaFuncSetCacheConfig(from: Pointer, which: c_int) => 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut c_int, from: Pointer, block: c_int, shared: usize) => put(to, 1);
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(to: *mut c_int, from: Pointer, block: c_int, shared: usize, flags: c_uint)
        => put(to, 1);
    cudaOccupancyMaxActiveClusters(to: *mut c_int, from: Pointer, config: Pointer) => put(to, 16);
    cudaOccupancyMaxPotentialClusterSize(to: *mut c_int, from: Pointer, config: Pointer) => put(to, 8);

    cudaStreamCreate(to: *mut Pointer) => driver!(cuStreamCreate(to => *mut Pointer, 0 => c_uint));
    cudaStreamCreateWithFlags(to: *mut Pointer, flags: c_uint) => driver!(cuStreamCreate(to => *mut Pointer, flags => c_uint));
    cudaStreamCreateWithPriority(to: *mut Pointer, flags: c_uint, priority: c_int)
        => driver!(cuStreamCreate(to => *mut Pointer, flags => c_uint));
    cudaStreamDestroy(stream: Pointer) => 0;
    cudaStreamSynchronize(stream: Pointer) => 0;
    cudaStreamQuery(stream: Pointer) => 0;
    cudaStreamWaitEvent(stream: Pointer, event: Pointer, flags: c_uint) => 0;
    cudaStreamBeginCapture(stream: Pointer, how: c_int) => 0;
    cudaStreamEndCapture(stream: Pointer, to: *mut Pointer) => driver!(cuGraphCreate(to => *mut Pointer, 0 => c_uint));
    cudaEventCreate(to: *mut Pointer) => driver!(cuEventCreate(to => *mut Pointer, 0 => c_uint));
    cudaEventCreateWithFlags(to: *mut Pointer, flags: c_uint) => driver!(cuEventCreate(to => *mut Pointer, flags => c_uint));
    cudaEventDestroy(event: Pointer) => 0;
    cudaEventRecord(event: Pointer, stream: Pointer) => 0;
    cudaEventSynchronize(event: Pointer) => 0;
    cudaEventQuery(event: Pointer) => 0;
    cudaEventElapsedTime(to: *mut f32, from: Pointer, until: Pointer) => put(to, 1.0);
    cudaGraphInstantiate(to: *mut Pointer, graph: Pointer, flags: u64)
        => driver!(cuGraphInstantiateWithFlags(to => *mut Pointer, graph => Pointer, flags => u64));
    cudaGraphLaunch(graph: Pointer, stream: Pointer) => driver!(cuGraphLaunch(graph => Pointer, stream => Pointer));
    cudaGraphDestroy(graph: Pointer) => 0;
    cudaGraphExecDestroy(graph: Pointer) => 0;
    cudaProfilerStart() => 0;
    cudaProfilerStop() => 0;
}
