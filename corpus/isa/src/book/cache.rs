//! Caches: prefetches, priorities, policies.

use super::copy::{boxed, offsets_of, ragged};
use crate::entry::refuse;
use crate::kind::On::{Any, Only};
use crate::kinds::*;
use crate::operand::*;
use crate::slot::Then;

instructions! {
    #[doc = "Brings a line nearer."]
    PrefetchLine = "prefetch", section "prefetch-prefetchu", since (70, Any);
    slots { keep space: PrefetchSpace; speed to: PrefetchTo; speed valid: ValidAddr; }
    operands { known addr: Address = space.into(); }
    rules {
        valid.is() != (to == PrefetchTo::L1b32) => refuse("`.L1::32B` goes with .valid_addr");
        matches!(space, PrefetchSpace::Const | PrefetchSpace::Param) && to != PrefetchTo::Tensormap
            => refuse("lines of .const and .param hold tensor maps");
        matches!(space, PrefetchSpace::Global | PrefetchSpace::Local) && to == PrefetchTo::Tensormap
            => refuse("`.tensormap` goes with .const, .param, or no space");
        space == PrefetchSpace::Local && !matches!(to, PrefetchTo::L1 | PrefetchTo::L2)
            => refuse("a priority goes with global memory");
    }

    #[doc = "Brings a line of the uniform cache nearer."]
    Prefetchu = "prefetchu", section "prefetch-prefetchu", since (70, Any);
    ends ["L1"]
    slots {}
    operands { known addr: Address = Space::Generic; }
    rules { addr.strays(Space::Global) => refuse("the address is generic"); }

    #[doc = "Gives a line its usual priority."]
    ApplyPriority = "applypriority", section "applypriority", since (74, Any);
    ends ["L2::evict_normal"]
    slots { keep space: GlobalSpace; }
    operands { known addr: Address = space.into(); known bytes: Number = (); }
    rules { bytes.0 != 128 => refuse("a line has 128 bytes"); }

    #[doc = "Gives bytes their usual priority, asynchronously."]
    ApplyBulk = "applypriority.async.bulk", section "applypriority", since (94, Only(&[107]));
    begins ["global", "bulk_group", "L2::evict_normal"]
    slots {} operands { known addr: Address = Space::Global; known bytes: Value = Width::Int(32); } rules {
        ragged(bytes) => refuse("sizes are multiples of 16");}

    #[doc = "Gives a box of a tensor its usual priority, asynchronously."]
    ApplyTensor = "applypriority.async.bulk.tensor", section "applypriority", since (94, Only(&[107]));
    ends ["global", "bulk_group", "L2::evict_normal"]
    slots { keep dims: Dims; keep mode: Mode; }
    operands {
        known tensor: Tensor = boxed(dims, mode, NewAddress::No, None);
        known offsets: Option<List> = (offsets_of(dims, mode) > 0, (offsets_of(dims, mode), Width::Int(16),
            Must));
    }
    rules {
        matches!(mode, Mode::Im2col | Mode::Im2colW | Mode::Im2colW128) && matches!(dims, Dims::D1 | Dims::D2)
            => refuse("im2col is of .3d to .5d");
    }

    #[doc = "Drops a line without writing it back: what it holds is undefined."]
    Discard = "discard", section "discard", since (74, Any);
    ends ["L2"]
    slots { keep space: GlobalSpace; }
    operands { known addr: Address = space.into(); known bytes: Number = (); }
    rules { bytes.0 != 128 => refuse("a line has 128 bytes"); }

    #[doc = "Makes a policy for a fraction of accesses."]
    PolicyFraction = "createpolicy.fractional", section "createpolicy", since (74, Any);
    ends ["b64"]
    slots { speed priority: Then<Primary, Secondary>; }
    operands {
        write dst: Register = Width::Int(64);
        hint fraction: Maybe<Value> = (0, Width::Of { bits: 32, float: true, untyped: false, wider: false });
    }
    rules {
        fraction.0.is_some_and(|f| !in_unit(f)) => refuse("the fraction is above 0 and at most 1");
    }

    #[doc = "Makes a policy for a range of addresses."]
    PolicyRange = "createpolicy.range", section "createpolicy", since (74, Any);
    ends ["b64"]
    slots { keep space: GlobalSpace; speed priority: Then<Primary, Secondary>; }
    operands {
        write dst: Register = Width::Int(64);
        known addr: Unified = space.into();
        known primary: Value = Width::Int(32);
        known total: Value = Width::Int(32);
    }
    rules {
        primary.imm().zip(total.imm()).is_some_and(|(primary, total)| !(0..=unsigned(total)).contains(&unsigned(primary)))
            => refuse("a part is not longer than the whole");
    }

    #[doc = "Makes a policy of an access property."]
    PolicyOf = "createpolicy.cvt", section "createpolicy", since (74, Any);
    begins ["L2"] ends ["b64"]
    slots {}
    operands { write dst: Register = Width::Int(64); hint property: Value = Width::Int(64); }
    rules {}
}

/// A number of 32 bits without a sign: `createpolicy.range.L2::evict_first.b64 %rd1, [%rd2], 64, -1` is a form.
fn unsigned(n: i64) -> i64 {
    n & 0xffff_ffff
}

/// Whether a number is above 0 and at most 1; a register may be.
fn in_unit(value: Value) -> bool {
    let inside = |n: f64| n > 0.0 && n <= 1.0;
    match value {
        Value::Single(bits) => inside(f64::from(f32::from_bits(bits))),
        Value::Double(bits) => inside(f64::from_bits(bits)),
        _ => true,
    }
}
