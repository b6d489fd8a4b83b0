//! Names and words of barriers and mbarriers.

use crate::kind::On::{Any, From as Sm, Only};

words! {
    /// How a thread arrives at an mbarrier.
    ArriveForm {
        Arrive = 0 "mbarrier.arrive";
        ArriveTx = 1 "mbarrier.arrive.expect_tx" @ (80, Sm(90));
        Drop = 2 "mbarrier.arrive_drop";
        DropTx = 3 "mbarrier.arrive_drop.expect_tx" @ (80, Sm(90));
    }
    /// What happens to the bytes that an mbarrier expects.
    TxForm { Expect = 0 "mbarrier.expect_tx"; Complete = 1 "mbarrier.complete_tx"; }
    /// How a thread asks for a phase.
    WaitForm {
        Test = 0 "mbarrier.test_wait";
        TestParity = 1 "mbarrier.test_wait.parity" @ (71, Any);
        Try = 2 "mbarrier.try_wait" @ (80, Sm(90));
        TryParity = 3 "mbarrier.try_wait.parity" @ (80, Sm(90));
    }
    /// `bar` is aligned without saying so.
    BarSyncForm {
        Bar = 0 "bar.sync", "bar.cta.sync" @ (78, Any);
        Barrier = 1 "barrier.sync", "barrier.cta.sync" @ (78, Any);
    }
    /// The same of an arrival.
    BarArriveForm {
        Bar = 0 "bar.arrive", "bar.cta.arrive" @ (78, Any);
        Barrier = 1 "barrier.arrive", "barrier.cta.arrive" @ (78, Any);
    }
    /// The same of a reduction.
    BarRedForm {
        Bar = 0 "bar.red", "bar.cta.red" @ (78, Any);
        Barrier = 1 "barrier.red", "barrier.cta.red" @ (78, Any);
    }
    /// Layout of an mbarrier.
    Layout { V0 = 0 "layout::v0" @ (93, Sm(90)); V1 = 1 "layout::v1" @ (93, Sm(90)); }
    /// Which phase of an mbarrier is asked for.
    PhaseType {
        Primary = 0 "phase_type::primary" @ (93, Sm(90));
        Conditional = 1 "phase_type::conditional" @ (93, Sm(90));
    }
    /// Many CTAs at once.
    Multicast { Mask16 = 0 "multicast::cluster", "multicast::cluster::16b" @ (94, Any); Mask32 = 1 "multicast::cluster::32b" @ (94, Only(&[107])); }
    /// Reduction of a barrier.
    BarOp { Popc = 0 "popc"; And = 1 "and"; Or = 2 "or"; }
    /// Type of that reduction.
    BarTy { U32 = 0 "u32"; Pred = 1 "pred"; }
}

flags! {
    NoComplete = "noComplete";
    Aligned = "aligned";
    Noinc = "noinc";
}

impl ArriveForm {
    /// Whether it expects bytes.
    #[must_use]
    pub fn tx(self) -> bool {
        matches!(self, ArriveForm::ArriveTx | ArriveForm::DropTx)
    }
}
impl WaitForm {
    /// Whether a parity is asked for, not a state.
    #[must_use]
    pub fn parity(self) -> bool {
        matches!(self, WaitForm::TestParity | WaitForm::TryParity)
    }
    /// Whether the thread may sleep.
    #[must_use]
    pub fn sleeps(self) -> bool {
        matches!(self, WaitForm::Try | WaitForm::TryParity)
    }
}
