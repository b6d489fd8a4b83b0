//! How the kernel of a module is launched, on the command line.

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use moire_kernel::specialise::COMPARISONS;
use moire_verdict::kernel::{Supposed, Wanted};

/// How the kernel of a PTX module is launched.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kernels (files that end in .ptx or .tile)")]
pub(crate) struct LaunchArgs {
    /// CTAs or tile blocks of the grid; two clusters, or two tile blocks, if not given
    #[arg(long, value_name = "X[,Y,Z]", value_parser = shape)]
    pub(crate) grid: Option<[u32; 3]>,
    /// Threads of a CTA; not needed where the kernel says it
    #[arg(long, value_name = "X[,Y,Z]", value_parser = shape)]
    pub(crate) block: Option<[u32; 3]>,
    /// CTAs of a cluster; not needed where the kernel says it
    #[arg(long, value_name = "X[,Y,Z]", value_parser = shape)]
    pub(crate) cluster: Option<[u32; 3]>,
    /// The value of a parameter, from 0 on, or of a field of one that is a structure, from its first byte (repeatable); pointers
    /// and tensor maps need none, and others get one that lets more of the kernel run
    #[arg(long = "param", value_name = "INDEX[+BYTE]=VALUE", value_parser = param)]
    pub(crate) params: Vec<Param>,
    /// What is assumed of a parameter that gets no value, for example 'K % 64 == 0' or '7 >= 2' (repeatable): only launches for which
    /// it holds are chosen. The parameter is its position or its name in the module; numbers have no sign
    #[arg(long = "assume", value_name = "PARAMETER[+BYTE] [% DIVISOR] COMPARED NUMBER", value_parser = supposed)]
    pub(crate) assumed: Vec<Supposed>,
    /// Which kernel, when the module has several; without it each is judged
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Print the litmus program that is explored instead of exploring it
    #[arg(long)]
    pub(crate) lowered: bool,
}

/// The value of a parameter of a kernel, or of a field of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    /// Its place in the list of parameters, from 0 on.
    index: u16,
    /// First byte of a field.
    at: Option<u32>,
    value: u64,
}

impl LaunchArgs {
    /// The launch that is asked for; `base` has what the command line leaves open.
    ///
    /// # Errors
    /// A parameter is given twice.
    pub(crate) fn wanted(&self, base: &Wanted) -> Result<Wanted> {
        let mut out = base.clone();
        out.grid = self.grid.or(out.grid);
        out.block = self.block.or(out.block);
        out.cluster = self.cluster.or(out.cluster);
        out.entry = self.entry.clone().or(out.entry);
        out.assumed.extend(self.assumed.iter().cloned());
        for Param { index, at, value } in &self.params {
            let old = match at {
                Some(at) => out.fields.insert((*index, *at), *value),
                None => out.params.insert(*index, *value),
            };
            if old.is_some() {
                bail!("a parameter is given twice");
            }
        }
        Ok(out)
    }
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

/// `3=256`, `3=0x100`, `3+8=256`
fn param(text: &str) -> Result<Param> {
    let wrong = || anyhow!("`{text}` is no parameter; write INDEX=VALUE, for example 2=256 or 2=0x100");
    let (index, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = value.trim();
    let number = match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok().or_else(|| value.parse::<i64>().ok().map(i64::cast_unsigned)),
    };
    let (index, at) = match index.split_once('+') {
        Some((index, at)) => (index, Some(at.trim().parse().map_err(|_| wrong())?)),
        None => (index, None),
    };
    let index = index.trim().parse().map_err(|_| wrong())?;
    Ok(Param { index, at, value: number.ok_or_else(wrong)? })
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
        assert_eq!(param("3=0x10").unwrap(), Param { index: 3, at: None, value: 16 });
        assert_eq!(param("3=-1").unwrap(), Param { index: 3, at: None, value: u64::MAX });
        assert_eq!(param("3+8=1").unwrap(), Param { index: 3, at: Some(8), value: 1 });
        assert!(
            param("3+=1").is_err()
                && param("+1=1").is_err()
                && param("3").is_err()
                && param("a=1").is_err()
                && param("3=b").is_err()
        );
    }
}
