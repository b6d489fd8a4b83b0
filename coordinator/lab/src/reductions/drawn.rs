//! The programs that `moire bench reductions` draws, and the models under which it compares them.

use anyhow::Result;
use clap::ValueEnum;
use moire_cat::{Model, Variants};
use moire_console::input::load_model;
use moire_generate::blocks::{beside, blocks};
use moire_generate::numbers::Draw;
use moire_generate::{Profile, Stream};
use moire_lab::differential::campaign::random_settings;
use moire_lab::differential::draw_crowd::{crowd, twins};
use moire_lab::differential::reduced::questioned;
use moire_program::ir::Program;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Drawn {
    /// Threads with the same body, atomics and loads whose value is not used, stores that no one reads
    Crowd,
    /// Threads that communicate through memory and barriers; half of the programs give one thread's code to others
    Core,
    /// Tile blocks: elements, tokens, masks; half of the programs give one block's code to others
    Blocks,
    /// Tile blocks beside threads of PTX; half of the programs give one thread's code to others
    Beside,
    /// Tensor memory, allocation, asynchronous copies, mbarriers, lanes of a warp; few of them can be reduced
    Tensor,
    /// All of these by turns
    All,
}

impl Drawn {
    /// Returns its name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned())
    }

    /// Returns the kind of program for a seed, and the seed within this kind.
    fn turn(self, seed: u64) -> (Drawn, u64) {
        use Drawn::{Beside, Blocks, Core, Crowd, Tensor};
        const TURNS: [Drawn; 8] = [Crowd, Core, Blocks, Beside, Crowd, Core, Blocks, Tensor];
        if self != Drawn::All {
            return (self, seed);
        }
        let (round, turn) = (seed / 8, usize::try_from(seed % 8).unwrap_or(0));
        let drawn = TURNS[turn];
        let of = |turns: &[Drawn]| turns.iter().filter(|t| **t == drawn).count() as u64;
        (drawn, round * of(&TURNS) + of(&TURNS[..turn]))
    }

    /// Draws the program of a seed, with a question, and returns it with its kind.
    pub(super) fn program(self, seed: u64) -> Option<(Drawn, Program)> {
        let (drawn, own) = self.turn(seed);
        let program = match drawn {
            Drawn::Crowd | Drawn::All => return crowd(own).map(|p| (drawn, p)),
            Drawn::Core => Stream::new(1, Profile::Core).item(own),
            Drawn::Blocks => blocks(&mut Draw::new(own)),
            Drawn::Beside => beside(&mut Draw::new(own))?,
            Drawn::Tensor => Stream::new(1, Profile::Tensor).item(own),
        };
        // The seed is hashed first, because the kinds of programs take turns by seed too.
        let twin = own.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
        let program = if twin { twins(program, own)? } else { questioned(program, own) };
        Some((drawn, program))
    }

    /// Lists the models that cover this kind of program.
    fn models(self) -> Vec<&'static str> {
        match self {
            Drawn::Crowd | Drawn::Core | Drawn::All => moire_models::names().collect(),
            Drawn::Blocks | Drawn::Beside => vec!["tile-ir"],
            Drawn::Tensor => vec!["ptx"],
        }
    }

    /// Names the model whose switches are drawn.
    fn switched(self) -> &'static str {
        if self.models() == ["tile-ir"] { "tile-ir" } else { "ptx" }
    }
}

/// The models under which programs are compared.
pub(super) struct Asked {
    /// The models named, or all shipped ones.
    shipped: Vec<Model>,
    /// Random settings, by model.
    settings: Vec<(&'static str, Vec<Model>)>,
    /// The names given on the command line; empty: all.
    named: Vec<String>,
}

impl Asked {
    /// Loads the models, and draws `settings` random settings of `ptx` and `tile-ir` from `seed`.
    ///
    /// # Errors
    /// There is no such model.
    pub(super) fn new(named: &[String], settings: usize, seed: u64) -> Result<Asked> {
        let names: Vec<&str> = if named.is_empty() {
            moire_models::names().collect()
        } else {
            named.iter().map(String::as_str).collect()
        };
        let shipped = names.iter().map(|n| load_model(n, &Variants::new())).collect::<Result<_>>()?;
        let of = |name: &'static str| -> Result<_> {
            let plain = load_model(name, &Variants::new())?;
            let drawn = random_settings(&plain, seed, settings);
            Ok((name, drawn.iter().map(|v| load_model(name, v)).collect::<Result<_>>()?))
        };
        let settings = ["ptx", "tile-ir"].into_iter().map(of).collect::<Result<_>>()?;
        Ok(Asked { shipped, settings, named: named.to_vec() })
    }

    /// Selects the models for a program of this kind and seed: those named, or else those that cover it; and one
    /// setting.
    pub(super) fn of(&self, drawn: Drawn, seed: u64) -> impl Iterator<Item = &Model> {
        let speaks = drawn.models();
        let shipped =
            self.shipped.iter().filter(move |m| !self.named.is_empty() || speaks.contains(&m.name()));
        let turn = usize::try_from(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).unwrap_or(0);
        let drawn = self.settings.iter().find(|(name, _)| *name == drawn.switched());
        let other = drawn.and_then(|(_, all)| all.get(turn.checked_rem(all.len())?));
        shipped.chain(other)
    }
}
