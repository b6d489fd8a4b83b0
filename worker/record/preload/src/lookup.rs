//! The driver's own functions, and `dlsym`, by which most programs look for them.
//!
//! `dlsym` of the C library looks at its return address: who calls decides what `RTLD_NEXT` means. So it is not called from here for
//! names that nothing is put in the place of: the definition below leaves all registers and the stack as they were and
//! jumps there.

use crate::hooks;
use core::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type Address = *mut c_void;
type Lookup = unsafe extern "C" fn(Address, *const c_char) -> Address;

unsafe extern "C" {
    fn dlvsym(handle: Address, name: *const c_char, version: *const c_char) -> Address;
    fn dlopen(name: *const c_char, flags: c_int) -> Address;
}

/// `RTLD_NEXT`: what is defined in libraries behind this one.
const NEXT: Address = usize::MAX as Address;
const LAZY: c_int = 1;
const NOLOAD: c_int = 4;
const DRIVER: &CStr = c"libcuda.so.1";
/// The versions under which the C library has `dlsym`, on the two architectures.
const VERSIONS: [&CStr; 3] = [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"];

static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// `dlsym` of the C library.
fn real() -> Address {
    let known = REAL.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: all are constant strings that end.
    let all = VERSIONS.iter().map(|v| unsafe { dlvsym(NEXT, c"dlsym".as_ptr(), v.as_ptr()) });
    let found = all.into_iter().find(|f| !f.is_null()).unwrap_or(null_mut());
    REAL.store(found, Ordering::Release);
    found
}

/// What `dlsym` of the C library says.
pub(crate) fn symbol(handle: Address, name: &CStr) -> Address {
    let real = real();
    if real.is_null() {
        return null_mut();
    }
    // SAFETY: this is the address of `dlsym`, which has this type.
    let real: Lookup = unsafe { std::mem::transmute(real) };
    // SAFETY: the handle is the caller's or a special one, the name ends.
    unsafe { real(handle, name.as_ptr()) }
}

/// The driver's function of this name: of the libraries behind this one, or of the driver where only a part of the program sees it.
pub(crate) fn driver(name: &CStr) -> Address {
    let behind = symbol(NEXT, name);
    if !behind.is_null() {
        return behind;
    }
    let open = |flags| {
        // SAFETY: the name is constant; the driver stays loaded, so that its functions may be kept.
        unsafe { dlopen(DRIVER.as_ptr(), flags) }
    };
    let loaded = open(LAZY | NOLOAD);
    let handle = if loaded.is_null() { open(LAZY) } else { loaded };
    if handle.is_null() { null_mut() } else { symbol(handle, name) }
}

/// What is put in the place of a name, or null, and `dlsym` of the C library.
#[repr(C)]
struct Picked {
    ours: Address,
    real: Address,
}

unsafe extern "C" fn pick(handle: Address, name: *const c_char) -> Picked {
    let none = Picked { ours: null_mut(), real: real() };
    if name.is_null() {
        return none;
    }
    // SAFETY: the caller of `dlsym` passes a string that ends.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(hook) = hooks::named(name.to_bytes()) else { return none };
    let found = symbol(handle, name);
    // A search through all libraries meets the definition here first.
    let own = found == hooks::ours(hook);
    if found.is_null() || (own && hooks::real(hook).is_null()) {
        return none;
    }
    if !own {
        hooks::keep(hook, found);
    }
    Picked { ours: hooks::ours(hook), ..none }
}

/// `dlsym`, with the recorder's functions in the place of the driver's.
///
/// # Safety
/// As that of the C library.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlsym(handle: Address, name: *const c_char) -> Address {
    // SAFETY (of the assembly): both arguments are kept over the call, and the stack is aligned for it.
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {pick}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "jmp rdx",
        pick = sym pick,
    )
}

/// `dlsym`, with the recorder's functions in the place of the driver's.
///
/// # Safety
/// As that of the C library.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlsym(handle: Address, name: *const c_char) -> Address {
    // SAFETY (of the assembly): both arguments and the return address are kept over the call.
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {pick}",
        "mov x17, x0",
        "mov x16, x1",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbz x17, 2f",
        "mov x0, x17",
        "ret",
        "2:",
        "br x16",
        pick = sym pick,
    )
}
