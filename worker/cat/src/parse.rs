//! Recursive-descent parser. Precedence, loosest first, as in herd: `|`, `;`, `\`, `&`, `*` (product), `~`, postfix.

use crate::error::{LoadError, Position};
use crate::lex::{Token, lex};
use crate::syntax::{Binding, Expr, ExprKind, HEIGHT, Property, Statement, StatementKind, VariantTest};

/// Bytes of one file; published models are below 20 KiB.
const TEXT_BYTES: usize = 1 << 20;
/// Nesting of one expression; the parser and every later pass recurse this deep.
const DEPTH: usize = 128;

const KEYWORDS: [&str; 16] = [
    "let",
    "rec",
    "and",
    "in",
    "include",
    "acyclic",
    "irreflexive",
    "empty",
    "flag",
    "as",
    "if",
    "then",
    "else",
    "show",
    "unshow",
    "undefined_unless",
];

/// Words of herd's language that are not read here.
const UNSUPPORTED: [&str; 9] =
    ["with", "procedure", "call", "forall", "match", "enum", "instructions", "try", "assert"];

/// The statements of a file. A leading model name (`PTX`, `"title"`) is skipped.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Statement>, LoadError> {
    if text.len() > TEXT_BYTES {
        let start = Position { line: 1, column: 1 };
        return Err(LoadError::new(file, start, format!("a model text may have at most {TEXT_BYTES} bytes")));
    }
    let mut parser = Parser { file, tokens: lex(file, text)?, next: 0, depth: 0 };
    // The architecture and the name, as in `C RC11`.
    parser.title();
    parser.title();
    let mut out = Vec::new();
    while *parser.peek() != Token::End {
        parser.statement(&mut out)?;
    }
    Ok(out)
}

/// An expression that stands alone in a declaration. Errors have the place of the declaration.
pub(crate) fn expression(file: &str, at: Position, text: &str) -> Result<Expr, LoadError> {
    let read = || {
        let mut parser = Parser { file, tokens: lex(file, text)?, next: 0, depth: 0 };
        let expr = parser.expr()?;
        if *parser.peek() == Token::End { Ok(expr) } else { parser.error("the end of the expression") }
    };
    read().map_err(|e| LoadError { line: at.line, column: at.column, ..e })
}

struct Parser<'a> {
    file: &'a str,
    tokens: Vec<(Token, Position)>,
    next: usize,
    depth: usize,
}

type Parsed<T> = Result<T, LoadError>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn at(&self) -> Position {
        self.tokens[self.next].1
    }

    fn take(&mut self) -> Token {
        let token = self.tokens[self.next].0.clone();
        if token != Token::End {
            self.next += 1;
        }
        token
    }

    fn error<T>(&self, expected: &str) -> Parsed<T> {
        let found = match self.peek() {
            Token::Name(n) => format!("`{n}`"),
            Token::Text(t) => format!("\"{t}\""),
            Token::Symbol(s) => format!("`{s}`"),
            Token::Pragma(_) => "a declaration".into(),
            Token::End => "the end of the file".into(),
        };
        Err(LoadError::new(self.file, self.at(), format!("expected {expected}, found {found}")))
    }

    fn symbol(&mut self, s: &'static str) -> bool {
        let hit = *self.peek() == Token::Symbol(s);
        self.next += usize::from(hit);
        hit
    }

    fn expect(&mut self, s: &'static str) -> Parsed<()> {
        if self.symbol(s) { Ok(()) } else { self.error(&format!("`{s}`")) }
    }

    fn keyword(&mut self, word: &str) -> bool {
        let hit = matches!(self.peek(), Token::Name(n) if n == word);
        self.next += usize::from(hit);
        hit
    }

    fn name(&mut self) -> Parsed<String> {
        match self.peek() {
            Token::Name(n) if !KEYWORDS.contains(&n.as_str()) => {
                let n = n.clone();
                self.next += 1;
                Ok(n)
            }
            _ => self.error("a name"),
        }
    }

    fn title(&mut self) {
        let is_title = match self.peek() {
            Token::Text(_) => true,
            Token::Name(n) => !KEYWORDS.contains(&n.as_str()) && !UNSUPPORTED.contains(&n.as_str()),
            _ => false,
        };
        self.next += usize::from(is_title);
    }

    fn statement(&mut self, out: &mut Vec<Statement>) -> Parsed<()> {
        let at = self.at();
        if let Token::Pragma(text) = self.peek() {
            let text = text.clone();
            self.next += 1;
            out.push(Statement { at, kind: StatementKind::Declaration(text) });
        } else if self.keyword("include") {
            let Token::Text(path) = self.peek().clone() else { return self.error("a file name in quotes") };
            self.next += 1;
            out.push(Statement { at, kind: StatementKind::Include(path) });
        } else if self.keyword("let") {
            out.push(Statement { at, kind: self.bindings()? });
        } else if self.keyword("show") || self.keyword("unshow") {
            self.skip_show()?;
        } else {
            out.push(Statement { at, kind: self.check()? });
        }
        Ok(())
    }

    fn skip_show(&mut self) -> Parsed<()> {
        loop {
            self.expr()?;
            if self.keyword("as") {
                self.name()?;
            }
            if !self.symbol(",") {
                return Ok(());
            }
        }
    }

    fn bindings(&mut self) -> Parsed<StatementKind> {
        let recursive = self.keyword("rec");
        let mut bindings = vec![self.binding()?];
        while self.keyword("and") {
            bindings.push(self.binding()?);
        }
        Ok(StatementKind::Let { recursive, bindings })
    }

    fn binding(&mut self) -> Parsed<Binding> {
        let at = self.at();
        let name = self.name()?;
        let mut params = Vec::new();
        if self.symbol("(") {
            loop {
                params.push(self.name()?);
                if !self.symbol(",") {
                    break;
                }
            }
            self.expect(")")?;
        } else {
            while !matches!(self.peek(), Token::Symbol("=")) {
                params.push(self.name()?);
            }
        }
        self.expect("=")?;
        Ok(Binding { at, name, params, body: self.expr()? })
    }

    /// A check, or herd's `undefined_unless`: a flag where it fails.
    fn check(&mut self) -> Parsed<StatementKind> {
        let undefined = self.keyword("undefined_unless");
        let flag = undefined || self.keyword("flag");
        let negated = self.symbol("~") != undefined;
        let property = if self.keyword("acyclic") {
            Property::Acyclic
        } else if self.keyword("irreflexive") {
            Property::Irreflexive
        } else if self.keyword("empty") {
            Property::Empty
        } else if let Token::Name(n) = self.peek()
            && UNSUPPORTED.contains(&n.as_str())
        {
            let message = format!("`{n}` is not supported");
            let hint = match n.as_str() {
                "with" => {
                    "co is total without it, and `include \"cos.cat\"` is herd's; other orders are not generated"
                }
                _ => "supported are let, checks, flag, include, if and show",
            };
            return Err(LoadError::new(self.file, self.at(), message).hint(hint));
        } else {
            return self.error("`let`, `include`, `acyclic`, `irreflexive`, `empty` or `flag`");
        };
        let expr = self.expr()?;
        let name = if self.keyword("as") { Some(self.name()?) } else { None };
        let name =
            if undefined { Some(format!("undefined-{}", name.as_deref().unwrap_or("unless"))) } else { name };
        Ok(StatementKind::Check { flag, negated, property, expr, name })
    }

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH {
            return Err(LoadError::new(
                self.file,
                self.at(),
                format!("an expression may nest at most {DEPTH} deep"),
            ));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn expr(&mut self) -> Parsed<Expr> {
        self.deeper(|p| {
            if p.keyword("if") {
                return p.conditional();
            }
            p.binary(0)
        })
    }

    fn conditional(&mut self) -> Parsed<Expr> {
        let at = self.at();
        let test = self.variant_or()?;
        if !self.keyword("then") {
            return self.error("`then`");
        }
        let yes = self.expr()?;
        if !self.keyword("else") {
            return self.error("`else`");
        }
        let no = self.expr()?;
        self.build(at, yes.height.max(no.height), ExprKind::If(test, Box::new(yes), Box::new(no)))
    }

    fn variant_or(&mut self) -> Parsed<VariantTest> {
        let mut test = self.variant_and()?;
        let mut chain = 0usize;
        while self.symbol("||") {
            chain += 1;
            if chain > DEPTH {
                return self.error("a shorter condition");
            }
            test = VariantTest::Or(Box::new(test), Box::new(self.variant_and()?));
        }
        Ok(test)
    }

    fn variant_and(&mut self) -> Parsed<VariantTest> {
        let mut test = self.variant_atom()?;
        let mut chain = 0usize;
        while self.symbol("&&") {
            chain += 1;
            if chain > DEPTH {
                return self.error("a shorter condition");
            }
            test = VariantTest::And(Box::new(test), Box::new(self.variant_atom()?));
        }
        Ok(test)
    }

    fn variant_atom(&mut self) -> Parsed<VariantTest> {
        self.deeper(|p| {
            let at = p.at();
            if p.symbol("~") || p.keyword("not") {
                return Ok(VariantTest::Not(Box::new(p.variant_atom()?)));
            }
            if p.symbol("(") {
                let test = p.variant_or()?;
                p.expect(")")?;
                return Ok(test);
            }
            match p.peek() {
                Token::Text(_) => match p.take() {
                    Token::Text(t) => Ok(VariantTest::Is(at, t)),
                    _ => p.error("a variant"),
                },
                _ => p.error("a variant in quotes, such as \"Q6=B\""),
            }
        })
    }

    /// Binary operators of level 0 (`|`) to 4 (product), then unary.
    fn binary(&mut self, level: usize) -> Parsed<Expr> {
        const OPERATORS: [&str; 5] = ["|", ";", "\\", "&", "*"];
        if level == OPERATORS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while *self.peek() == Token::Symbol(OPERATORS[level]) {
            let at = self.at();
            self.next += 1;
            let right = self.binary(level + 1)?;
            let height = left.height.max(right.height);
            let (a, b) = (Box::new(left), Box::new(right));
            let kind = match level {
                0 => ExprKind::Union(a, b),
                1 => ExprKind::Seq(a, b),
                2 => ExprKind::Diff(a, b),
                3 => ExprKind::Inter(a, b),
                _ => ExprKind::Cross(a, b),
            };
            left = self.build(at, height, kind)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let at = self.at();
        if self.symbol("~") {
            return self.deeper(|p| {
                let inner = p.unary()?;
                p.build(at, inner.height, ExprKind::Complement(Box::new(inner)))
            });
        }
        let mut expr = self.atom()?;
        loop {
            let (at, height) = (self.at(), expr.height);
            let boxed = |e: Expr| Box::new(e);
            let kind = if self.symbol("^-1") {
                ExprKind::Inverse(boxed(expr))
            } else if self.symbol("+") || self.symbol("^+") {
                ExprKind::Plus(boxed(expr))
            } else if self.symbol("?") || self.symbol("^?") {
                ExprKind::Opt(boxed(expr))
            } else if self.symbol("^*") || self.postfix_star() {
                ExprKind::Star(boxed(expr))
            } else {
                return Ok(expr);
            };
            expr = self.build(at, height, kind)?;
        }
    }

    /// A `*` that no operand follows is the reflexive closure.
    fn postfix_star(&mut self) -> bool {
        let hit = *self.peek() == Token::Symbol("*") && !self.operand_follows();
        self.next += usize::from(hit);
        hit
    }

    /// Whether the token after a `*` starts an operand, which makes the `*` a product.
    fn operand_follows(&self) -> bool {
        match &self.tokens.get(self.next + 1).map(|t| &t.0) {
            Some(Token::Name(n)) => !KEYWORDS.contains(&n.as_str()),
            Some(Token::Symbol(s)) => matches!(*s, "(" | "[" | "~" | "0"),
            _ => false,
        }
    }

    fn atom(&mut self) -> Parsed<Expr> {
        let at = self.at();
        if self.symbol("(") {
            let inner = self.expr()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.symbol("[") {
            let inner = self.expr()?;
            self.expect("]")?;
            return self.build(at, inner.height, ExprKind::Lift(Box::new(inner)));
        }
        if self.symbol("0") || (self.symbol("{") && self.symbol("}")) {
            return self.build(at, 0, ExprKind::Zero);
        }
        let name = self.name().or_else(|_| self.error("an expression"))?;
        if self.symbol("(") {
            let mut arguments = vec![self.expr()?];
            while self.symbol(",") {
                arguments.push(self.expr()?);
            }
            self.expect(")")?;
            return self.call(at, name, arguments);
        }
        if matches!(self.peek(), Token::Name(n) if !KEYWORDS.contains(&n.as_str())) {
            let (at, argument) = (self.at(), self.name()?);
            let argument = self.build(at, 0, ExprKind::Name(argument))?;
            return self.call(at, name, vec![argument]);
        }
        self.build(at, 0, ExprKind::Name(name))
    }

    fn call(&self, at: Position, name: String, arguments: Vec<Expr>) -> Parsed<Expr> {
        let height = arguments.iter().map(|a| a.height).max().unwrap_or(0);
        self.build(at, height, ExprKind::Call(name, arguments))
    }

    /// An expression over operands of a height.
    fn build(&self, at: Position, operands: u16, kind: ExprKind) -> Parsed<Expr> {
        if operands == HEIGHT {
            let message = format!("an expression may have at most {HEIGHT} operators inside each other");
            return Err(LoadError::new(self.file, at, message).hint("name its parts with `let`"));
        }
        Ok(Expr { at, kind, height: operands + 1 })
    }
}
