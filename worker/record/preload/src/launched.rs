//! A launch, from the arguments of the driver's functions to what is written.

use crate::hooks::{Config, NodeParams};
use crate::state::{Handle, Kernel, State};
use moire_record::{Encode, Field, Launch, Map, Param, Pointer, memory};
use std::collections::BTreeMap;

/// Attributes of a launch, by their numbers in `CUlaunchAttributeID`.
const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;
const PROGRAMMATIC: u32 = 6;
/// An attribute: its number, then from byte 8 on its value.
const ATTRIBUTE: usize = 72;
/// Most attributes of one launch.
const ATTRIBUTES: u32 = 64;
/// The size of a tensor map.
const MAP: usize = 128;
/// Attributes of a function: the cluster that it needs, along each axis.
const CLUSTER_NEEDED: [i32; 3] = [10, 11, 12];

/// How a kernel is launched, without its parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) kernel: Handle,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) attributes: Vec<String>,
    pub(crate) graph: bool,
}

impl Shape {
    /// The shape that a configuration says.
    pub(crate) fn of(config: usize, kernel: Handle) -> Option<Shape> {
        let head: [u32; Config::WORDS] = memory::words(config)?;
        let mut out = Shape {
            kernel,
            grid: [head[0], head[1], head[2]],
            block: [head[3], head[4], head[5]],
            shared: head[6],
            ..Shape::default()
        };
        let [count] = memory::words(config + Config::COUNT)?;
        let list = memory::address(config + Config::LIST)?;
        for n in 0..count.min(ATTRIBUTES) {
            let at = list.checked_add(ATTRIBUTE * usize::try_from(n).ok()?)?;
            let [which] = memory::words(at)?;
            out.attribute(which, memory::words(at + 8)?);
        }
        Some(out)
    }

    /// The shape of a node, and where its parameters are.
    pub(crate) fn of_node(at: usize, kern: bool) -> Option<(Shape, usize, usize)> {
        let head: [u32; 7] = memory::words(at + NodeParams::GRID)?;
        let mut kernel = memory::address(at)?;
        if kernel == 0 && kern {
            kernel = memory::address(at + NodeParams::KERNEL)?;
        }
        let shape = Shape {
            kernel,
            grid: [head[0], head[1], head[2]],
            block: [head[3], head[4], head[5]],
            shared: head[6],
            graph: true,
            ..Shape::default()
        };
        Some((shape, memory::address(at + NodeParams::PARAMS)?, memory::address(at + NodeParams::EXTRA)?))
    }

    fn attribute(&mut self, which: u32, value: [u32; 3]) {
        match which {
            CLUSTER => self.cluster = Some(value),
            COOPERATIVE if value[0] != 0 => self.attributes.push("cooperative".into()),
            PROGRAMMATIC if value[0] != 0 => self.attributes.push("programmatic".into()),
            COOPERATIVE | PROGRAMMATIC => {}
            other => self.attributes.push(format!("launch {other}")),
        }
    }
}

/// Sets an attribute of a node that is not yet launched.
pub(crate) fn node_attribute(launch: &mut Launch, which: u32, value: [u32; 3]) {
    let mut shape = Shape { cluster: launch.cluster, ..Shape::default() };
    shape.attribute(which, value);
    launch.cluster = shape.cluster;
    launch.attributes.extend(shape.attributes);
    launch.attributes.dedup();
}

impl State {
    /// What is written of a launch. None if the kernel is not known, which is noted.
    pub(crate) fn launch(&mut self, shape: Shape, params: usize, extra: usize) -> Option<Launch> {
        let Some(kernel) = self.known(shape.kernel).filter(|k| !k.module.file.is_empty()) else {
            self.note("a kernel was launched whose module was not seen or not read");
            return None;
        };
        let mut out = Launch {
            module: kernel.module.file.clone(),
            entry: kernel.name.clone(),
            grid: shape.grid,
            block: shape.block,
            cluster: shape.cluster.or_else(|| needed(&kernel)),
            shared: shape.shared,
            attributes: shape.attributes,
            graph: shape.graph,
            ..Launch::default()
        };
        out.attributes
            .extend(kernel.attributes.iter().map(|(which, value)| format!("function {which} {value}")));
        match kernel.module.layouts.get(&kernel.name) {
            Some(fields) => out.params = self.params(fields, params, extra),
            None => out.missing = Some("the module does not say how large they are".into()),
        }
        if out.params.iter().any(|p| p.bytes.is_none()) {
            out.missing = Some("some could not be read where the program says they are".into());
        }
        if let Some(why) = &out.missing {
            self.note(&format!("{}: parameters of a launch were not recorded: {why}", kernel.name));
        }
        Some(out)
    }

    fn params(&self, fields: &[Field], params: usize, extra: usize) -> Vec<Param> {
        let buffer = (params == 0).then(|| packed(extra)).flatten();
        let read = |(n, field): (usize, &Field)| {
            let (at, size) = (usize::try_from(field.at).ok()?, usize::try_from(field.size).ok()?);
            match &buffer {
                Some(all) => all.get(at..at + size).map(<[u8]>::to_vec),
                None if params == 0 => None,
                None => memory::bytes(memory::address(params.checked_add(8 * n)?)?, size),
            }
        };
        let read: Vec<Option<Vec<u8>>> = fields.iter().enumerate().map(read).collect();
        let mut found = Found::default();
        for (n, (field, bytes)) in fields.iter().zip(&read).enumerate() {
            self.find(n, field, bytes.as_deref().unwrap_or_default(), &mut found);
        }
        found.written(fields, read)
    }

    /// Finds the tensor maps and the pointers in a parameter.
    fn find(&self, n: usize, field: &Field, bytes: &[u8], found: &mut Found) {
        let start = usize::try_from(field.at).unwrap_or(0);
        let mut at = start.next_multiple_of(8) - start;
        while let Some(word) = bytes.get(at..at + 8) {
            let map = bytes.get(at..at + MAP).and_then(|m| self.maps.get(m));
            if let Some(encode) = map.filter(|_| (start + at) % 64 == 0) {
                let over = self.allocation(encode.address);
                found.maps.push((n, at, encode.clone(), over));
                at += MAP;
                continue;
            }
            let value = word.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
            if let Some(memory) = self.allocation(value) {
                found.pointers.push((n, at, value, memory));
            }
            at += 8;
        }
    }
}

/// The pointers and the tensor maps of a launch, by parameter and byte, with the allocation.
#[derive(Default)]
struct Found {
    pointers: Vec<(usize, usize, u64, u64)>,
    maps: Vec<(usize, usize, Encode, Option<u64>)>,
}

impl Found {
    /// Numbers the allocations and cuts what points into them out of the bytes.
    fn written(self, fields: &[Field], read: Vec<Option<Vec<u8>>>) -> Vec<Param> {
        let mut lowest: BTreeMap<u64, u64> = BTreeMap::new();
        let mut numbers: BTreeMap<u64, u16> = BTreeMap::new();
        let own = self.maps.iter().filter_map(|m| Some((m.2.address, m.3?)));
        for (value, memory) in self.pointers.iter().map(|p| (p.2, p.3)).chain(own.clone()) {
            lowest.entry(memory).and_modify(|low| *low = value.min(*low)).or_insert(value);
        }
        let whole = |p: &&(usize, usize, u64, u64)| fields[p.0].size == 8;
        for (n, _, _, memory) in self.pointers.iter().filter(whole) {
            numbers.entry(*memory).or_insert(u16::try_from(*n).unwrap_or(u16::MAX));
        }
        for memory in self.pointers.iter().map(|p| p.3).chain(own.map(|m| m.1)) {
            let next = u16::try_from(fields.len() + numbers.len()).unwrap_or(u16::MAX);
            numbers.entry(memory).or_insert(next);
        }
        let pointer = |at: usize, value: u64, memory: u64| Pointer {
            at: u32::try_from(at).unwrap_or(0),
            memory: numbers[&memory],
            offset: value - lowest[&memory],
        };
        let mut out: Vec<Param> = Vec::new();
        for (n, (field, mut bytes)) in fields.iter().zip(read).enumerate() {
            let mut param = Param { size: field.size, ..Param::default() };
            let all = bytes.as_deref_mut().unwrap_or_default();
            for (_, at, value, memory) in self.pointers.iter().filter(|p| p.0 == n) {
                all[*at..at + 8].fill(0);
                param.pointers.push(pointer(*at, *value, *memory));
            }
            for (_, at, encode, over) in self.maps.iter().filter(|m| m.0 == n) {
                all[*at..at + MAP].fill(0);
                let over = over.map(|memory| pointer(0, encode.address, memory));
                let at = u32::try_from(*at).unwrap_or(0);
                param.maps.push(Map { at, encode: Some(encode.clone()), over });
            }
            param.bytes = bytes.map(|b| Param::hex(&b));
            out.push(param);
        }
        out
    }
}

/// The cluster that the function itself needs.
fn needed(kernel: &Kernel) -> Option<[u32; 3]> {
    let axis = |which| kernel.attributes.get(&which).and_then(|n| u32::try_from(*n).ok()).filter(|n| *n > 0);
    let all = CLUSTER_NEEDED.map(axis);
    all[0].map(|x| [x, all[1].unwrap_or(1), all[2].unwrap_or(1)])
}

/// The buffer with all parameters that a list of pairs names: 1 is before its address, 2 before that of its size, 0 ends it.
fn packed(extra: usize) -> Option<Vec<u8>> {
    let (mut start, mut size) = (None, None);
    for pair in 0..4 {
        let at = extra.checked_add(16 * pair)?;
        match memory::word(at)? {
            1 => start = memory::address(at + 8),
            2 => size = memory::address(memory::address(at + 8)?),
            _ => break,
        }
    }
    memory::bytes(start?, size.filter(|n| *n <= 1 << 16)?)
}
