//! The functions of the driver that are recorded, one after the other, each with the types of `cuda.h`.
//!
//! A name with an ending such as `_v2` or `_ptsz` is that of the symbol. `cuGetProcAddress` is asked for names without it, and by
//! version and flags: `replaced`.

use crate::launched::{Shape, node_attribute};
use crate::state::{Handle, State, name, with};
use moire_record::{Encode, memory};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type Status = c_int;
type Pointer = *mut c_void;
type Name = *const c_char;

/// `CUDA_SUCCESS`
pub(crate) const SUCCESS: Status = 0;
/// `CUDA_ERROR_NOT_FOUND`: there is no driver.
const NOT_FOUND: Status = 500;
/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const PER_THREAD: u64 = 2;

/// Names whose functions take other arguments from a version of CUDA on; the newer one ends in `_v2`.
const VERSIONED: [(&str, c_int); 5] = [
    ("cuGetProcAddress", 12_000),
    ("cuGraphAddKernelNode", 12_000),
    ("cuGraphKernelNodeSetParams", 12_000),
    ("cuGraphExecKernelNodeSetParams", 12_000),
    ("cuGraphAddNode", 12_030),
];

/// `CUlaunchConfig`
pub(crate) struct Config;

impl Config {
    /// Sizes of the grid and of CTAs, and bytes of shared memory.
    pub(crate) const WORDS: usize = 7;
    /// The address of the attributes.
    pub(crate) const LIST: usize = 40;
    /// Their number.
    pub(crate) const COUNT: usize = 48;
}

/// `CUDA_KERNEL_NODE_PARAMS`: the function, then the sizes.
pub(crate) struct NodeParams;

impl NodeParams {
    pub(crate) const GRID: usize = 8;
    pub(crate) const PARAMS: usize = 40;
    pub(crate) const EXTRA: usize = 48;
    /// The kernel, where there is no function; from version 2 on.
    pub(crate) const KERNEL: usize = 56;
    /// In `CUgraphNodeParams`, which begins with its kind: 0 is a kernel.
    const IN_NODE: usize = 16;
}

/// Each function calls that of the driver and returns its status, which what stands behind `=>` passes on.
macro_rules! hooks {
    ($($function:ident($($arg:ident: $ty:ty),* $(,)?) $status:ident => $act:expr;)*) => {
        #[expect(non_camel_case_types, reason = "the driver's names")]
        #[derive(Clone, Copy)]
        enum Which { $($function),* }
        const NAMES: &[&CStr] = &[$(match CStr::from_bytes_with_nul(concat!(stringify!($function), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!(),
        }),*];
        static REAL: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's function")]
            unsafe extern "C" fn $function($($arg: $ty),*) -> Status {
                let address = real(Which::$function as usize);
                if address.is_null() {
                    return NOT_FOUND;
                }
                // SAFETY: the driver's function of this name has this type.
                let real: unsafe extern "C" fn($($ty),*) -> Status = unsafe { std::mem::transmute(address) };
                // SAFETY: the caller's arguments are passed on.
                let $status = unsafe { real($($arg),*) };
                $act
            }
        )*
        const OURS: [fn() -> Pointer; NAMES.len()] = [$(|| $function as *const () as Pointer),*];
    };
}

/// The number of the hook of this name.
pub(crate) fn named(name: &[u8]) -> Option<usize> {
    if !name.starts_with(b"cu") {
        return None;
    }
    NAMES.iter().position(|n| n.to_bytes() == name)
}

/// The recorder's function.
pub(crate) fn ours(hook: usize) -> Pointer {
    OURS[hook]()
}

/// The driver's function.
pub(crate) fn real(hook: usize) -> Pointer {
    let known = REAL[hook].load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let found = crate::lookup::driver(NAMES[hook]);
    REAL[hook].store(found, Ordering::Release);
    found
}

/// Keeps the address of a driver's function.
pub(crate) fn keep(hook: usize, address: Pointer) {
    REAL[hook].store(address, Ordering::Release);
}

/// Notes something about a call that worked.
fn seen(status: Status, act: impl FnOnce(&mut State)) -> Status {
    if status == SUCCESS {
        with(act);
    }
    status
}

/// The handle that a call has filled in.
fn got(at: *mut Pointer) -> Handle {
    memory::address(at as usize).unwrap_or(0)
}

/// Puts the recorder's function in the place of the one that `cuGetProcAddress` has found.
fn replaced(symbol: Name, found: *mut Pointer, version: c_int, flags: u64) {
    let asked = name(symbol);
    let newer = VERSIONED.iter().all(|(name, from)| *name != asked || version >= *from);
    let endings: &[&str] = match (flags & PER_THREAD != 0, newer) {
        (true, _) => &["_ptsz", "_v2", ""],
        (false, true) => &["_v2", ""],
        (false, false) => &[""],
    };
    let hook = endings.iter().find_map(|end| named(format!("{asked}{end}").as_bytes()));
    let address = got(found) as Pointer;
    if let Some(hook) = hook.filter(|_| !address.is_null()) {
        if address != ours(hook) {
            keep(hook, address);
        }
        // SAFETY: the driver has written an address there.
        unsafe { *found = ours(hook) };
    }
}

/// Writes a launch that worked.
fn launched(
    status: Status,
    shape: impl FnOnce() -> Option<Shape>,
    params: *mut Pointer,
    extra: *mut Pointer,
) -> Status {
    seen(status, |s| match shape() {
        Some(shape) => {
            let launch = s.launch(shape, params as usize, extra as usize);
            launch.into_iter().for_each(|l| s.write(l));
        }
        None => s.note("a launch has a configuration that is not readable"),
    })
}

/// Keeps the launch of a node until its graph is launched.
fn noded(status: Status, node: Handle, at: usize, kern: bool) -> Status {
    seen(status, |s| match Shape::of_node(at, kern) {
        Some((shape, params, extra)) => {
            let old = s.nodes.remove(&node);
            let new = s.launch(shape, params, extra).map(|mut new| {
                new.cluster = new.cluster.or(old.and_then(|o| o.cluster));
                new
            });
            new.into_iter().for_each(|l| drop(s.nodes.insert(node, l)));
        }
        None => s.note("a node of a graph has parameters that are not readable"),
    })
}

/// Writes the launches of nodes. Which graph each is in is not followed: those of all graphs count as launched.
fn graph_launched(status: Status) -> Status {
    seen(status, |s| {
        let all: Vec<_> = s.nodes.values().cloned().collect();
        all.into_iter().for_each(|l| s.write(l));
    })
}

fn allocated(status: Status, start: *mut u64, bytes: usize) -> Status {
    seen(status, |s| {
        let start = memory::word(start as usize).unwrap_or(0);
        s.allocated(start, bytes as u64);
    })
}

/// Keeps what a tensor map was made from, by its bytes.
fn encoded(status: Status, map: Pointer, encode: impl FnOnce() -> Option<Encode>) -> Status {
    seen(status, |s| {
        let blob = memory::bytes(map as usize, 128).and_then(|b| <[u8; 128]>::try_from(b).ok());
        match blob.zip(encode()) {
            Some((blob, encode)) => drop(s.maps.insert(blob, encode)),
            None => s.note("a tensor map was encoded from arguments that are not readable"),
        }
    })
}

/// The arguments that all modes of a tensor map share.
struct Common {
    mode: &'static str,
    element: c_uint,
    rank: c_uint,
    address: Pointer,
    sizes: *const u64,
    strides: *const u64,
    steps: *const u32,
    words: [c_uint; 4],
}

impl Common {
    fn with(self, boxes: impl FnOnce(usize) -> Option<Vec<i64>>) -> Option<Encode> {
        let rank = usize::try_from(self.rank).ok().filter(|r| *r <= 5)?;
        let long = |at: *const u64, count: usize| -> Option<Vec<u64>> {
            (0..count).map(|n| memory::word(at as usize + 8 * n)).collect()
        };
        Some(Encode {
            mode: self.mode.to_owned(),
            element: self.element,
            sizes: long(self.sizes, rank)?,
            strides: long(self.strides, rank.saturating_sub(1))?,
            boxes: boxes(rank)?,
            steps: short(self.steps, rank)?,
            words: self.words,
            address: self.address as u64,
        })
    }
}

/// Numbers of four bytes.
fn short(at: *const u32, count: usize) -> Option<Vec<u32>> {
    (0..count).map(|n| memory::words::<1>(at as usize + 4 * n).map(|w| w[0])).collect()
}

fn signed(at: *const c_int, count: usize) -> Option<Vec<i64>> {
    let all = short(at.cast(), count)?;
    Some(all.into_iter().map(|n| i64::from(n.cast_signed())).collect())
}

fn found(status: Status, symbol: Name, found: *mut Pointer, version: c_int, flags: u64) -> Status {
    if status == SUCCESS {
        replaced(symbol, found, version, flags);
    }
    status
}

fn loaded(status: Status, handle: *mut Pointer, image: Pointer) -> Status {
    seen(status, |s| s.load_at(got(handle), image as usize))
}

fn read(status: Status, handle: *mut Pointer, path: Name) -> Status {
    seen(status, |s| s.load(got(handle), std::fs::read(name(path)).ok()))
}

fn kernel(status: Status, handle: *mut Pointer, module: Pointer, called: Name) -> Status {
    seen(status, |s| s.kernel(got(handle), module as Handle, name(called)))
}

fn freed(status: Status, start: u64) -> Status {
    seen(status, |s| s.freed(start))
}

/// The shape of a launch whose sizes are arguments.
fn plain(function: Pointer, grid: [c_uint; 3], block: [c_uint; 3], shared: c_uint) -> Shape {
    Shape { kernel: function as Handle, grid, block, shared, ..Shape::default() }
}

fn cooperative(shape: Shape) -> Shape {
    Shape { attributes: vec!["cooperative".into()], ..shape }
}

hooks! {
    cuGetProcAddress(symbol: Name, at: *mut Pointer, version: c_int, flags: u64)
        status => found(status, symbol, at, version, flags);
    cuGetProcAddress_v2(symbol: Name, at: *mut Pointer, version: c_int, flags: u64, result: Pointer)
        status => found(status, symbol, at, version, flags);
    cuGetProcAddress_v2_ptsz(symbol: Name, at: *mut Pointer, version: c_int, flags: u64, result: Pointer)
        status => found(status, symbol, at, version, flags | PER_THREAD);

    cuModuleLoad(module: *mut Pointer, path: Name) status => read(status, module, path);
    cuModuleLoadData(module: *mut Pointer, image: Pointer) status => loaded(status, module, image);
    cuModuleLoadDataEx(module: *mut Pointer, image: Pointer, count: c_uint, options: Pointer, values: Pointer)
        status => loaded(status, module, image);
    cuModuleLoadFatBinary(module: *mut Pointer, image: Pointer) status => loaded(status, module, image);
    cuModuleUnload(module: Pointer) status => seen(status, |s| s.unload(module as Handle));
    cuModuleGetFunction(function: *mut Pointer, module: Pointer, called: Name)
        status => kernel(status, function, module, called);
    cuModuleGetGlobal_v2(start: *mut u64, bytes: *mut usize, module: Pointer, called: Name)
        status => allocated(status, start, got(bytes.cast()));
    cuLibraryLoadData(
        library: *mut Pointer, image: Pointer, options: Pointer, values: Pointer, count: c_uint,
        more: Pointer, their: Pointer, number: c_uint,
    ) status => loaded(status, library, image);
    cuLibraryLoadFromFile(
        library: *mut Pointer, path: Name, options: Pointer, values: Pointer, count: c_uint,
        more: Pointer, their: Pointer, number: c_uint,
    ) status => read(status, library, path);
    cuLibraryUnload(library: Pointer) status => seen(status, |s| s.unload(library as Handle));
    cuLibraryGetKernel(function: *mut Pointer, library: Pointer, called: Name)
        status => kernel(status, function, library, called);
    cuLibraryGetModule(module: *mut Pointer, library: Pointer)
        status => seen(status, |s| s.module_of(got(module), library as Handle));
    cuLibraryGetGlobal(start: *mut u64, bytes: *mut usize, library: Pointer, called: Name)
        status => allocated(status, start, got(bytes.cast()));
    cuKernelGetFunction(function: *mut Pointer, from: Pointer)
        status => seen(status, |s| s.function(got(function), from as Handle));
    cuFuncSetAttribute(function: Pointer, which: c_int, value: c_int)
        status => seen(status, |s| s.set(function as Handle, which, value));
    cuKernelSetAttribute(which: c_int, value: c_int, function: Pointer, device: c_int)
        status => seen(status, |s| s.set(function as Handle, which, value));

    cuLinkAddData_v2(
        link: Pointer, kind: c_int, image: Pointer, bytes: usize, called: Name, count: c_uint, options: Pointer, values: Pointer,
    ) status => seen(status, |s| s.link(link as Handle, memory::bytes(image as usize, bytes)));
    cuLinkAddFile_v2(link: Pointer, kind: c_int, path: Name, count: c_uint, options: Pointer, values: Pointer)
        status => seen(status, |s| s.link(link as Handle, std::fs::read(name(path)).ok()));
    cuLinkComplete(link: Pointer, image: *mut Pointer, bytes: *mut usize)
        status => seen(status, |s| s.linked(link as Handle, got(image)));

    cuMemAlloc_v2(start: *mut u64, bytes: usize) status => allocated(status, start, bytes);
    cuMemAllocManaged(start: *mut u64, bytes: usize, flags: c_uint) status => allocated(status, start, bytes);
    cuMemAllocPitch_v2(start: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint)
        status => allocated(status, start, got(pitch.cast()).saturating_mul(height));
    cuMemAllocAsync(start: *mut u64, bytes: usize, stream: Pointer) status => allocated(status, start, bytes);
    cuMemAllocAsync_ptsz(start: *mut u64, bytes: usize, stream: Pointer) status => allocated(status, start, bytes);
    cuMemAllocFromPoolAsync(start: *mut u64, bytes: usize, pool: Pointer, stream: Pointer)
        status => allocated(status, start, bytes);
    cuMemAllocFromPoolAsync_ptsz(start: *mut u64, bytes: usize, pool: Pointer, stream: Pointer)
        status => allocated(status, start, bytes);
    cuMemAllocHost_v2(start: *mut u64, bytes: usize) status => allocated(status, start, bytes);
    cuMemHostAlloc(start: *mut u64, bytes: usize, flags: c_uint) status => allocated(status, start, bytes);
    cuMemHostRegister_v2(start: u64, bytes: usize, flags: c_uint)
        status => seen(status, |s| s.allocated(start, bytes as u64));
    cuMemAddressReserve(start: *mut u64, bytes: usize, align: usize, wanted: u64, flags: u64)
        status => allocated(status, start, bytes);
    cuMemFree_v2(start: u64) status => freed(status, start);
    cuMemFreeAsync(start: u64, stream: Pointer) status => freed(status, start);
    cuMemFreeAsync_ptsz(start: u64, stream: Pointer) status => freed(status, start);
    cuMemFreeHost(start: u64) status => freed(status, start);
    cuMemHostUnregister(start: u64) status => freed(status, start);
    cuMemAddressFree(start: u64, bytes: usize) status => freed(status, start);

    cuTensorMapEncodeTiled(
        map: Pointer, element: c_uint, rank: c_uint, address: Pointer, sizes: *const u64, strides: *const u64,
        boxes: *const u32, steps: *const u32, interleave: c_uint, swizzle: c_uint, promotion: c_uint, outside: c_uint,
    ) status => encoded(status, map, || {
        let words = [interleave, swizzle, promotion, outside];
        Common { mode: "tiled", element, rank, address, sizes, strides, steps, words }
            .with(|rank| Some(short(boxes, rank)?.into_iter().map(i64::from).collect()))
    });
    cuTensorMapEncodeIm2col(
        map: Pointer, element: c_uint, rank: c_uint, address: Pointer, sizes: *const u64, strides: *const u64,
        lower: *const c_int, upper: *const c_int, channels: c_uint, pixels: c_uint, steps: *const u32,
        interleave: c_uint, swizzle: c_uint, promotion: c_uint, outside: c_uint,
    ) status => encoded(status, map, || {
        let words = [interleave, swizzle, promotion, outside];
        Common { mode: "im2col", element, rank, address, sizes, strides, steps, words }.with(|rank| {
            let corner = |at| signed(at, rank.saturating_sub(2));
            Some([corner(lower)?, corner(upper)?, vec![i64::from(channels), i64::from(pixels)]].concat())
        })
    });
    cuTensorMapEncodeIm2colWide(
        map: Pointer, element: c_uint, rank: c_uint, address: Pointer, sizes: *const u64, strides: *const u64,
        lower: c_int, upper: c_int, channels: c_uint, pixels: c_uint, steps: *const u32,
        interleave: c_uint, mode: c_uint, swizzle: c_uint, promotion: c_uint, outside: c_uint,
    ) status => encoded(status, map, || {
        let words = [interleave, swizzle, promotion, outside];
        let boxes = [i64::from(lower), i64::from(upper), i64::from(channels), i64::from(pixels), i64::from(mode)];
        Common { mode: "im2col-wide", element, rank, address, sizes, strides, steps, words }.with(|_| Some(boxes.to_vec()))
    });

    cuTensorMapReplaceAddress(map: Pointer, address: Pointer)
        status => seen(status, |s| s.note("a tensor map got another address: which memory it is about is not recorded"));

    cuLaunchKernel(
        function: Pointer, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Pointer, params: *mut Pointer, extra: *mut Pointer,
    ) status => launched(status, || Some(plain(function, [gx, gy, gz], [bx, by, bz], shared)), params, extra);
    cuLaunchKernel_ptsz(
        function: Pointer, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Pointer, params: *mut Pointer, extra: *mut Pointer,
    ) status => launched(status, || Some(plain(function, [gx, gy, gz], [bx, by, bz], shared)), params, extra);
    cuLaunchCooperativeKernel(
        function: Pointer, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Pointer, params: *mut Pointer,
    ) status => launched(status, || Some(cooperative(plain(function, [gx, gy, gz], [bx, by, bz], shared))), params, null_mut());
    cuLaunchCooperativeKernel_ptsz(
        function: Pointer, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Pointer, params: *mut Pointer,
    ) status => launched(status, || Some(cooperative(plain(function, [gx, gy, gz], [bx, by, bz], shared))), params, null_mut());
    cuLaunchKernelEx(config: Pointer, function: Pointer, params: *mut Pointer, extra: *mut Pointer)
        status => launched(status, || Shape::of(config as usize, function as Handle), params, extra);
    cuLaunchKernelEx_ptsz(config: Pointer, function: Pointer, params: *mut Pointer, extra: *mut Pointer)
        status => launched(status, || Shape::of(config as usize, function as Handle), params, extra);

    cuGraphAddKernelNode(node: *mut Pointer, graph: Pointer, after: Pointer, count: usize, params: Pointer)
        status => noded(status, got(node), params as usize, false);
    cuGraphAddKernelNode_v2(node: *mut Pointer, graph: Pointer, after: Pointer, count: usize, params: Pointer)
        status => noded(status, got(node), params as usize, true);
    cuGraphAddNode(node: *mut Pointer, graph: Pointer, after: Pointer, count: usize, params: Pointer)
        status => any_node(status, node, params);
    cuGraphAddNode_v2(node: *mut Pointer, graph: Pointer, after: Pointer, edges: Pointer, count: usize, params: Pointer)
        status => any_node(status, node, params);
    cuGraphKernelNodeSetParams(node: Pointer, params: Pointer)
        status => noded(status, node as Handle, params as usize, false);
    cuGraphKernelNodeSetParams_v2(node: Pointer, params: Pointer)
        status => noded(status, node as Handle, params as usize, true);
    cuGraphExecKernelNodeSetParams(graph: Pointer, node: Pointer, params: Pointer)
        status => noded(status, node as Handle, params as usize, false);
    cuGraphExecKernelNodeSetParams_v2(graph: Pointer, node: Pointer, params: Pointer)
        status => noded(status, node as Handle, params as usize, true);
    cuGraphKernelNodeSetAttribute(node: Pointer, which: c_uint, value: Pointer)
        status => seen(status, |s| {
            let value = memory::words(value as usize);
            s.nodes.get_mut(&(node as Handle)).zip(value).into_iter().for_each(|(l, v)| node_attribute(l, which, v));
        });
    cuGraphLaunch(graph: Pointer, stream: Pointer) status => graph_launched(status);
    cuGraphLaunch_ptsz(graph: Pointer, stream: Pointer) status => graph_launched(status);
}

/// A node of any kind: 0 is a kernel.
fn any_node(status: Status, node: *mut Pointer, params: Pointer) -> Status {
    match memory::words(params as usize) {
        Some([0]) => noded(status, got(node), (params as usize).wrapping_add(NodeParams::IN_NODE), true),
        _ => status,
    }
}
