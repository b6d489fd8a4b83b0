//! How the kernel of a module is launched, on the command line.

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use moire_console::input::read_file;
use moire_kernel::specialise::{COMPARISONS, Word};
use moire_verdict::kernel::{Behind, Supposed, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The heading of what is about kernels.
pub(crate) const KERNELS: &str = "Kernels (files that end in .ptx or .tile)";

/// How the kernel of a PTX module is launched.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = KERNELS)]
pub(crate) struct LaunchArgs {
    /// A kernel that is launched behind the others on their stream, and judged together with them (repeatable): a PTX module,
    /// with :KERNEL where it has several. It is launched as a dependent if it has griddepcontrol.wait. Sizes, parameters and
    /// assumptions about it have its number and a colon before them: --grid 1:4
    #[arg(long, value_name = "FILE[:KERNEL]")]
    pub(crate) then: Vec<String>,
    /// CTAs or tile blocks of the grid; two clusters, or two tile blocks, if not given
    #[arg(long, value_name = "X[,Y,Z]", value_parser = numbered_shape)]
    pub(crate) grid: Vec<(usize, [u32; 3])>,
    /// Threads of a CTA; not needed where the kernel says it
    #[arg(long, value_name = "X[,Y,Z]", value_parser = numbered_shape)]
    pub(crate) block: Vec<(usize, [u32; 3])>,
    /// CTAs of a cluster; not needed where the kernel says it
    #[arg(long, value_name = "X[,Y,Z]", value_parser = numbered_shape)]
    pub(crate) cluster: Vec<(usize, [u32; 3])>,
    /// The value of a parameter, from 0 on, or of a field of one that is a structure, from its first byte (repeatable); pointers
    /// and tensor maps need none, and others get one that lets more of the kernel run. `5[8]=3`: the word of global memory that
    /// starts 8 bytes behind pointer 5 and is only read; `5[]=3`: all words there that get no value of their own. Behind --then,
    /// 1:0=0:2: the pointer or tensor map 0 of kernel 1 is parameter 2 of kernel 0, the first
    #[arg(long = "param", value_name = "INDEX[+BYTE][[BYTE]]=VALUE", value_parser = param)]
    pub(crate) params: Vec<Param>,
    /// What is assumed of a parameter that gets no value, for example 'K % 64 == 0' or '7 >= 2' (repeatable): only launches for which
    /// it holds are chosen. The parameter is its position or its name in the module; numbers have no sign
    #[arg(long = "assume", value_name = "PARAMETER[+BYTE] [% DIVISOR] COMPARED NUMBER", value_parser = numbered_supposed)]
    pub(crate) assumed: Vec<(usize, Supposed)>,
    /// Which kernel, when the module has several; without it each is judged
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
}

/// The value of a parameter of a kernel, or of a field of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    /// The number of the kernel.
    of: usize,
    /// Its place in the list of parameters, from 0 on.
    index: u16,
    /// First byte of a field.
    at: Option<u32>,
    /// Words behind it: the first byte of one, or all.
    behind: Option<Option<u64>>,
    value: Given,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Number(u64),
    /// A parameter of this kernel.
    Same(usize, u16),
}

impl LaunchArgs {
    /// The launch that is asked for; `base` has what the command line leaves open.
    ///
    /// # Errors
    /// A size or a parameter is given twice, or of a kernel that is not there; a module cannot be read.
    pub(crate) fn wanted(&self, base: &Wanted) -> Result<Wanted> {
        let mut out = base.clone();
        out.entry = self.entry.clone().or(out.entry);
        out.then = self.then.iter().map(|then| behind(then)).collect::<Result<_>>()?;
        if out.recorded.is_some() && !out.then.is_empty() {
            bail!("--then is about modules, not about launches that were recorded");
        }
        let numbers = self.grid.iter().chain(&self.block).chain(&self.cluster).map(|size| size.0);
        let numbers = numbers.chain(self.params.iter().map(|p| p.of)).chain(self.assumed.iter().map(|a| a.0));
        if let Some(number) = numbers.max().filter(|number| *number > out.then.len()) {
            bail!("there is no kernel {number}: {} are given with --then", out.then.len());
        }
        self.shapes(&mut out)?;
        self.assumed.iter().for_each(|(n, one)| kernel(&mut out, *n).assumed.push(one.clone()));
        self.params.iter().try_for_each(|param| given(&mut out, param))?;
        Ok(out)
    }

    fn shapes(&self, out: &mut Wanted) -> Result<()> {
        type Size = fn(&mut Wanted) -> &mut Option<[u32; 3]>;
        let all: [(&[(usize, [u32; 3])], Size, &str); 3] = [
            (&self.grid, |w| &mut w.grid, "grid"),
            (&self.block, |w| &mut w.block, "block"),
            (&self.cluster, |w| &mut w.cluster, "cluster"),
        ];
        for (sizes, size, name) in all {
            let mut seen = BTreeSet::new();
            for (n, shape) in sizes {
                if !seen.insert(*n) {
                    bail!("--{name} of a kernel is given twice");
                }
                *size(kernel(out, *n)) = Some(*shape);
            }
        }
        Ok(())
    }
}

/// How a kernel is launched: 0 is the first one.
fn kernel(out: &mut Wanted, number: usize) -> &mut Wanted {
    match number.checked_sub(1) {
        Some(n) => &mut out.then[n].wanted,
        None => out,
    }
}

/// Notes what a parameter is.
fn given(out: &mut Wanted, param: &Param) -> Result<()> {
    let Param { of, index, at, behind, value } = *param;
    if let Given::Same(grid, parameter) = value {
        let Some(n) = of.checked_sub(1).filter(|_| grid <= of && at.is_none() && behind.is_none()) else {
            bail!("a parameter is one of a kernel ahead of its own, or of itself: 1:0=0:2");
        };
        let same = out.then[n].same.insert(index, (grid, parameter)).is_some();
        if same || out.then[n].wanted.params.contains_key(&index) {
            bail!("a parameter is given twice");
        }
        return Ok(());
    }
    let Given::Number(value) = value else { return Ok(()) };
    let shared = of.checked_sub(1).is_some_and(|n| out.then[n].same.contains_key(&index));
    let wanted = kernel(out, of);
    let old = match (at, behind) {
        (at, Some(word)) => wanted.words.insert(Word { pointer: (index, at.unwrap_or(0)), at: word }, value),
        (Some(at), None) => wanted.fields.insert((index, at), value),
        (None, None) => wanted.params.insert(index, value),
    };
    if old.is_some() || shared && at.is_none() && behind.is_none() {
        bail!("a parameter is given twice");
    }
    Ok(())
}

/// The kernel that `FILE` or `FILE:KERNEL` names.
fn behind(text: &str) -> Result<Behind> {
    let (path, entry) = match text.rsplit_once(':').filter(|_| !Path::new(text).exists()) {
        Some((path, entry)) => (path, Some(entry.to_owned())),
        None => (text, None),
    };
    let wanted = Wanted { entry, ..Wanted::default() };
    Ok(Behind { file: read_file(Path::new(path))?, wanted, same: BTreeMap::new() })
}

/// What stands behind the number of a kernel and a colon, with the number: 0 if none stands there.
fn numbered(text: &str) -> (usize, &str) {
    let split = text.split_once(':').and_then(|(n, rest)| Some((n.trim().parse().ok()?, rest)));
    split.unwrap_or((0, text))
}

/// `8,4`, `1:8,4`
fn numbered_shape(text: &str) -> Result<(usize, [u32; 3])> {
    let (number, text) = numbered(text);
    Ok((number, shape(text)?))
}

/// `K >= 2`, `1:K >= 2`
fn numbered_supposed(text: &str) -> Result<(usize, Supposed)> {
    let (number, rest) = numbered(text);
    Ok((number, Supposed { text: text.trim().to_owned(), ..supposed(rest)? }))
}

/// `8`, `8,4`, `8,4,1`
fn shape(text: &str) -> Result<[u32; 3]> {
    let mut out = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        bail!("at most three sizes, for example 8,4,1");
    }
    for (n, part) in out.iter_mut().zip(parts) {
        let size = part.trim().parse().ok().filter(|n| *n > 0);
        *n = size.with_context(|| format!("`{part}` is no size; write 8, 8,4 or 8,4,1"))?;
    }
    Ok(out)
}

/// `3=256`, `3=0x100`, `3+8=256`, `3[4]=256`, `3[]=256`, `1:3=256`, `1:0=0:2`
fn param(text: &str) -> Result<Param> {
    let wrong = || anyhow!("`{text}` is no parameter; write INDEX=VALUE, for example 2=256 or 2=0x100");
    let (index, value) = text.split_once('=').ok_or_else(wrong)?;
    let ((of, index), value) = (numbered(index), value.trim());
    let number = match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok().or_else(|| value.parse::<i64>().ok().map(i64::cast_unsigned)),
    };
    let same =
        || value.split_once(':').and_then(|(n, at)| Some(Given::Same(n.parse().ok()?, at.parse().ok()?)));
    let (index, behind) = match index.trim().strip_suffix(']').map(|left| left.split_once('[')) {
        Some(Some((index, ""))) => (index, Some(None)),
        Some(Some((index, at))) => (index, Some(Some(at.trim().parse().map_err(|_| wrong())?))),
        Some(None) => return Err(wrong()),
        None => (index, None),
    };
    let (index, at) = match index.split_once('+') {
        Some((index, at)) => (index, Some(at.trim().parse().map_err(|_| wrong())?)),
        None => (index, None),
    };
    let index = index.trim().parse().map_err(|_| wrong())?;
    Ok(Param { of, index, at, behind, value: number.map(Given::Number).or_else(same).ok_or_else(wrong)? })
}

/// `7 % 64 == 0`, `K >= 2`, `3+8 != 0x10`
fn supposed(text: &str) -> Result<Supposed> {
    let wrong =
        || anyhow!("`{text}` is no assumption; write PARAMETER % DIVISOR == NUMBER, for example 7 % 64 == 0");
    let of = |(sign, compared)| text.split_once(sign).map(|parts| (parts, compared));
    let ((left, number), compared) = COMPARISONS.into_iter().find_map(of).ok_or_else(wrong)?;
    let number_of = |text: &str| match text.trim().strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.trim().parse().ok(),
    };
    let (parameter, divisor) = match left.split_once('%') {
        Some((parameter, by)) => (parameter, Some(number_of(by).filter(|by| *by > 0).ok_or_else(wrong)?)),
        None => (left, None),
    };
    let parameter = parameter.replace(' ', "");
    if parameter.is_empty() {
        return Err(wrong());
    }
    let number = number_of(number).ok_or_else(wrong)?;
    Ok(Supposed { parameter, divisor, compared, number, text: text.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::ir::CmpOp;

    #[test]
    fn assumptions_are_comparisons_of_a_parameter() {
        let found = supposed("K % 64 == 0").unwrap();
        assert_eq!((found.parameter.as_str(), found.divisor), ("K", Some(64)));
        assert_eq!((found.compared, found.number), (CmpOp::Eq, 0));
        let found = supposed("3+8>=0x10").unwrap();
        assert_eq!((found.parameter.as_str(), found.divisor), ("3+8", None));
        assert_eq!((found.compared, found.number), (CmpOp::Ge, 16));
        assert!(supposed("K % 0 == 0").is_err() && supposed("K").is_err() && supposed("K == x").is_err());
        assert!(supposed("== 1").is_err());
    }

    #[test]
    fn shapes_and_parameters() {
        assert_eq!(shape("8").unwrap(), [8, 1, 1]);
        assert_eq!(shape("8,4").unwrap(), [8, 4, 1]);
        assert!(shape("8,0").is_err() && shape("1,1,1,1").is_err() && shape("x").is_err());
        let number =
            |index, value| Param { of: 0, index, at: None, behind: None, value: Given::Number(value) };
        assert_eq!(param("3=0x10").unwrap(), number(3, 16));
        assert_eq!(param("3=-1").unwrap(), number(3, u64::MAX));
        assert_eq!(param("3+8=1").unwrap(), Param { at: Some(8), ..number(3, 1) });
        let same = Param { of: 1, value: Given::Same(0, 2), ..number(0, 0) };
        assert_eq!(param("1:0=0:2").unwrap(), same);
        let word = |behind| Param { behind: Some(behind), ..number(3, 1) };
        assert_eq!(param("3[4]=1").unwrap(), word(Some(4)));
        assert_eq!(param("3[]=1").unwrap(), word(None));
        assert_eq!(param("3+8[]=1").unwrap(), Param { at: Some(8), ..word(None) });
        assert_eq!(param("1:3[]=1").unwrap(), Param { of: 1, ..word(None) });
        assert!(param("3[x]=1").is_err() && param("3]=1").is_err() && param("3[4=1").is_err());
        assert_eq!(numbered_shape("2:8").unwrap(), (2, [8, 1, 1]));
        assert_eq!(numbered_supposed("1:K >= 2").unwrap().1.parameter, "K");
        assert!(
            param("3+=1").is_err()
                && param("+1=1").is_err()
                && param("3").is_err()
                && param("a=1").is_err()
                && param("3=b").is_err()
        );
    }
}
