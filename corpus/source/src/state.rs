//! Final states of a program, in a form that a source program and its compiled threads have in common.

use crate::lower::Lowered;
use crate::syntax::{Source, Space};
use moire_program::ir::{Content, ThreadId, Value};

/// A final state: what a person who runs the threads can see.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// The registers of all threads of the source, in their order.
    pub registers: Vec<Value>,
    /// The content of each global object of the source, in their order. Shared memory ends with its CTA: nobody sees what it holds then.
    pub memory: Vec<Content>,
}

impl State {
    /// The state in words, such as `P1:r0=1 [x]=2`.
    pub fn shown(&self, source: &Source) -> String {
        let mut out = Vec::new();
        let mut values = self.registers.iter();
        for (t, thread) in source.threads.iter().enumerate() {
            for (register, value) in thread.registers.iter().zip(&mut values) {
                out.push(format!("P{t}:{}={value}", register.name));
            }
        }
        let stays = source.objects.iter().filter(|o| o.space != Space::Shared);
        out.extend(stays.zip(&self.memory).map(|(o, content)| format!("[{}]={}", o.name, number(content))));
        out.join(" ")
    }
}

/// The number that a content stands for.
pub(crate) fn number(content: &Content) -> Value {
    content.value(0, 16)
}

/// The number of CTAs in which the program has threads.
fn ctas(source: &Source) -> usize {
    let place = |t: usize| &source.threads[t].place;
    (0..source.threads.len()).filter(|t| (0..*t).all(|s| !place(s).same_cta(place(*t)))).count()
}

/// The memory of the global objects of the source, taken from the memory of a program whose first objects are those of the source: a shared
/// one has a copy for each of `owners` CTAs.
fn memory(source: &Source, owners: usize, all: &[Content]) -> Vec<Content> {
    let (mut out, mut at) = (Vec::new(), 0);
    for object in &source.objects {
        let shared = object.space == Space::Shared;
        out.extend(all.get(at).filter(|_| !shared).cloned());
        at += if shared { owners } else { 1 };
    }
    out
}

impl Lowered {
    /// The state at the end of an execution of the lowered program: the registers of each thread, and all memory. `None`:
    /// the execution contradicts its choices, so it is none of the source.
    pub fn state(&self, source: &Source, registers: &[Vec<Value>], memory: &[Content]) -> Option<State> {
        let value = |t: ThreadId, r: moire_program::ir::Reg| {
            registers.get(t.index()).and_then(|t| t.get(r.index())).copied().unwrap_or_default()
        };
        if !self.admits(&value) {
            return None;
        }
        let of = |(t, thread): (usize, &crate::Thread)| {
            let own = registers.get(t).map_or(&[][..], Vec::as_slice);
            own.iter().take(thread.registers.len()).copied().collect::<Vec<_>>()
        };
        let owners = self.program.threads.len() - source.threads.len() + ctas(source);
        Some(State {
            registers: source.threads.iter().enumerate().flat_map(of).collect(),
            memory: self::memory(source, owners, memory),
        })
    }
}
