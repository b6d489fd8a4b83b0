//! Every final state of a program, how many executions end in it, and which models allow it.
//!
//! Contract: a state is what the conditions of the program name, or, where it has none, every register that is read into
//! and all memory. A model that does not answer (it abstains, or a limit is hit) has a reason instead of a column.

use moire_cat::Model;
use moire_execution::leaf::{Asked, FinalState, asked, instances, observed_registers};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_program::ir::{Content, Instr, ObjectId, Op, Operand, Program};
use moire_program::words::many;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The shipped models beside which a model is shown.
pub const BESIDE: [&str; 4] = ["sc", "ptx-6.0", "ptx-7.5", "ptx"];
/// Elements of an array that are shown.
const SHOWN_ELEMENTS: usize = 16;
/// Bytes of an element of memory that no access names.
const WORD_BYTES: u32 = 4;

/// The final states of one program.
pub struct States<'a> {
    /// Specifications of the models that answered.
    models: Vec<&'a str>,
    /// Numbers of executions by state, one for each of the models.
    rows: BTreeMap<Vec<(String, String)>, Vec<u64>>,
    /// The models that did not answer, with the reasons.
    silent: Vec<(&'a str, String)>,
    /// The first model answered.
    complete: bool,
}

impl<'a> States<'a> {
    /// Explores a program under each of the models.
    pub fn of(program: &Program, models: &'a [(String, Model)], limits: &Limits) -> Self {
        let shown = shown_of(program);
        let mut out =
            States { models: Vec::new(), rows: BTreeMap::new(), silent: Vec::new(), complete: false };
        for (n, (name, model)) in models.iter().enumerate() {
            match counts(program, model, limits, &shown) {
                Ok(counts) => {
                    let column = out.models.len();
                    out.models.push(name);
                    out.complete |= n == 0;
                    for (state, count) in counts {
                        let row = out.rows.entry(state).or_default();
                        row.resize(column, 0);
                        row.push(count);
                    }
                }
                Err(reason) => out.silent.push((name, reason)),
            }
        }
        let columns = out.models.len();
        out.rows.values_mut().for_each(|row| row.resize(columns, 0));
        out
    }

    /// Whether the first model answered.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// A table: a line for each state.
    pub fn text(&self, name: &str) -> String {
        let mut out = format!("{name}: {}\n", many(self.rows.len(), "final state"));
        let width = |n: usize| self.models[n].len().max(6);
        if !self.models.is_empty() {
            out.push(' ');
            (0..self.models.len()).for_each(|n| out += &format!(" {:>1$}", self.models[n], width(n)));
            out.push_str("   executions that end in it, by model\n");
        }
        for (state, counts) in &self.rows {
            out.push(' ');
            for (n, count) in counts.iter().enumerate() {
                let count = if *count == 0 { "-".to_owned() } else { count.to_string() };
                out += &format!(" {count:>0$}", width(n));
            }
            let words: Vec<String> = state.iter().map(|(what, value)| format!("{what} = {value}")).collect();
            out += &format!("   {}\n", words.join(", "));
        }
        for (model, reason) in &self.silent {
            out += &format!("  {model} does not answer: {reason}\n");
        }
        out
    }

    /// The same for machines.
    pub fn json(&self, name: &str) -> Value {
        let state = |(state, counts): (&Vec<(String, String)>, &Vec<u64>)| {
            let values: BTreeMap<&str, &str> = state.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let executions: BTreeMap<&str, u64> =
                self.models.iter().copied().zip(counts.iter().copied()).collect();
            json!({"values": values, "executions": executions})
        };
        let silent: BTreeMap<&str, &str> = self.silent.iter().map(|(m, why)| (*m, why.as_str())).collect();
        json!({
            "version": 1, "file": name, "models": self.models, "silent": silent,
            "states": self.rows.iter().map(state).collect::<Vec<_>>(),
        })
    }
}

/// What of a final state is shown.
fn shown_of(program: &Program) -> Asked {
    let named = asked(program);
    if named != Asked::default() {
        return named;
    }
    Asked {
        registers: observed_registers(program).into_iter().collect(),
        objects: (0..program.objects.len()).map(ObjectId::at).collect(),
    }
}

/// The number of complete executions by final state, or why there is none.
fn counts(
    program: &Program,
    model: &Model,
    limits: &Limits,
    shown: &Asked,
) -> Result<BTreeMap<Vec<(String, String)>, u64>, String> {
    let mut out: BTreeMap<Vec<(String, String)>, u64> = BTreeMap::new();
    let summary = explore(program, model, &[], limits, &mut |leaf: &mut dyn LeafView| {
        // The orders of overlapping writes can leave one execution with several states, of which some look the same here.
        let mut here: Vec<Vec<(String, String)>> =
            leaf.states().iter().map(|state| words(program, state, shown)).collect();
        here.sort_unstable();
        here.dedup();
        for state in here {
            *out.entry(state).or_default() += 1;
        }
        ControlFlow::Continue(())
    });
    match summary {
        Ok(summary) => match summary.bounded {
            None => Ok(out),
            Some(bound) => Err(format!("bounded({bound})")),
        },
        Err(abstain) => Err(abstain.to_string()),
    }
}

/// Registers and objects of a state, each with its value.
fn words(program: &Program, state: &FinalState, shown: &Asked) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (t, r) in &shown.registers {
        let thread = &program.threads[t.index()];
        let name = format!("{}:{}", thread.name, thread.regs[r.index()].name);
        out.push((name, state.regs[t.index()][r.index()].to_string()));
    }
    for (instance, content) in instances(program).iter().zip(&state.memory) {
        if !shown.objects.contains(&instance.object) {
            continue;
        }
        let owner = instance.owner.map_or(String::new(), |t| format!("{}:", program.threads[t.index()].name));
        let object = &program.objects[instance.object.index()];
        let value = elements(content, object.bytes, width(program, instance.object));
        out.push((format!("{owner}{}", object.name), value));
    }
    out
}

/// The bytes of the elements of an object: those of the narrowest access that names it.
fn width(program: &Program, object: ObjectId) -> u32 {
    let of = |instr: &Instr| {
        let (Op::Load { ty, addr, .. } | Op::Store { ty, addr, .. } | Op::Rmw { ty, addr, .. }) = &instr.op
        else {
            return None;
        };
        let Operand::Address(symbol) = addr.base else { return None };
        (program.symbols[symbol.index()].object == object).then(|| ty.bytes())
    };
    let all = program.threads.iter().flat_map(|t| &t.body);
    all.filter_map(of).min().unwrap_or_else(|| program.objects[object.index()].bytes.min(WORD_BYTES))
}

/// A number, or the first elements of an array in braces.
fn elements(content: &Content, bytes: u32, width: u32) -> String {
    if bytes <= width {
        return content.value(0, bytes).to_string();
    }
    let shown = (0..bytes / width).take(SHOWN_ELEMENTS).map(|i| content.value(i * width, width).to_string());
    let rest = if (bytes / width) as usize > SHOWN_ELEMENTS { ", .." } else { "" };
    format!("{{{}{rest}}}", shown.collect::<Vec<_>>().join(", "))
}
