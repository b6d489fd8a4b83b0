//! What the people who keep a compiler need to see a claim about it: the program in their language, the command, what
//! comes out, and which end of it is wrong.
//!
//! The compiler is asked again where it is here. Where it is not, what it made is taken from the text of the claim.

use super::CRASH;
use super::abstention::Abstention;
use super::forbidden::{Forbidden, rule};
use moire_toolchain::{Failure, Version};

/// The parts of a claim about a compiler, in the compiler's words.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The program as a litmus test: who runs where, and what is asked.
    pub litmus: String,
    /// The compilers, each with what it compiles. The first thread is the first one's, the others the last one's.
    pub units: Vec<Unit>,
    /// The final state of what comes out that the program does not have; none where a race is claimed.
    pub end: Option<String>,
    /// Why the model of the program forbids it.
    pub forbidden: Forbidden,
    /// The specification of the model of the program.
    pub model: String,
}

/// A compiler and what it compiles.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// Its project and name, such as `LLVM llc`.
    pub compiler: &'static str,
    /// Its version, where it is here.
    pub version: Option<Version>,
    /// Its release, as the claim names it.
    pub release: String,
    /// The command that compiles the file.
    pub command: String,
    /// The language of the program, as Markdown knows it.
    pub language: &'static str,
    /// The program in that language.
    pub text: String,
    /// The file that is compiled, where it is none of text.
    pub bytes: Option<(&'static str, Vec<u8>)>,
    /// What names in the program stand for.
    pub names: String,
    /// The PTX that comes out.
    pub ptx: Option<String>,
    /// The machine code that comes out, where the compiler is the assembler.
    pub machine: Option<String>,
    /// Why that is not what the compiler gave just now.
    pub unasked: Option<String>,
    /// What the compiler printed when it died of the program.
    pub died: Vec<String>,
}

impl Unit {
    /// The unit with why there is no PTX.
    pub(super) fn without(self, why: Option<&Abstention>) -> Self {
        let died = why.and_then(Abstention::failure).filter(|why| why.death().is_some());
        match died {
            Some(Failure::Crashed { status, said }) => {
                Unit { died: [vec![status.to_string()], said.clone()].concat(), ..self }
            }
            _ => Unit { unasked: why.map(ToString::to_string), ..self },
        }
    }
}

impl Evidence {
    /// The rules that forbid the end, in words.
    pub fn rules(&self) -> Vec<String> {
        let words = |set: &Vec<String>| -> String {
            let each: Vec<String> =
                set.iter().map(|name| rule(name).map_or_else(|| name.clone(), str::to_owned)).collect();
            each.join(", and ")
        };
        self.forbidden.rules.iter().map(words).collect()
    }
}

/// A class of mistakes as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// A title, without the name of the compiler.
    pub title: String,
    /// What the emitted code leaves out.
    pub lost: String,
}

fn said(title: &str, lost: &str) -> Mistake {
    Mistake { title: title.to_owned(), lost: lost.to_owned() }
}

/// The class that a claim names by its checks.
pub fn mistake(checks: &[Vec<String>]) -> Mistake {
    let word = |n: usize| checks.get(n).and_then(|set| set.first()).map_or("", String::as_str);
    match (word(0), word(1)) {
        (CRASH, name) => Mistake { title: format!("the compiler dies: {name}"), lost: String::new() },
        (how @ ("sass-lost" | "sass-weakened" | "sass-moved" | "sass-added"), step) => {
            let how = how.trim_start_matches("sass-");
            Mistake {
                title: format!("machine code: {step} is {how}"),
                lost: format!("No path of the machine code does what the PTX asks for: {step} is {how}."),
            }
        }
        ("order-lost", "seq_cst") => said(
            "seq_cst operations are emitted without their order",
            "With a `fence.sc.sys` before each emitted instruction the end is gone; with the orders that the program asks for on the instructions alone it is not.",
        ),
        ("order-lost", kind) => Mistake {
            title: format!("`{kind}` is emitted with a weaker order than the program asks for"),
            lost: format!(
                "With the order that the program asks for on `{kind}` alone, and everything else as it was emitted, it is gone."
            ),
        },
        ("scope-lost", kind) => Mistake {
            title: format!("`{kind}` is emitted with a narrower scope than the program asks for"),
            lost: format!(
                "With the scope that the program asks for on `{kind}` alone, and everything else as it was emitted, it is gone."
            ),
        },
        ("weak-access", _) => said(
            "an atomic access is emitted as a plain one",
            "The emitted code reads or writes by a plain `ld` or `st` an object that the program accesses atomically only.",
        ),
        ("mixed-size", _) => said(
            "one object is accessed with different sizes",
            "The emitted code accesses the bytes of an atomic object with instructions of different sizes, which the PTX model leaves undefined.",
        ),
        ("models", _) => said(
            "the published mapping ends so, too: the models of program and PTX differ",
            "The program translated by the published mapping reaches the same end under the model of PTX, so no compiler can avoid it.",
        ),
        ("update-lost", _) => said(
            "an atomic update is emitted as a load or a store",
            "The emitted code reads or writes an object that the program reads and writes in one step, so other writes may come between.",
        ),
        ("load-updates", _) => said(
            "an atomic load is emitted as an update",
            "The emitted code writes an object that the program only reads there: loads of two threads become updates, which race or fault in read-only memory.",
        ),
        ("barrier-lost", _) => said(
            "threads that do the work of one are not ordered by a barrier",
            "Several threads of a CTA do what one thread of the program does. Stronger orders and wider scopes on their instructions do not help; they do not meet at a barrier.",
        ),
        ("race", _) => said(
            "a race in the emitted code that the program does not have",
            "Stronger orders and wider scopes on the emitted instructions do not remove the race.",
        ),
        (class, _) => of_kernels(class),
    }
}

/// The same of what a compiler makes of kernels, and of what has no class.
fn of_kernels(class: &str) -> Mistake {
    match class {
        "OneRead" => said(
            "a load that the program makes once is made several times",
            "The program reads a value once and uses it in several places. The emitted code reads again for each of them, so that one value becomes several.",
        ),
        "endless" => said(
            "a loop that never ends is dropped",
            "The program waits for ever there. The emitted code goes on, and does what stands behind the loop.",
        ),
        "OneWrite" => said(
            "a store that the program makes once is made several times",
            "Several threads store one element, so that a store of another block comes between.",
        ),
        "OneRead and OneWrite" => said(
            "loads and stores that the program makes once are made several times",
            "The emitted code repeats loads and stores, so that those of another block come between.",
        ),
        "TOK=A" => said(
            "an operation that is masked off is dropped with the order that its token hands on",
            "An instruction whose elements are all masked off is gone, and so is the order between what its token waits for and what waits for it. Under the reading that such an instruction hands on no order, this is right.",
        ),
        _ => said(
            "the emitted code reaches a state that the program cannot reach",
            "Neither stronger orders nor wider scopes on the emitted instructions remove it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_told_with_its_instruction() {
        let class = |words: &[&str]| words.iter().map(|w| vec![(*w).to_owned()]).collect::<Vec<_>>();
        let told = mistake(&class(&["order-lost", "atom.cas"]));
        assert_eq!(told.title, "`atom.cas` is emitted with a weaker order than the program asks for");
        assert!(mistake(&class(&["order-lost", "seq_cst"])).title.starts_with("seq_cst"));
        assert_ne!(mistake(&class(&["scope-lost", "atom"])), mistake(&class(&["scope-lost"])));
    }
}
