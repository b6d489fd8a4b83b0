//! NVIDIA's tools that oracles ask, and why there is none.

use super::about::Tool;
use moire_toolchain::Version;

/// NVIDIA's assembler.
pub const PTXAS: Tool = Tool {
    capability: "ptxas",
    how: "pip install nvidia-cuda-nvcc, then MOIRE_VENV=the environment, or ptxas on PATH",
};
/// NVIDIA's assembler and disassembler.
pub const SASS_TOOLS: Tool = Tool {
    capability: "sass",
    how: "pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm, then MOIRE_VENV=the environment, or ptxas and nvdisasm on PATH",
};
/// The same, and a compiler of source programs, whose PTX is assembled.
pub const SASS_SOURCES: Tool = Tool {
    capability: "sass-source",
    how: "ptxas and nvdisasm as for the oracle `sass`, and a compiler of source programs: llc, nvcc, libNVVM or Triton",
};
/// NVIDIA's compiler of Tile IR.
pub const TILEIRAS: Tool = Tool {
    capability: "tileiras",
    how: "pip install nvidia-cuda-tileiras nvidia-cuda-nvcc nvidia-nvvm, then MOIRE_VENV=the environment",
};

/// LLVM's compiler of LLVM IR.
pub const LLVM: Tool = Tool {
    capability: "llvm",
    how: "apt-get install llvm-19 (15 to 22), or rustup component add llvm-tools, or MOIRE_LLC=the file; several stand side by side",
};
/// NVIDIA's compiler of CUDA C++.
pub const NVCC: Tool = Tool {
    capability: "nvcc",
    how: "pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl, then MOIRE_VENV=the environment, or nvcc on PATH",
};
/// NVIDIA's compiler of NVVM IR.
pub const LIBNVVM: Tool = Tool {
    capability: "libnvvm",
    how: "pip install nvidia-nvvm, then MOIRE_VENV=the environment, or MOIRE_LIBNVVM=the file libnvvm.so.4; several stand side by side",
};
/// The compiler of Triton.
pub const TRITON: Tool = Tool {
    capability: "triton",
    how: "pip install triton==3.9.0 in an environment of its own, then MOIRE_VENV=the environments, or MOIRE_TRITON=its bin/python",
};

/// Two compilers of source programs, whose threads are put together.
pub const MIXING: Tool = Tool {
    capability: "mixing",
    how: "two compilers of source programs side by side: llc of two releases, or llc and nvcc",
};

/// Why there is no assembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAssembler {
    /// The one that was found is too old.
    #[error("ptxas {0} is older than the release the rules repeat")]
    Old(Version),
    /// None was found.
    #[error("no ptxas: {}", PTXAS.how)]
    Missing,
}

/// Why there is no compiler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCompiler {
    /// None was found.
    #[error("no tileiras: {}", TILEIRAS.how)]
    Missing,
    /// None of the release was found.
    #[error("no tileiras of {release}: {how}", release = .0, how = TILEIRAS.how)]
    Release(String),
}
