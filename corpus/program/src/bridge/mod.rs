//! From instructions of the book to operations of litmus texts: one file a family.
//!
//! Contract: an operation means all that the instruction says, except slots that are about speed. An instruction that litmus
//! texts cannot say has none; it stays as the book reads it, and who runs it abstains from it by name and line. Patterns
//! name every slot, so a slot that the book gains does not compile here until somebody decides what it means.

mod access;
mod collective;
mod control;
mod copy;
mod fence;
mod matrix;
mod mbarrier;
mod multimem;
pub mod parts;
mod tensor;

use crate::ir::{self, AsyncCopy, Op, Tcgen05};
use moire_isa::Instr;

/// The operation of an instruction, if litmus texts have it. Arithmetic is read by its own types there, and has none here.
pub fn op(instr: &Instr) -> Option<Op> {
    use Instr::*;
    match instr {
        Ld(i) => access::load(i),
        St(i) => access::store(i),
        Atom(i) => access::fetched(i),
        Red(i) => access::reduced(i),
        Fence(i) => fence::fence(i),
        FenceInit(_) => Some(Op::MbarrierInitFence),
        FenceProxy(i) => fence::proxy(i),
        Membar(i) => Some(fence::membar(i)),
        MembarProxies(i) => Some(fence::membar_proxy(i)),
        MapReplace(i) => fence::replaced(i),
        MapCopy(i) => fence::copied(i),
        MbarrierInit(i) => mbarrier::made(i),
        MbarrierInval(i) => mbarrier::ended(i),
        MbarrierArrive(i) => mbarrier::arrives(i),
        MbarrierTx(i) => mbarrier::counts(i),
        MbarrierWait(i) => mbarrier::waits(i),
        BarSync(i) => control::synced(i),
        BarArrive(i) => control::arrived(i),
        BarRed(i) => control::reduced(i),
        WarpSync(i) => control::warp(i),
        ClusterArrive(i) => Some(control::cluster_arrives(i)),
        ClusterWait(i) => Some(control::cluster_waits(i)),
        Mapa(i) => control::mapped(i),
        Elect(i) => control::elected(i),
        GridDep(i) => Some(control::grid(i)),
        ClusterTake(i) => control::taking(i),
        ClusterTaken(i) => control::taken(i),
        ClusterFirst(i) => control::first(i),
        Setmaxnreg(i) => control::registers(i),
        Nanosleep(i) => control::sleeps(i),
        Pmevent(i) => control::counted(i),
        PrefetchLine(i) => control::prefetched(i),
        Prefetchu(i) => control::prefetched_uniform(i),
        CpAsync(_) | CpCommit(_) | CpWait(_) | CpWaitAll(_) | CpArrive(_) | CpBulk(_) | BulkReduce(_)
        | CpTensor(_) | TensorReduce(_) | TensorPrefetch(_) | BulkPrefetch(_) | BulkCommit(_)
        | BulkWait(_) | StAsync(_) | RedAsync(_) | Wgmma(_) | WgmmaFence(_) | WgmmaCommit(_)
        | WgmmaWait(_) | TcAlloc(_) | TcDealloc(_) | TcRelinquish(_) | TcLd(_) | TcLdRed(_) | TcSt(_)
        | TcWaitLd(_) | TcWaitSt(_) | TcCommit(_) | TcFenceBefore(_) | TcFenceAfter(_) | TcMma(_)
        | TcMmaWs(_) | TcCp(_) | TcShift(_) => asynchronous(instr),
        MultiLoad(i) => multimem::load(i),
        MultiStore(i) => multimem::store(i),
        MultiRed(i) => multimem::reduced(i),
        Exit(_) | Ret(_) => Some(Op::Exit),
        // A branch has a target, which the module reader finds.
        Bra(_) | Brx(_) | Call(_) | Trap(_) | Brkpt(_) => None,
        Ldu(_) | StBulk(_) | FenceAlias(_) | MbarrierLayout(_) | MbarrierPending(_) => None,
        MultiStoreAsync(_) | MultiRedAsync(_) | MultiBulk(_) | MultiReduce(_) => None,
        Shfl(i) => collective::shuffled(i),
        Vote(i) => collective::voted(i),
        Match(i) => collective::matched(i),
        Redux(i) => collective::combined(i),
        Activemask(_) => None,
        ApplyPriority(_) | ApplyBulk(_) | ApplyTensor(_) | Discard(_) => None,
        PolicyFraction(_) | PolicyRange(_) | PolicyOf(_) => None,
        Isspacep(_) | Cvta(_) | Getctarank(_) | LdMatrix(_) | StMatrix(_) | MovMatrix(_) => None,
        Mma(_) | WmmaLoad(_) | WmmaStore(_) | WmmaMma(_) => None,
        FabricGet(_) | FabricGetBox(_) | FabricPut(_) | FabricPutBox(_) | FabricRed(_) | FabricPull(_) => {
            None
        }
        FabricAtom(_) | FabricSubmit(_) | FabricWait(_) => None,
        Suld(_) | Sust(_) | Sured(_) | Suq(_) | Txq(_) | Tex(_) | Tld4(_) | Istypep(_) => None,
        Mov(_) | Binary(_) | Unary(_) | Ternary(_) | Bfi(_) | Shf(_) | Prmt(_) | Lop3(_) | Dot(_)
        | Fns(_) => None,
        Setp(_) | Set(_) | Selp(_) | Slct(_) | Testp(_) | Cvt(_) | Video(_) => None,
        Alloca(_) | Stacksave(_) | Stackrestore(_) => None,
    }
}

/// The operation of a copy, or of an instruction of the tensor cores.
fn asynchronous(instr: &Instr) -> Option<Op> {
    use Instr::*;
    match instr {
        CpAsync(i) => copy::small(i),
        CpCommit(_) => Some(Op::AsyncCopy(AsyncCopy::Commit)),
        CpWait(i) => copy::waits(i),
        CpWaitAll(_) => Some(Op::AsyncCopy(AsyncCopy::WaitAll)),
        CpArrive(i) => copy::arrives(i),
        CpBulk(i) => copy::bulk(i),
        BulkReduce(i) => copy::reduced(i),
        CpTensor(i) => copy::boxed(i),
        TensorReduce(i) => copy::box_reduced(i),
        TensorPrefetch(i) => copy::box_prefetched(i),
        BulkPrefetch(i) => copy::prefetched(i),
        BulkCommit(_) => Some(Op::AsyncCopy(AsyncCopy::BulkCommit)),
        BulkWait(i) => copy::bulk_waits(i),
        StAsync(i) => copy::stored_away(i),
        RedAsync(i) => copy::reduced_away(i),
        TcAlloc(i) => tensor::allocated(i),
        TcDealloc(i) => tensor::freed(i),
        TcRelinquish(i) => Some(tensor::relinquished(i)),
        TcLd(i) => tensor::load(i),
        TcLdRed(i) => tensor::load_reduced(i),
        TcSt(i) => tensor::store(i),
        TcWaitLd(_) => Some(Op::Tcgen05(Tcgen05::WaitLoad)),
        TcWaitSt(_) => Some(Op::Tcgen05(Tcgen05::WaitStore)),
        TcCommit(i) => tensor::committed(i),
        TcFenceBefore(_) => Some(Op::Tcgen05(Tcgen05::FenceBefore)),
        TcFenceAfter(_) => Some(Op::Tcgen05(Tcgen05::FenceAfter)),
        TcMma(i) => tensor::product(i),
        TcMmaWs(i) => tensor::stationary(i),
        TcCp(i) => tensor::copied(i),
        TcShift(i) => tensor::shifted(i),
        Wgmma(i) => matrix::product(i),
        WgmmaFence(_) => Some(Op::Wgmma(ir::Wgmma::Fence)),
        WgmmaCommit(_) => Some(Op::Wgmma(ir::Wgmma::Commit)),
        WgmmaWait(i) => matrix::waits(i),
        _ => None,
    }
}
