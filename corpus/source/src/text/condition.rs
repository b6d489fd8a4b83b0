//! Reads conditions: `exists`, `~exists` or `forall`, then an expression in parentheses.

use crate::limits::CONDITION_NODES;
use crate::syntax::{Condition, Expr, Source, Term};
use moire_program::ir::Quantifier;
use moire_program::text::scan::{Parsed, Scan};

/// Deepest nesting of parentheses.
const DEPTH: usize = 16;

pub(super) fn condition(scan: &mut Scan<'_>, source: &Source) -> Parsed<Option<Condition>> {
    let quantifier = if scan.take("~") {
        if !scan.keyword("exists") {
            return Err(scan.expected("`exists`"));
        }
        Quantifier::NotExists
    } else if scan.keyword("exists") {
        Quantifier::Exists
    } else if scan.keyword("forall") {
        Quantifier::ForAll
    } else {
        return Ok(None);
    };
    let mut nodes = 0;
    let expr = Reader { scan, source, nodes: &mut nodes }.any(0)?;
    Ok(Some(Condition { quantifier, expr }))
}

struct Reader<'s, 't, 'n> {
    scan: &'s mut Scan<'t>,
    source: &'s Source,
    nodes: &'n mut usize,
}

impl Reader<'_, '_, '_> {
    /// `a \/ b \/ ..`
    fn any(&mut self, depth: usize) -> Parsed<Expr> {
        let mut all = vec![self.all(depth)?];
        while self.scan.take("\\/") {
            all.push(self.all(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::Or(all) })
    }

    /// `a /\ b /\ ..`
    fn all(&mut self, depth: usize) -> Parsed<Expr> {
        let mut all = vec![self.one(depth)?];
        while self.scan.take("/\\") {
            all.push(self.one(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::And(all) })
    }

    fn one(&mut self, depth: usize) -> Parsed<Expr> {
        *self.nodes += 1;
        if *self.nodes > CONDITION_NODES || depth > DEPTH {
            let message = format!("a condition has at most {CONDITION_NODES} parts, nested {DEPTH} deep");
            return Err(self.scan.error(message, None));
        }
        if self.scan.take("~") {
            return Ok(Expr::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.scan.take("(") {
            let inner = self.any(depth + 1)?;
            self.scan.expect(")")?;
            return Ok(inner);
        }
        let term = self.term()?;
        self.scan.expect("==")?;
        let n = self.scan.number()?;
        match u64::try_from(n) {
            Ok(n) => Ok(Expr::Is(term, n)),
            Err(_) => Err(self.scan.error("a number is not negative".into(), None)),
        }
    }

    /// `P1:r0` or `[x]`
    fn term(&mut self) -> Parsed<Term> {
        if self.scan.take("[") {
            let name = self.scan.name("an object")?;
            let found = self.source.objects.iter().position(|o| o.name == name);
            self.scan.expect("]")?;
            let unknown = format!("there is no object `{name}`");
            return found.map(Term::Object).ok_or_else(|| self.scan.error(unknown, None));
        }
        let name = self.scan.word("P0:register or [object]", "")?;
        let thread = name.strip_prefix('P').and_then(|n| n.parse::<usize>().ok());
        let Some(t) = thread.filter(|t| *t < self.source.threads.len()) else {
            return Err(self.scan.error(format!("there is no thread `{name}`"), None));
        };
        self.scan.expect(":")?;
        let name = self.scan.name("a register")?;
        match self.source.threads[t].registers.iter().position(|r| r.name == name) {
            Some(r) => Ok(Term::Register(t, r)),
            None => Err(self.scan.error(format!("no step of P{t} writes `{name}`"), None)),
        }
    }
}
