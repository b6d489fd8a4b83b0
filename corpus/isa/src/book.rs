//! The list of all entries, each with its tag; the entries stand in families beside this file.
//!
//! A tag stands on disk and never changes; that of an entry that goes is not given again. A tag given twice is an
//! unreachable pattern, and an entry without one does not compile.

mod access;
mod address;
mod barrier;
mod cache;
mod control;
mod copy;
mod fabric;
mod fence;
mod matrix;
mod multimem;
mod number;
mod surface;
mod tensor;
mod warp;

pub use access::*;
pub use address::*;
pub use barrier::*;
pub use cache::*;
pub use control::*;
pub use copy::*;
pub use fabric::*;
pub use fence::*;
pub use matrix::*;
pub use multimem::*;
pub use number::*;
pub use surface::*;
pub use tensor::*;
pub use warp::*;

use crate::entry::{Entry, Instruction, Tagged, Told};
use crate::text::{Bag, Cursor, Refusal};
use std::borrow::{Borrow, BorrowMut};

macro_rules! book {
    ($($tag:literal $id:ident $(in $held:ident)?;)+) => {
        $(impl Tagged for $id { const TAG: u16 = $tag; })+

        /// An instruction of the book.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Instr { $(#[doc = concat!("[`", stringify!($id), "`]")] $id(held!($id $($held)?))),+ }

        /// All entries.
        pub const BOOK: &[&Entry] = &[$(<$id as Instruction>::ENTRY),+];

        impl Instr {
            pub(crate) fn told(&self) -> &dyn Told {
                match self { $(Instr::$id(instr) => Borrow::<$id>::borrow(instr),)+ }
            }
            pub(crate) fn told_mut(&mut self) -> &mut dyn Told {
                match self { $(Instr::$id(instr) => BorrowMut::<$id>::borrow_mut(instr),)+ }
            }
        }

        $(impl From<$id> for Instr {
            fn from(instr: $id) -> Instr { Instr::$id(instr.into()) }
        })+

        /// Reads what stands behind a name with the entry of that tag.
        #[deny(unreachable_patterns)]
        pub(crate) fn read_entry(
            tag: u16,
            bag: &mut Bag<'_>,
            at: &mut Cursor<'_, '_>,
            name: &'static str,
        ) -> Result<Instr, Refusal> {
            match tag {
                $($tag => <$id as Instruction>::read(bag, at, name).map(Instr::from),)+
                tag => unreachable!("no entry has the tag {tag}"),
            }
        }
    };
}

/// How an instruction is held: those with many operands are boxed, so that all others are small.
macro_rules! held {
    ($id:ident) => { $id };
    ($id:ident $held:ident) => { $held<$id> };
}

book! {
    1 Ld; 2 St; 3 Atom; 4 Red; 5 Ldu; 6 StAsync; 7 RedAsync;
    10 Fence; 11 FenceAlias; 12 FenceInit;
    14 FenceProxy; 15 Membar; 16 MembarProxies;
    20 MbarrierInit; 21 MbarrierInval; 22 MbarrierArrive; 23 MbarrierTx; 24 MbarrierWait; 25 MbarrierLayout;
    26 MbarrierPending;
    30 BarSync; 31 BarArrive; 32 BarRed; 33 WarpSync; 34 ClusterArrive; 35 ClusterWait;
    40 CpAsync; 41 CpCommit; 42 CpWait; 43 CpWaitAll; 44 CpArrive;
    50 CpBulk in Box; 51 BulkCommit; 52 BulkWait; 53 BulkPrefetch; 54 BulkReduce; 55 StBulk; 56 CpTensor in Box;
    57 TensorReduce; 58 TensorPrefetch;
    70 TcAlloc; 71 TcDealloc; 72 TcRelinquish; 73 TcLd; 74 TcWaitLd; 75 TcWaitSt; 76 TcCommit;
    77 TcFenceBefore; 78 TcFenceAfter; 79 TcMma in Box; 80 TcSt; 81 TcLdRed; 82 TcMmaWs in Box; 83 TcCp;
    84 TcShift;
    90 MultiLoad; 91 MultiStore; 92 MultiRed; 93 MultiStoreAsync; 94 MultiRedAsync; 95 MultiBulk;
    96 MultiReduce;
    100 Elect; 101 Shfl; 102 Vote; 103 Match; 104 Redux; 105 Activemask; 106 Setmaxnreg;
    110 PrefetchLine; 111 Prefetchu; 112 ApplyPriority; 113 ApplyBulk; 114 ApplyTensor; 115 Discard;
    116 PolicyFraction; 117 PolicyRange; 118 PolicyOf;
    120 Isspacep; 121 Cvta; 122 Mapa; 123 Getctarank; 124 LdMatrix; 125 StMatrix; 126 MovMatrix;
    127 MapReplace; 128 MapCopy;
    140 Wgmma in Box; 141 WgmmaFence; 142 WgmmaCommit; 143 WgmmaWait; 144 Mma in Box; 145 WmmaLoad;
    146 WmmaStore; 147 WmmaMma in Box;
    150 FabricGet; 151 FabricGetBox; 152 FabricPut; 153 FabricPutBox in Box; 154 FabricRed; 155 FabricPull;
    156 FabricAtom in Box; 157 FabricSubmit; 158 FabricWait;
    170 Suld; 171 Sust; 172 Sured; 173 Suq; 174 Txq; 175 Tex; 176 Tld4; 177 Istypep;
    200 Mov; 201 Binary; 202 Unary; 203 Ternary; 204 Bfi; 205 Shf; 206 Prmt; 207 Lop3; 208 Dot; 209 Fns;
    210 Setp; 211 Set; 212 Selp; 213 Slct; 214 Testp; 215 Cvt; 216 Video;
    240 Bra; 241 Brx; 242 Call; 243 Ret; 244 Exit; 245 Trap; 246 Brkpt; 247 Nanosleep; 248 Pmevent;
    249 Alloca; 250 Stacksave; 251 Stackrestore; 252 GridDep; 253 ClusterTake; 254 ClusterTaken;
    255 ClusterFirst;
}
