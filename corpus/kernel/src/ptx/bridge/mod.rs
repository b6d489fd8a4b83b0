//! From instructions of the book to operations of litmus texts: one file a family.
//!
//! Contract: an operation means all that the instruction says, except slots that are about speed. An instruction that litmus
//! texts cannot say has none; it stays as the book reads it, and who runs it abstains from it by name and line. Patterns
//! name every slot, so a slot that the book gains does not compile here until somebody decides what it means.

mod access;
mod control;
mod copy;
mod fence;
mod matrix;
mod mbarrier;
mod multimem;
mod tensor;

use moire_isa::kinds::{self, RedOp};
use moire_isa::operand::{Pred, Register};
use moire_isa::{Instr, OF_CALLS, Value, operand};
use moire_program::ir::{
    self, Address, AsyncCopy, AtomOp, Guard, Op, Operand, Reg, Scope, Space, SymbolId, Tcgen05, Ty,
};

/// The operation of an instruction, if litmus texts have it.
pub(super) fn op(instr: &Instr) -> Option<Op> {
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
        MultiLoad(i) => multimem::load(i),
        MultiStore(i) => multimem::store(i),
        MultiRed(i) => multimem::reduced(i),
        Exit(_) | Ret(_) => Some(Op::Exit),
        // A branch has a target, which the module reader finds.
        Bra(_) | Brx(_) | Call(_) | Trap(_) | Brkpt(_) => None,
        Ldu(_) | StBulk(_) | FenceAlias(_) | MbarrierLayout(_) | MbarrierPending(_) => None,
        MultiStoreAsync(_) | MultiRedAsync(_) | MultiBulk(_) | MultiReduce(_) => None,
        // Exchanges between lanes: the run ahead has a table of its own for these.
        Shfl(_) | Vote(_) | Match(_) | Redux(_) | Activemask(_) => None,
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

fn reg(reg: moire_isa::Reg) -> Option<Reg> {
    u16::try_from(reg.index).ok().map(Reg)
}

fn register(value: &Register) -> Option<Reg> {
    value.reg().and_then(reg)
}

/// A register of a vector: litmus texts have no sink there.
fn element(value: &Value) -> Option<Reg> {
    value.reg().and_then(reg)
}

fn symbol(index: u32) -> Option<SymbolId> {
    u16::try_from(index).ok().filter(|_| index < OF_CALLS).map(SymbolId)
}

/// A register, an integer, or the name of memory.
fn value(value: &Value) -> Option<Operand> {
    match value {
        Value::Reg(r) => reg(*r).map(Operand::Reg),
        Value::Imm(n) => Some(Operand::Imm(i128::from(*n))),
        Value::Symbol(index, 0) => symbol(*index).map(Operand::Address),
        Value::Symbol(..) | Value::Single(_) | Value::Double(_) | Value::Special(_) | Value::Sink => None,
    }
}

/// The value of an operand that may be missing. None if it stands and litmus texts cannot say it.
fn maybe(of: Option<&Value>) -> Option<Option<Operand>> {
    of.map_or(Some(None), |of| value(of).map(Some))
}

/// The register of a list of one.
fn register_of(list: &operand::List) -> Option<Reg> {
    list.items.first().and_then(element)
}

fn values(of: &[Value]) -> Option<Vec<Operand>> {
    of.iter().map(value).collect()
}

fn elements(of: &[Value]) -> Option<Vec<Reg>> {
    of.iter().map(element).collect()
}

fn address(of: &operand::Address) -> Option<Address> {
    Some(Address { base: value(&of.base)?, offset: i32::try_from(of.offset).ok()? })
}

fn guard(of: &Pred) -> Option<Guard> {
    Some(Guard { reg: element(&of.value)?, negated: of.negated })
}

fn number<N: TryFrom<i64>>(of: moire_isa::operand::Number) -> Option<N> {
    N::try_from(of.0).ok()
}

fn scope(of: kinds::Scope) -> Scope {
    match of {
        kinds::Scope::Cta => Scope::Cta,
        kinds::Scope::Cluster => Scope::Cluster,
        kinds::Scope::Gpu => Scope::Gpu,
        kinds::Scope::Sys => Scope::Sys,
    }
}

/// Local memory, constants and parameters have no place in a litmus text.
fn space(of: kinds::Space) -> Option<Space> {
    match of {
        kinds::Space::Generic => Some(Space::Generic),
        kinds::Space::Global => Some(Space::Global),
        kinds::Space::SharedCta => Some(Space::SharedCta),
        kinds::Space::SharedCluster => Some(Space::SharedCluster),
        kinds::Space::Local | kinds::Space::Const | kinds::Space::Param => None,
    }
}

/// The type of an element. None for the halves `.bf16`, with which litmus texts do not compute.
pub(super) fn ty(of: kinds::Ty) -> Option<Ty> {
    use kinds::Ty as T;
    Some(match of {
        T::B8 | T::B16 | T::B32 | T::B64 | T::B128 => Ty::B(u8::try_from(of.bits()).ok()?),
        T::U8 | T::U16 | T::U32 | T::U64 => Ty::U(u8::try_from(of.bits()).ok()?),
        T::S8 | T::S16 | T::S32 | T::S64 => Ty::S(u8::try_from(of.bits()).ok()?),
        T::F16 | T::F32 | T::F64 => Ty::F(u8::try_from(of.bits()).ok()?),
        T::F16x2 => Ty::F16x2,
        T::Bf16x2 => Ty::Bf16x2,
        T::Bf16 => return None,
    })
}

fn update(of: RedOp) -> AtomOp {
    match of {
        RedOp::Add => AtomOp::Add,
        RedOp::And => AtomOp::And,
        RedOp::Or => AtomOp::Or,
        RedOp::Xor => AtomOp::Xor,
        RedOp::Min => AtomOp::Min,
        RedOp::Max => AtomOp::Max,
        RedOp::Inc => AtomOp::Inc,
        RedOp::Dec => AtomOp::Dec,
    }
}
