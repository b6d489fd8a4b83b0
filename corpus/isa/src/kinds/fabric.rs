//! Words of accesses through the fabric.

use crate::kind::On::Any;

words! {
    /// What a submission is about.
    SubmitForm {
        All = 0 "fabric.submit"; Group = 1 "fabric.submit.commit_group" @ (95, Any);
        Fetching = 2 "fabric.submit.op_restrict::fetching";
    }
    /// What a wait is about.
    FabricWaitFor { Read = 0 "sync_restrict::read" @ (95, Any); Reads = 1 "sync_restrict::reads"; }
    /// Type of an update through the fabric.
    FabricTy {
        B32 = 0 "b32"; B64 = 1 "b64"; B128 = 2 "b128"; U32 = 3 "u32"; U64 = 4 "u64"; S32 = 5 "s32";
        S64 = 6 "s64"; F32 = 7 "f32"; F64 = 8 "f64";
        F16 = 9 "f16"; Bf16 = 10 "bf16"; F16x2 = 11 "f16x2"; Bf16x2 = 12 "bf16x2";
    }
}

flags! {
    Many = "multimem";
    Counted = "counted::bytes";
    AccF32 = "acc::f32";
}
