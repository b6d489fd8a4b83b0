//! Words of control.

words! {
    /// Size of a stack address.
    StackTy { U32 = 0 "u32"; U64 = 1 "u64"; }
}

flags! {
    Uni = "uni";
    Mask = "mask";
}

words! {
    /// Whether the next grid may start, or this one waits.
    GridDepForm { Launch = 0 "griddepcontrol.launch_dependents"; Wait = 1 "griddepcontrol.wait"; }
    /// Which coordinate.
    FirstForm {
        All = 0 "clusterlaunchcontrol.query_cancel.get_first_ctaid";
        X = 1 "clusterlaunchcontrol.query_cancel.get_first_ctaid::x";
        Y = 2 "clusterlaunchcontrol.query_cancel.get_first_ctaid::y";
        Z = 3 "clusterlaunchcontrol.query_cancel.get_first_ctaid::z";
    }
}

flags! {
    MulticastAll = "multicast::cluster::all";
    FourWord = "v4";
}
