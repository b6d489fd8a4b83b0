//! What instructions without an operation of litmus texts do, as far as memory and order go.

use moire_isa::Instr::{self, *};
use moire_isa::{
    Atom, Bfi, Binary, Call, Cvt, Cvta, Ld, LdMatrix, Ldu, Lop3, Match, Mov, Prmt, Red, Redux, Selp, Setp,
    Shf, Shfl, St, StAsync, StBulk, StMatrix, Ternary, Unary, Vote,
};

/// The sorts of instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort<'i> {
    /// Computes registers from registers, in a way that is followed where values are known.
    Computes(Sum<'i>),
    /// Loads.
    Load(&'i Ld),
    /// Loads what nobody writes.
    Uniform(&'i Ldu),
    /// Stores.
    Store(&'i St),
    /// Updates memory, with vectors or elements that no operation has.
    Update(Updated<'i>),
    /// Loads a matrix.
    LoadMatrix(&'i LdMatrix),
    /// Stores a matrix.
    StoreMatrix(&'i StMatrix),
    /// Stores a vector in one register to another CTA.
    StoreAway(&'i StAsync),
    /// Stores zeros to a range.
    StoreRange(&'i StBulk),
    /// Calls a function.
    Call(&'i Call),
    /// Ends the launch with an error.
    Trap,
    /// A fence that no operation has. Without it fewer accesses are ordered.
    Fence,
    /// Changes nothing that other threads see.
    Hint,
    /// Orders threads or accesses, or acts asynchronously.
    Synchronises,
    /// Touches memory in another way.
    Touches,
    /// Has an operation of litmus texts in all its forms, or is a branch.
    Elsewhere,
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sum<'i> {
    Mov(&'i Mov),
    Binary(&'i Binary),
    Unary(&'i Unary),
    Ternary(&'i Ternary),
    Bfi(&'i Bfi),
    Shf(&'i Shf),
    Prmt(&'i Prmt),
    Lop3(&'i Lop3),
    Setp(&'i Setp),
    Selp(&'i Selp),
    Cvt(&'i Cvt),
    Cvta(&'i Cvta),
    Shfl(&'i Shfl),
    Vote(&'i Vote),
    Match(&'i Match),
    Redux(&'i Redux),
    Activemask,
    /// Products of a warp: data that nothing follows.
    Product,
    /// Nobody follows the result.
    Other,
}

/// An update of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Updated<'i> {
    /// One that returns what it read.
    Atom(&'i Atom),
    /// One that does not.
    Red(&'i Red),
}

/// The sort of an instruction.
pub(crate) fn sort(instr: &Instr) -> Sort<'_> {
    Sort::Computes(match instr {
        Mov(i) => Sum::Mov(i),
        Binary(i) => Sum::Binary(i),
        Unary(i) => Sum::Unary(i),
        Ternary(i) => Sum::Ternary(i),
        Bfi(i) => Sum::Bfi(i),
        Shf(i) => Sum::Shf(i),
        Prmt(i) => Sum::Prmt(i),
        Lop3(i) => Sum::Lop3(i),
        Setp(i) => Sum::Setp(i),
        Selp(i) => Sum::Selp(i),
        Cvt(i) => Sum::Cvt(i),
        Cvta(i) => Sum::Cvta(i),
        Shfl(i) => Sum::Shfl(i),
        Vote(i) => Sum::Vote(i),
        Match(i) => Sum::Match(i),
        Redux(i) => Sum::Redux(i),
        Activemask(_) => Sum::Activemask,
        Mma(_) | WmmaMma(_) => Sum::Product,
        Dot(_) | Fns(_) | Set(_) | Slct(_) | Testp(_) | Video(_) => Sum::Other,
        Isspacep(_) | Mapa(_) | Getctarank(_) | MovMatrix(_) | Istypep(_) | Suq(_) | Txq(_) => Sum::Other,
        PolicyFraction(_) | PolicyRange(_) | PolicyOf(_) | MbarrierPending(_) | Elect(_) => Sum::Other,
        ClusterTaken(_) | ClusterFirst(_) => Sum::Other,
        Ld(i) => return Sort::Load(i),
        Ldu(i) => return Sort::Uniform(i),
        St(i) => return Sort::Store(i),
        Atom(i) => return Sort::Update(Updated::Atom(i)),
        Red(i) => return Sort::Update(Updated::Red(i)),
        LdMatrix(i) => return Sort::LoadMatrix(i),
        StMatrix(i) => return Sort::StoreMatrix(i),
        StAsync(i) => return Sort::StoreAway(i),
        StBulk(i) => return Sort::StoreRange(i),
        Call(i) => return Sort::Call(i),
        Trap(_) => return Sort::Trap,
        FenceAlias(_) | FenceProxy(_) => return Sort::Fence,
        Brkpt(_) | ApplyPriority(_) | PrefetchLine(_) | Prefetchu(_) | Nanosleep(_) | Pmevent(_) => {
            return Sort::Hint;
        }
        Setmaxnreg(_) | TensorPrefetch(_) | BulkPrefetch(_) => return Sort::Hint,
        Fence(_) | FenceInit(_) | Membar(_) | MembarProxies(_) | MapReplace(_) | MapCopy(_) => {
            return Sort::Synchronises;
        }
        MbarrierInit(_) | MbarrierInval(_) | MbarrierArrive(_) | MbarrierTx(_) | MbarrierWait(_)
        | MbarrierLayout(_) => {
            return Sort::Synchronises;
        }
        BarSync(_) | BarArrive(_) | BarRed(_) | WarpSync(_) | ClusterArrive(_) | ClusterWait(_)
        | ClusterTake(_) | GridDep(_) => return Sort::Synchronises,
        CpAsync(_) | CpCommit(_) | CpWait(_) | CpWaitAll(_) | CpArrive(_) | CpBulk(_) | BulkCommit(_)
        | BulkWait(_) | BulkReduce(_) | CpTensor(_) | TensorReduce(_) | RedAsync(_) => {
            return Sort::Synchronises;
        }
        TcAlloc(_) | TcDealloc(_) | TcRelinquish(_) | TcLd(_) | TcLdRed(_) | TcSt(_) | TcWaitLd(_)
        | TcWaitSt(_) | TcCommit(_) | TcFenceBefore(_) | TcFenceAfter(_) | TcMma(_) | TcMmaWs(_)
        | TcCp(_) | TcShift(_) => {
            return Sort::Synchronises;
        }
        Wgmma(_) | WgmmaFence(_) | WgmmaCommit(_) | WgmmaWait(_) => return Sort::Synchronises,
        MultiLoad(_) | MultiStore(_) | MultiRed(_) | MultiStoreAsync(_) | MultiRedAsync(_) | MultiBulk(_)
        | MultiReduce(_) => return Sort::Synchronises,
        FabricGet(_) | FabricGetBox(_) | FabricPut(_) | FabricPutBox(_) | FabricRed(_) | FabricPull(_)
        | FabricAtom(_) | FabricSubmit(_) | FabricWait(_) => return Sort::Synchronises,
        Alloca(_) | Stacksave(_) | Stackrestore(_) | Suld(_) | Sust(_) | Sured(_) | Tex(_) | Tld4(_)
        | Discard(_) | WmmaLoad(_) | WmmaStore(_) | ApplyBulk(_) | ApplyTensor(_) => return Sort::Touches,
        Bra(_) | Brx(_) | Ret(_) | Exit(_) => return Sort::Elsewhere,
    })
}
