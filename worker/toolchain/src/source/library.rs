//! NVIDIA's libNVVM, called in this process, which may die of that: who compiles starts another process for each text.
//!
//! Contract: every call's status is checked; what the library says goes to standard error. Signatures are those of `nvvm.h`.
//! Nothing unsafe leaves this file.

#![expect(unsafe_code, reason = "the library's interface is C; each call says why it is sound")]

use libloading::Library;
use moire_source::nvvm;
use std::error::Error;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::{fs, io};

/// A target that every release has.
const OLDEST: &str = "sm_75";

type Status = c_int;
type Handle = *mut c_void;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> Status;
type Text = unsafe extern "C" fn(Handle, *mut c_char) -> Status;

/// The program that calls libraries for this one, if there is one: itself.
static CALLER: OnceLock<PathBuf> = OnceLock::new();

/// The word by which that program is asked to call one.
pub const WORD: &str = "library";

/// Names the program that calls libraries: given [`WORD`], the file of one and arguments, it does [`main`].
pub fn called_by(program: PathBuf) {
    // Named once, by the program itself.
    let _ = CALLER.set(program);
}

/// The program that calls libraries.
pub(super) fn caller() -> Option<&'static Path> {
    CALLER.get().map(PathBuf::as_path)
}

/// The reason that a library gives no PTX.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It is none, or a function is missing.
    #[error("{}", .0.source().map_or_else(|| .0.to_string(), ToString::to_string))]
    Library(#[from] libloading::Error),
    /// It refuses the text, in these words.
    #[error("{0}")]
    Refused(String),
    /// A file cannot be read or written.
    #[error("{0}")]
    File(#[from] io::Error),
    /// The arguments name no files.
    #[error("none of `--version` and `OPTION.. -o FILE FILE`")]
    Arguments,
}

/// Does what a compiler does with these arguments: `--version` prints which release it is of, `OPTION.. -o FILE FILE` writes the
/// PTX of the last file to the first one.
///
/// # Errors
/// See [`LibraryError`].
pub fn main(library: &Path, arguments: &[String]) -> Result<Option<String>, LibraryError> {
    let api = Api::load(library)?;
    match arguments {
        [version] if version == "--version" => {
            // It names its release in what it writes.
            let ptx = api.compile(&nvvm::module(&[], 0, OLDEST), &[])?;
            Ok(Some(ptx.lines().filter(|line| line.starts_with("//")).flat_map(|l| [l, "\n"]).collect()))
        }
        [options @ .., out, to, from] if out == "-o" => {
            fs::write(to, api.compile(&fs::read_to_string(from)?, options)?)?;
            Ok(None)
        }
        _ => Err(LibraryError::Arguments),
    }
}

/// The entry points.
struct Api {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    destroy: unsafe extern "C" fn(*mut Handle) -> Status,
    add: unsafe extern "C" fn(Handle, *const c_char, usize, *const c_char) -> Status,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status,
    result_size: Size,
    result: Text,
    log_size: Size,
    log: Text,
    /// Keeps the code of the entry points loaded.
    _library: Library,
}

impl Api {
    fn load(file: &Path) -> Result<Api, LibraryError> {
        // SAFETY: the initialisers of a compiler ask nothing of their process, which does nothing else.
        let library = unsafe { Library::new(file) }?;
        macro_rules! entry {
            ($name:literal) => {
                // SAFETY: the type of the field is the declaration of this name in `nvvm.h`.
                *unsafe { library.get($name) }?
            };
        }
        Ok(Api {
            create: entry!("nvvmCreateProgram"),
            destroy: entry!("nvvmDestroyProgram"),
            add: entry!("nvvmAddModuleToProgram"),
            compile: entry!("nvvmCompileProgram"),
            result_size: entry!("nvvmGetCompiledResultSize"),
            result: entry!("nvvmGetCompiledResult"),
            log_size: entry!("nvvmGetProgramLogSize"),
            log: entry!("nvvmGetProgramLog"),
            _library: library,
        })
    }

    /// Compiles a text.
    fn compile(&self, text: &str, options: &[String]) -> Result<String, LibraryError> {
        let refused = |what: &str| LibraryError::Refused(what.to_owned());
        let options: Vec<CString> = options.iter().filter_map(|o| CString::new(o.as_str()).ok()).collect();
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(0);
        let mut program = null_mut();
        // SAFETY: the pointer is to a handle; the handle lives until it is destroyed below.
        if unsafe { (self.create)(&raw mut program) } != 0 {
            return Err(refused("no program can be made"));
        }
        // SAFETY: the text has the length that is told, the name and the options end with zero, and all live longer than the calls.
        let done = unsafe {
            (self.add)(program, text.as_ptr().cast(), text.len(), c"module.ll".as_ptr()) == 0
                && (self.compile)(program, count, pointers.as_ptr()) == 0
        };
        let (size, get) = if done { (self.result_size, self.result) } else { (self.log_size, self.log) };
        let said = told(program, size, get);
        // SAFETY: the handle is of `create` and is not used again.
        unsafe { (self.destroy)(&raw mut program) };
        match (done, said) {
            (true, Some(ptx)) => Ok(ptx),
            (false, Some(log)) if !log.trim().is_empty() => Err(LibraryError::Refused(log)),
            _ => Err(refused("it says nothing")),
        }
    }
}

/// What one of the pairs of functions for a text gives: its size first, then its bytes, with a zero at the end.
fn told(program: Handle, size: Size, get: Text) -> Option<String> {
    let mut bytes = 0;
    // SAFETY: the handle is of a program, the pointer is to a size.
    if unsafe { size(program, &raw mut bytes) } != 0 {
        return None;
    }
    let mut text = vec![0_u8; bytes];
    // SAFETY: the buffer has the size that was asked for.
    if bytes == 0 || unsafe { get(program, text.as_mut_ptr().cast()) } != 0 {
        return None;
    }
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}
