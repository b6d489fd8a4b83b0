//! The table of a census: a row a mnemonic, what ptxas says, what the book says, and what the reader of modules says.

use moire_isa::census::{Form, NEWEST, alone, module};
use std::collections::BTreeMap;
use std::fmt;

/// Versions up to this one have a bar of their own: their forms are documented.
const SETTLED: u16 = 88;
/// The share, in percent, of accepted forms up to that version that may be refused.
const SETTLED_BAR: f64 = 2.0;
/// The same of newer forms.
const NEW_BAR: f64 = 5.0;
/// The share, in percent, of refused forms that may be read.
const TAKEN_BAR: f64 = 2.0;

/// Counts of one mnemonic.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// Forms that a target accepts.
    accepted: u32,
    read: u32,
    /// Of those read: printed with the same words and operands, and read back as the same instruction.
    printed: u32,
    targets: u32,
    versions: u32,
    /// Forms that no target accepts.
    refused: u32,
    taken: u32,
    /// What the reader of modules reads of accepted and of refused forms.
    kernel_read: u32,
    kernel_taken: u32,
}

impl Row {
    fn cells(&self) -> [u32; 9] {
        let accepted = [self.accepted, self.read, self.printed, self.targets, self.versions];
        let refused = [self.refused, self.taken, self.kernel_read, self.kernel_taken];
        std::array::from_fn(|i| if i < 5 { accepted[i] } else { refused[i - 5] })
    }

    fn add(&mut self, other: &Row) {
        let sum = |a: &mut u32, b: u32| *a += b;
        sum(&mut self.accepted, other.accepted);
        sum(&mut self.read, other.read);
        sum(&mut self.printed, other.printed);
        sum(&mut self.targets, other.targets);
        sum(&mut self.versions, other.versions);
        sum(&mut self.refused, other.refused);
        sum(&mut self.taken, other.taken);
        sum(&mut self.kernel_read, other.kernel_read);
        sum(&mut self.kernel_taken, other.kernel_taken);
    }
}

/// All counts.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: BTreeMap<String, Row>,
    /// Accepted forms and those read of them: up to the settled version, and newer ones.
    settled: [u32; 2],
    new: [u32; 2],
}

impl Table {
    /// Counts a form. Returns what is judged otherwise than ptxas judges it, a line each.
    pub(super) fn add(&mut self, form: &Form<'_>) -> Vec<String> {
        let compared = form.compare();
        let row = self.rows.entry(form.mnemonic.to_owned()).or_default();
        let kernel = u32::from(as_module(form));
        let mut out = Vec::new();
        if !form.accepted() {
            row.refused += 1;
            row.taken += u32::from(compared.accepted());
            row.kernel_taken += kernel;
            out.extend(compared.accepted().then(|| format!("taken\t{}", form.text)));
            return out;
        }
        row.accepted += 1;
        row.kernel_read += kernel;
        let bar =
            if form.version.max(compared.version) <= SETTLED { &mut self.settled } else { &mut self.new };
        bar[0] += 1;
        if let Err(why) = &compared.read {
            return vec![format!("refused\t{}\t{}", form.text, why.message)];
        }
        bar[1] += 1;
        row.read += 1;
        let dated = form.version == 0 || form.dated(compared.version);
        let right = [
            (&mut row.printed, compared.printed, "printed", compared.text.clone()),
            (
                &mut row.targets,
                compared.targets == form.targets,
                "targets",
                format!("{:?}", compared.targets),
            ),
            (&mut row.versions, dated, "version", compared.version.to_string()),
        ];
        for (count, right, what, ours) in right {
            *count += u32::from(right);
            out.extend((!right).then(|| format!("{what}\t{}\t{ours}", form.text)));
        }
        out
    }

    fn all(&self) -> Row {
        let mut all = Row::default();
        self.rows.values().for_each(|row| all.add(row));
        all
    }

    /// Whether everything that is read is printed back, and few forms are judged otherwise than ptxas judges them.
    pub(super) fn within_the_bars(&self) -> bool {
        let all = self.all();
        let lost = |[accepted, read]: [u32; 2]| percent(accepted - read, accepted);
        all.printed == all.read
            && lost(self.settled) < SETTLED_BAR
            && lost(self.new) < NEW_BAR
            && percent(all.taken, all.refused) < TAKEN_BAR
    }
}

/// Whether the reader of modules and its static rules accept the form in a module of its own.
fn as_module(form: &Form<'_>) -> bool {
    let (text, _) = module(alone(form.targets), NEWEST, [form.text], "");
    let read = moire_kernel::ptx::parse(&text);
    read.is_ok_and(|module| module.kernels.iter().all(|kernel| kernel.rejected(&module).is_empty()))
}

fn percent(part: u32, whole: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(whole.max(1))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads =
            ["accepted", "read", "printed", "targets", "version", "refused", "taken", "module", "module+"];
        write!(f, "{:32}", "mnemonic")?;
        heads.iter().try_for_each(|head| write!(f, " {head:>8}"))?;
        writeln!(f)?;
        let all = self.all();
        for (name, row) in self.rows.iter().map(|(name, row)| (name.as_str(), row)).chain([("all", &all)]) {
            write!(f, "{name:32}")?;
            row.cells().iter().try_for_each(|cell| write!(f, " {cell:8}"))?;
            writeln!(f)?;
        }
        let lost = |f: &mut fmt::Formatter<'_>, what: &str, [accepted, read]: [u32; 2]| {
            let lost = accepted - read;
            writeln!(
                f,
                "{what}: {lost} of {accepted} accepted forms are refused ({:.2} %)",
                percent(lost, accepted)
            )
        };
        lost(f, "version <= 8.8", self.settled)?;
        lost(f, "version >= 9.0", self.new)?;
        let share = percent(all.taken, all.refused);
        writeln!(f, "{} of {} refused forms are read ({share:.2} %)", all.taken, all.refused)?;
        let shares =
            [percent(all.accepted - all.kernel_read, all.accepted), percent(all.kernel_taken, all.refused)];
        writeln!(
            f,
            "the reader of modules refuses {:.2} % of the accepted forms, and reads {:.2} % of the refused ones",
            shares[0], shares[1]
        )
    }
}
