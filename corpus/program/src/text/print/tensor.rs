//! Printing `tcgen05.*`; the tables of words that reader and printer share.

use super::{Printer, space, type_name, word};
use crate::ir::*;

/// Shapes of loads and stores.
pub(crate) const MOVE_SHAPES: [(&str, MoveShape); 5] = [
    ("32x32b", MoveShape::L32x32b),
    ("16x64b", MoveShape::L16x64b),
    ("16x128b", MoveShape::L16x128b),
    ("16x256b", MoveShape::L16x256b),
    ("16x32bx2", MoveShape::L16x32bx2),
];

/// Shapes of `cp` with the warps that receive them.
pub(crate) const COPY_SHAPES: [(&str, CopyShape); 6] = [
    ("128x256b", CopyShape::S128x256b),
    ("4x256b", CopyShape::S4x256b),
    ("128x128b", CopyShape::S128x128b),
    ("64x128b.warpx2::02_13", CopyShape::S64x128bPairs02And13),
    ("64x128b.warpx2::01_23", CopyShape::S64x128bPairs01And23),
    ("32x128b.warpx4", CopyShape::S32x128bAllWarps),
];

/// Kinds of products.
pub(crate) const MMA_KINDS: [(&str, MmaKind); 8] = [
    ("kind::f16", MmaKind::F16),
    ("kind::tf32", MmaKind::Tf32),
    ("kind::f8f6f4", MmaKind::F8f6f4),
    ("kind::i8", MmaKind::I8),
    ("kind::ti16", MmaKind::Ti16),
    ("kind::mxf8f6f4", MmaKind::Mxf8f6f4),
    ("kind::mxf4", MmaKind::Mxf4),
    ("kind::mxf4nvf4", MmaKind::Mxf4nvf4),
];

/// Sizes of scale vectors.
pub(crate) const SCALE_SIZES: [(&str, ScaleSize); 5] = [
    ("block16", ScaleSize::Block16),
    ("block32", ScaleSize::Block32),
    ("scale_vec::1X", ScaleSize::Times1),
    ("scale_vec::2X", ScaleSize::Times2),
    ("scale_vec::4X", ScaleSize::Times4),
];

/// Uses of a collector buffer.
pub(crate) const COLLECTOR_USES: [(&str, CollectorUse); 4] = [
    ("fill", CollectorUse::Fill),
    ("use", CollectorUse::Use),
    ("lastuse", CollectorUse::LastUse),
    ("discard", CollectorUse::Discard),
];

/// `.cta_group::1`, `.cta_group::2`
pub(super) fn group(group: CtaGroup) -> String {
    format!(".cta_group::{}", group.ctas())
}

impl Printer<'_> {
    pub(super) fn tensor_address(&self, address: &Address) -> String {
        let base = self.operand(address.base);
        let (lane, column) = (address.offset >> 16, address.offset & 0xffff);
        match address.offset {
            0 => format!("[{base}]"),
            n if !(0..128).contains(&lane) => format!("[{base}+{n}]"),
            _ if lane == 0 => format!("[{base}+{column}]"),
            _ if column == 0 => format!("[{base}+lane {lane}]"),
            _ => format!("[{base}+lane {lane}+{column}]"),
        }
    }

    /// `name(x+offset, bytes)`
    pub(super) fn bytes_of(&self, name: &str, addr: &Address, bytes: u32) -> String {
        let base = self.operand(addr.base);
        let offset = if addr.offset == 0 { String::new() } else { format!("+{}", addr.offset) };
        format!("{name}({base}{offset}, {bytes})")
    }

    pub(super) fn descriptor(&self, descriptor: &Descriptor) -> String {
        match descriptor {
            Descriptor::Packed(operand) => self.operand(*operand),
            Descriptor::Range { addr, bytes } => self.bytes_of("desc", addr, *bytes),
        }
    }

    pub(super) fn braces(&self, regs: &[Reg]) -> String {
        let all: Vec<&str> = regs.iter().map(|r| self.reg(*r)).collect();
        format!("{{{}}}", all.join(", "))
    }

    pub(super) fn multicast_words(multicast: Option<Multicast>) -> &'static str {
        match multicast {
            None => "",
            Some(Multicast { wide: false, .. }) => ".multicast::cluster",
            Some(Multicast { wide: true, .. }) => ".multicast::cluster::32b",
        }
    }

    pub(super) fn enable_input(&self, input: EnableInput) -> String {
        match input {
            EnableInput::Always(on) => u8::from(on).to_string(),
            EnableInput::When(guard) => {
                format!("{}{}", if guard.negated { "!" } else { "" }, self.reg(guard.reg))
            }
        }
    }

    /// `, operand` where there is one.
    pub(super) fn more(&self, operand: Option<Operand>) -> String {
        operand.map_or(String::new(), |o| format!(", {}", self.operand(o)))
    }

    pub(super) fn tcgen05(&self, op: &Tcgen05) -> String {
        let only = |exclusive: bool| if exclusive { ".exclusive" } else { "" };
        let name = op.name();
        match op {
            Tcgen05::Alloc { exclusive, group: g, space: s, dst, columns } => format!(
                "{name}{}{}.sync.aligned{}.b32 {}, {}",
                only(*exclusive),
                group(*g),
                space(*s),
                self.address(dst),
                self.operand(*columns)
            ),
            Tcgen05::Dealloc { exclusive, group: g, addr, columns } => format!(
                "{name}{}{}.sync.aligned.b32 {}, {}",
                only(*exclusive),
                group(*g),
                self.operand(*addr),
                self.operand(*columns)
            ),
            Tcgen05::Relinquish { group: g } => format!("{name}{}.sync.aligned", group(*g)),
            Tcgen05::WaitLoad | Tcgen05::WaitStore => format!("{name}.sync.aligned"),
            Tcgen05::FenceBefore | Tcgen05::FenceAfter => name.to_owned(),
            Tcgen05::Load(load) => self.tensor_load(load),
            Tcgen05::Store(store) => {
                let unpack = if store.unpack { ".unpack::16b" } else { "" };
                let split = store.split.map_or(String::new(), |n| format!(", {n}"));
                format!(
                    "{name}.sync.aligned.{}.x{}{unpack}.b32 {}{split}, {}",
                    word(&MOVE_SHAPES, &store.shape),
                    store.times,
                    self.tensor_address(&store.addr),
                    self.braces(&store.src)
                )
            }
            Tcgen05::Copy { group: g, shape, widen, dst, src } => {
                let widen = match widen {
                    None => "",
                    Some(Widening::Six) => ".b8x16.b6x16_p32",
                    Some(Widening::Four) => ".b8x16.b4x16_p64",
                };
                let shape = word(&COPY_SHAPES, shape);
                let (dst, src) = (self.tensor_address(dst), self.descriptor(src));
                format!("{name}{}.{shape}{widen} {dst}, {src}", group(*g))
            }
            Tcgen05::Shift { group: g, addr } => {
                format!("{name}{}.down {}", group(*g), self.tensor_address(addr))
            }
            Tcgen05::Mma(mma) => self.product(mma),
            Tcgen05::Commit(commit) => {
                let reads = if commit.reads_only { ".sync_restrict::shared::read::mma::a" } else { "" };
                format!(
                    "{name}{}.mbarrier::arrive::one{reads}{}{}.b64 {}{}",
                    group(commit.group),
                    space(commit.space),
                    Self::multicast_words(commit.multicast),
                    self.address(&commit.addr),
                    self.more(commit.multicast.map(|m| m.mask))
                )
            }
        }
    }

    fn tensor_load(&self, load: &TensorLoad) -> String {
        let pack = if load.pack { ".pack::16b" } else { "" };
        let split = load.split.map_or(String::new(), |n| format!(", {n}"));
        let (red, ty, reduced) = match &load.reduce {
            None => ("", ".b32".to_owned(), String::new()),
            Some(r) => {
                let op = if r.max { ".max" } else { ".min" };
                let (abs, nan) = (if r.abs { ".abs" } else { "" }, if r.nan { ".NaN" } else { "" });
                (".red", format!("{op}{abs}{nan}{}", type_name(r.ty)), format!(", {}", self.reg(r.dst)))
            }
        };
        format!(
            "tcgen05.ld{red}.sync.aligned.{}.x{}{pack}{ty} {}{reduced}, {}{split}",
            word(&MOVE_SHAPES, &load.shape),
            load.times,
            self.braces(&load.dst),
            self.tensor_address(&load.addr)
        )
    }

    fn product(&self, mma: &Mma) -> String {
        let mut words = String::from("tcgen05.mma");
        words.push_str(if mma.stationary { ".ws" } else { "" });
        words.push_str(if mma.metadata.is_some() { ".sp" } else { "" });
        words.push_str(&group(mma.group));
        words.push_str(&format!(".{}", word(&MMA_KINDS, &mma.kind)));
        if let Some(scales) = &mma.scales {
            words.push_str(".block_scale");
            if scales.size != ScaleSize::Default {
                words.push_str(&format!(".{}", word(&SCALE_SIZES, &scales.size)));
            }
        }
        words.push_str(if mma.ashift { ".ashift" } else { "" });
        if let Some(usage) = &mma.collector_a {
            words.push_str(&format!(".collector::a::{}", word(&COLLECTOR_USES, usage)));
        }
        if let Some(b) = &mma.collector_b {
            let buffer = b.buffer.map_or(String::new(), |n| n.to_string());
            words.push_str(&format!(".collector::b{buffer}::{}", word(&COLLECTOR_USES, &b.usage)));
        }
        let mut operands = vec![self.tensor_address(&mma.d)];
        operands.push(match &mma.a {
            Factor::Shared(matrix) => self.descriptor(matrix),
            Factor::Tensor(addr) => self.tensor_address(addr),
        });
        operands.push(self.descriptor(&mma.b));
        operands.extend(mma.metadata.map(|a| self.tensor_address(&a)));
        operands.push(match mma.shape {
            ProductShape::Packed(operand) => self.operand(operand),
            ProductShape::Tile { m, n } => format!("idesc({m}, {n})"),
        });
        operands.extend(mma.scales.iter().flat_map(|s| [s.a, s.b]).map(|a| self.tensor_address(&a)));
        if !mma.lanes_off.is_empty() {
            operands.push(self.braces(&mma.lanes_off));
        }
        operands.push(self.enable_input(mma.input));
        operands.extend(mma.scale_input.map(|n| n.to_string()));
        operands.extend(mma.zero_columns.map(|o| self.operand(o)));
        format!("{words} {}", operands.join(", "))
    }
}
