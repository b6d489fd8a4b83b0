//! Branches, calls, and the ends of threads.

use crate::entry::refuse;
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;

instructions! {
    #[doc = "Jumps."]
    Bra = "bra", section "bra", since (70, Any);
    slots { speed uni: Uni; } operands { known target: Label = (); } rules {}

    #[doc = "Jumps to an entry of a table."]
    Brx = "brx.idx", section "brx-idx", since (70, Any);
    slots { speed uni: Uni; }
    operands { known index: Register = Width::Bits(32); known table: Label = (); }
    rules {}

    #[doc = "Calls a function."]
    Call = "call", section "call", since (70, Any);
    slots { speed uni: Uni; }
    operands {
        write results: Early<Args> = ("(", true, ());
        known callee: Callee = ();
        known args: Early<Args> = ("(", true, ());
        known prototype: Maybe<Label> = (0, ());
    }
    rules {
        matches!(callee, Callee::Register(_)) && prototype.0.is_none()
            => refuse("a call of a register names a prototype");
    }

    #[doc = "Returns."]
    Ret = "ret", section "ret", since (70, Any);
    slots { speed uni: Uni; } operands {} rules {}

    #[doc = "Ends the thread."]
    Exit = "exit", section "exit", since (70, Any);
    slots {} operands {} rules {}

    #[doc = "Ends the grid with an error."]
    Trap = "trap", section "trap", since (70, Any);
    slots {} operands {} rules {}

    #[doc = "Stops for a debugger."]
    Brkpt = "brkpt", section "brkpt", since (70, Any);
    slots {} operands {} rules {}

    #[doc = "Sleeps for about so many nanoseconds."]
    Nanosleep = "nanosleep", section "nanosleep", since (70, Any);
    ends ["u32"]
    slots {}
    operands { hint time: Value = Width::Of { bits: 32, float: false, untyped: false, wider: false }; }
    rules {}

    #[doc = "Counts an event for a profiler."]
    Pmevent = "pmevent", section "pmevent", since (70, Any);
    slots { speed mask: Mask; } operands { hint event: Number = (); }
    rules {
        !(0..if mask.is() { 65_536 } else { 16 }).contains(&event.0) => refuse("there is no such event");
    }

    #[doc = "Takes bytes of the stack."]
    Alloca = "alloca", section "alloca", since (73, Any);
    slots { keep ty: StackTy; }
    operands {
        write dst: Register = stack(ty);
        known bytes: Value = stack(ty);
        known align: Maybe<Number> = (0, ());
    }
    rules {
        align.0.is_some_and(|n| n.0 < 1 || n.0 & (n.0 - 1) != 0) => refuse("an alignment is a power of two");
    }

    #[doc = "Remembers the stack."]
    Stacksave = "stacksave", section "stacksave", since (73, Any);
    slots { keep ty: StackTy; } operands { write dst: Register = stack(ty); } rules {}

    #[doc = "Sets the stack back."]
    Stackrestore = "stackrestore", section "stackrestore", since (73, Any);
    slots { keep ty: StackTy; } operands { known a: Register = stack(ty); } rules {}

    #[doc = "Lets the next grid start, or waits for the one before."]
    GridDep = form: GridDepForm, section "griddepcontrol", since (80, Sm(90));
    slots {} operands {} rules {}

    #[doc = "Asks to take the place of a cluster that has not started."]
    ClusterTake = "clusterlaunchcontrol.try_cancel.async", section "clusterlaunchcontrol-try-cancel",
        since (86, Sm(100));
    ends ["b128"]
    slots { keep space: CtaSpace; keep done: Bytes; keep multicast: MulticastAll; }
    operands { known dst: Address = space.into(); known mbarrier: Address = space.into(); }
    rules {}

    #[doc = "Tells whether that was granted."]
    ClusterTaken = "clusterlaunchcontrol.query_cancel.is_canceled",
        section "clusterlaunchcontrol-query-cancel", since (86, Sm(100));
    ends ["pred", "b128"]
    slots {} operands { write dst: Register = Width::Bits(1); data a: Value = Width::Bits(128); } rules {}

    #[doc = "Tells a coordinate of the first CTA of the cluster that was taken, or all three."]
    ClusterFirst = form: FirstForm, section "clusterlaunchcontrol-query-cancel", since (86, Sm(100));
    ends ["b32", "b128"]
    slots { keep all: FourWord; }
    operands {
        write dst: List = (if all.is() { 4 } else { 1 }, Width::Bits(32), Never);
        data a: Value = Width::Bits(128);
    }
    rules { all.is() != (form == FirstForm::All) => refuse("`.v4` goes with all coordinates"); }
}

/// What a stack address fits.
fn stack(ty: StackTy) -> Width {
    Width::Int(if ty == StackTy::U32 { 32 } else { 64 })
}
