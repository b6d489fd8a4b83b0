//! From parsed text to a [`Model`]: names resolved, functions expanded, types and growth found, checks classified.

use crate::contract::Settings;
use crate::error::{LoadError, Position, closest};
use crate::include::{Include, Source};
use crate::model::Model;
use crate::node::{Node, NodeId, Type, group_number};
use crate::parse::parse;
use crate::syntax::{Binding, Expr, ExprKind, Statement, StatementKind, VariantTest};
use crate::vocabulary::{rel, rels, set, sets};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

mod classify;
mod coherence;
mod declare;

/// Operations of one model; ours have about two hundred.
const NODES: usize = 20_000;
/// Files read by `include`, counted each time.
const INCLUDES: usize = 64;
/// Calls of functions inside functions.
const CALLS: usize = 64;
/// Function calls expanded in all.
const EXPANSIONS: usize = 20_000;

/// Expressions resolved in all, functions expanded.
const WORK: usize = 1_000_000;
/// Expressions being resolved inside each other, through calls.
const NESTING: usize = 600;
/// `let` statements, checks, `let rec` groups and switches.
const BINDINGS: usize = 2_000;
const CHECKS: usize = 500;
const GROUPS: usize = 64;
const SWITCHES: usize = 64;

/// Where `include` finds files; the caller decides what may be read.
pub trait Library {
    /// The file that `include "path"` in the file `from` means, and its text.
    fn open(&self, from: &Source, path: &str) -> Option<(Source, String)>;
}

/// Name under which [`Variants`] choose a profile, as in `profile` -> `practice`.
pub const PROFILE: &str = "profile";
/// The profile every model has: each switch at its default.
pub const LETTER: &str = "letter";

/// Switch values by switch name, for example `Q6` -> `B`; under [`PROFILE`] the name of a profile, which gives the values
/// of switches that are not named.
pub type Variants = BTreeMap<String, String>;

/// Loads a model of a user. Every variant must be declared by the text (`(*| switch .. *)`) with that value.
pub fn load(name: &str, text: &str, library: &dyn Library, variants: &Variants) -> Result<Model, LoadError> {
    load_from(Source { name: name.into(), shipped: false }, text, library, variants)
}

/// As [`load`], for the text of this file, which may be a shipped one.
pub fn load_from(
    file: Source,
    text: &str,
    library: &dyn Library,
    variants: &Variants,
) -> Result<Model, LoadError> {
    let (name, shipped) = (&*file.name.clone(), file.shipped);
    let mut loader = Loader {
        library,
        requested: variants,
        model: Model {
            name: name.into(),
            nodes: Vec::new(),
            facts: Vec::new(),
            groups: Vec::new(),
            checks: Vec::new(),
            switches: Vec::new(),
            profiles: Vec::new(),
            variants: Variants::new(),
            names: BTreeMap::new(),
            text: String::new(),
            settings: Settings::default(),
            features: BTreeSet::new(),
            licences: Vec::new(),
            trusted: None,
            includes: Vec::new(),
            shared: std::sync::OnceLock::new(),
        },
        known: BTreeMap::new(),
        env: Rc::new(BTreeMap::new()),
        open: Vec::new(),
        includes: 0,
        calls: 0,
        expansions: 0,
        bindings: 0,
        work: 0,
        nesting: 0,
    };
    loader.file(file, text)?;
    loader.unknown_variants(name)?;
    loader.coherence(name, shipped)?;
    if loader.model.checks.iter().all(|c| c.flag) && loader.model.names.is_empty() {
        let start = Position { line: 1, column: 1 };
        return Err(
            LoadError::new(name, start, "this file defines and checks nothing").hint("is it a cat model?")
        );
    }
    loader.model.grant();
    Ok(loader.model)
}

type Env = Rc<BTreeMap<String, Meaning>>;

#[derive(Clone)]
enum Meaning {
    Value(NodeId),
    Function { params: Rc<Vec<String>>, body: Rc<Expr>, file: Rc<str>, env: Env },
}

struct Loader<'a> {
    library: &'a dyn Library,
    requested: &'a Variants,
    model: Model,
    known: BTreeMap<Node, NodeId>,
    env: Env,
    open: Vec<Source>,
    includes: usize,
    calls: usize,
    expansions: usize,
    bindings: usize,
    work: usize,
    nesting: usize,
}

type Loaded<T> = Result<T, LoadError>;

impl Loader<'_> {
    fn file(&mut self, source: Source, text: &str) -> Loaded<()> {
        let name = source.name.clone();
        self.open.push(source);
        self.model.text.push_str(text);
        self.statements(&name, text).map_err(|e| e.excerpt(&name, text))?;
        self.open.pop();
        Ok(())
    }

    fn statements(&mut self, file: &str, text: &str) -> Loaded<()> {
        parse(file, text)?.iter().try_for_each(|statement| self.statement(file, statement))
    }

    /// An error once `count` has reached `limit`.
    fn limit(file: &str, at: Position, count: usize, limit: usize, what: &str) -> Loaded<()> {
        if count < limit {
            return Ok(());
        }
        Err(LoadError::new(file, at, format!("a model may have at most {limit} {what}")))
    }

    fn statement(&mut self, file: &str, statement: &Statement) -> Loaded<()> {
        if let StatementKind::Let { bindings, .. } = &statement.kind {
            self.bindings += bindings.len();
            Self::limit(file, statement.at, self.bindings, BINDINGS, "definitions")?;
        }
        match &statement.kind {
            StatementKind::Declaration(text) => self.declaration(file, statement.at, text),
            StatementKind::Include(path) => self.include(file, statement.at, path),
            StatementKind::Let { recursive: false, bindings } => {
                let mut env = (*self.env).clone();
                for b in bindings {
                    let meaning = self.binding(file, b)?;
                    if let Meaning::Value(node) = meaning {
                        self.model.names.insert(b.name.clone(), node);
                    }
                    env.insert(b.name.clone(), meaning);
                }
                self.env = Rc::new(env);
                Ok(())
            }
            StatementKind::Let { recursive: true, bindings } => self.recursive(file, bindings),
            StatementKind::Check { flag, negated, property, expr, name } => {
                self.check(file, *flag, *negated, *property, expr, name.as_deref())
            }
        }
    }

    fn include(&mut self, file: &str, at: Position, path: &str) -> Loaded<()> {
        self.includes += 1;
        if self.includes > INCLUDES {
            return Err(LoadError::new(file, at, format!("more than {INCLUDES} files included")));
        }
        let from = self.open.last().expect("a statement stands in a file").clone();
        let Some((found, text)) = self.library.open(&from, path) else {
            return Err(LoadError::new(file, at, format!("cannot open `{path}`")).hint(
                "a file is looked for beside the one that includes it; shipped files are named as in `moire models list`",
            ));
        };
        let stem = |name: &str| name.strip_suffix(".cat").unwrap_or(name).to_owned();
        let same = |open: &Source| stem(&open.name) == stem(&found.name) && open.shipped == found.shipped;
        if self.open.iter().any(same) {
            let chain: Vec<&str> = self.open.iter().map(|o| o.name.as_str()).collect();
            let chain = chain.join("` includes `");
            return Err(LoadError::new(file, at, format!("`{chain}` includes `{path}` again"))
                .hint("an include may not lead back to a file that is still open"));
        }
        self.model.includes.push(Include { from, path: path.into(), found: found.clone() });
        self.file(found, &text)
    }

    fn unknown_variants(&self, file: &str) -> Loaded<()> {
        let known = || self.model.switches.iter().map(|s| s.name.as_str());
        if let Some(name) = self.requested.get(PROFILE).filter(|n| *n != LETTER)
            && !self.model.profiles.iter().any(|p| p.name == *name)
        {
            let names: Vec<&str> = self.model.profiles.iter().map(|p| p.name.as_str()).collect();
            let start = Position { line: 1, column: 1 };
            return Err(LoadError::new(file, start, format!("this model has no profile `{name}`"))
                .hint(format!("its profiles are {}", [&[LETTER], &names[..]].concat().join(", "))));
        }
        let profiled = self.model.profiles.iter().flat_map(|p| &p.settings).map(|s| &s.0);
        for name in self.requested.keys().filter(|n| *n != PROFILE).chain(profiled) {
            if !known().any(|k| k == name) {
                let start = Position { line: 1, column: 1 };
                let error = LoadError::new(file, start, format!("this model has no switch `{name}`"));
                let list = known().collect::<Vec<_>>().join(", ");
                return Err(match closest(name, known()) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None if list.is_empty() => error.hint("it has no switches"),
                    None => error.hint(format!("its switches are {list}")),
                });
            }
        }
        Ok(())
    }

    fn binding(&mut self, file: &str, b: &Binding) -> Loaded<Meaning> {
        if b.params.is_empty() {
            return Ok(Meaning::Value(self.expr(file, &b.body)?));
        }
        Ok(Meaning::Function {
            params: Rc::new(b.params.clone()),
            body: Rc::new(b.body.clone()),
            file: file.into(),
            env: Rc::clone(&self.env),
        })
    }

    fn recursive(&mut self, file: &str, bindings: &[Binding]) -> Loaded<()> {
        Self::limit(file, bindings[0].at, self.model.groups.len(), GROUPS, "recursive definitions")?;
        let group = group_number(self.model.groups.len());
        self.model.groups.push(Vec::new());
        let mut env = (*self.env).clone();
        for (member, b) in bindings.iter().enumerate() {
            if !b.params.is_empty() {
                return Err(LoadError::new(file, b.at, "a recursive definition takes no parameters"));
            }
            let member = group_number(member);
            let variable = self.node(file, b.at, Node::Variable { group, member })?;
            env.insert(b.name.clone(), Meaning::Value(variable));
        }
        self.env = Rc::new(env);
        let mut bodies = Vec::new();
        for b in bindings {
            let body = self.expr(file, &b.body)?;
            let facts = self.model.facts(body);
            if facts.ty != Type::Relation || !facts.monotone {
                return Err(LoadError::new(
                    file,
                    b.at,
                    format!("`{}` must be a relation that only grows", b.name),
                )
                .hint("a recursive definition may not stand to the right of `\\` or under `~`"));
            }
            bodies.push(body);
        }
        self.model.groups[group as usize] = bodies;
        let mut env = (*self.env).clone();
        for (member, b) in bindings.iter().enumerate() {
            let member = group_number(member);
            let solved = self.node(file, b.at, Node::Fixpoint { group, member })?;
            self.model.names.insert(b.name.clone(), solved);
            env.insert(b.name.clone(), Meaning::Value(solved));
        }
        self.env = Rc::new(env);
        Ok(())
    }

    fn expr(&mut self, file: &str, e: &Expr) -> Loaded<NodeId> {
        self.work += 1;
        Self::limit(file, e.at, self.work, WORK, "operations, its functions expanded")?;
        Self::limit(
            file,
            e.at,
            self.nesting,
            NESTING,
            "operations inside each other, its functions expanded",
        )?;
        self.nesting += 1;
        let result = self.resolve(file, e);
        self.nesting -= 1;
        result
    }

    fn resolve(&mut self, file: &str, e: &Expr) -> Loaded<NodeId> {
        let at = e.at;
        match &e.kind {
            ExprKind::Name(name) => self.name(file, at, name),
            ExprKind::Zero => self.node(file, at, Node::EmptyRelation),
            ExprKind::Call(name, arguments) => self.call(file, at, name, arguments),
            ExprKind::Union(a, b) => self.pair(file, at, a, b, Node::Union),
            ExprKind::Inter(a, b) => self.pair(file, at, a, b, Node::Inter),
            ExprKind::Diff(a, b) => self.pair(file, at, a, b, Node::Diff),
            ExprKind::Seq(a, b) => {
                let (a, b) = (self.relation(file, a)?, self.relation(file, b)?);
                self.node(file, at, Node::Seq(a, b))
            }
            ExprKind::Cross(a, b) => {
                let (a, b) = (self.set(file, a)?, self.set(file, b)?);
                self.node(file, at, Node::Cross(a, b))
            }
            ExprKind::Inverse(a) => self.one(file, at, a, Node::Inverse),
            ExprKind::Plus(a) => self.one(file, at, a, Node::Plus),
            ExprKind::Star(a) => self.one(file, at, a, Node::Star),
            ExprKind::Opt(a) => self.one(file, at, a, Node::Opt),
            ExprKind::Complement(a) => {
                let a = self.expr(file, a)?;
                self.node(file, at, Node::Complement(a))
            }
            ExprKind::Lift(a) => {
                let a = self.set(file, a)?;
                self.node(file, at, Node::Lift(a))
            }
            ExprKind::If(test, yes, no) => {
                let (yes, no) = (self.expr(file, yes)?, self.expr(file, no)?);
                Ok(if self.test(file, test)? { yes } else { no })
            }
        }
    }

    fn test(&self, file: &str, test: &VariantTest) -> Loaded<bool> {
        Ok(match test {
            VariantTest::Not(a) => !self.test(file, a)?,
            VariantTest::And(a, b) => self.test(file, a)? & self.test(file, b)?,
            VariantTest::Or(a, b) => self.test(file, a)? | self.test(file, b)?,
            VariantTest::Is(at, text) => {
                let (name, value) = text.split_once('=').unwrap_or((text, "on"));
                let switch = self.model.switches.iter().find(|s| s.name == name);
                let Some(switch) = switch else {
                    return Err(LoadError::new(file, *at, format!("switch `{name}` is not declared"))
                        .hint("declare it before its use with `(*| switch .. *)`"));
                };
                if !switch.values.iter().any(|v| v == value) {
                    return Err(LoadError::new(file, *at, format!("switch {name} has no value `{value}`")));
                }
                self.model.variants.get(name).is_some_and(|v| v == value)
            }
        })
    }

    fn name(&mut self, file: &str, at: Position, name: &str) -> Loaded<NodeId> {
        match self.env.get(name) {
            Some(Meaning::Value(node)) => return Ok(*node),
            Some(Meaning::Function { params, .. }) => {
                let list = params.join(", ");
                return Err(LoadError::new(file, at, format!("`{name}` is a function"))
                    .hint(format!("call {name}({list})")));
            }
            None => {}
        }
        if let Some(s) = set(name) {
            return self.node(file, at, Node::Set(s));
        }
        if let Some(r) = rel(name) {
            return self.node(file, at, Node::Relation(r));
        }
        if let Some(part) = self.part(file, at, name)? {
            return Ok(part);
        }
        let known = self.env.keys().map(String::as_str);
        let base = sets::ALL.iter().chain(rels::ALL).map(|(n, _)| *n);
        let error = LoadError::new(file, at, format!("`{name}` is not defined"));
        Err(match closest(name, known.chain(base)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        })
    }

    fn call(&mut self, file: &str, at: Position, name: &str, arguments: &[Expr]) -> Loaded<NodeId> {
        let mut values = Vec::new();
        for a in arguments {
            values.push(self.expr(file, a)?);
        }
        if let ("domain" | "range", [one]) = (name, values.as_slice()) {
            let build = if name == "domain" { Node::Domain } else { Node::Range };
            self.want(file, at, *one, Type::Relation)?;
            return self.node(file, at, build(*one));
        }
        let Some(Meaning::Function { params, body, file: home, env }) = self.env.get(name).cloned() else {
            return Err(LoadError::new(file, at, format!("`{name}` is not a function")));
        };
        if params.len() != values.len() {
            let message = format!("`{name}` takes {} arguments, {} given", params.len(), values.len());
            return Err(LoadError::new(file, at, message));
        }
        self.expansions += 1;
        if self.calls == CALLS || self.expansions > EXPANSIONS {
            return Err(LoadError::new(file, at, format!("calls nest deeper than {CALLS} or are too many")));
        }
        let mut inner = (*env).clone();
        inner.extend(params.iter().cloned().zip(values.into_iter().map(Meaning::Value)));
        let outer = std::mem::replace(&mut self.env, Rc::new(inner));
        self.calls += 1;
        let result = self.expr(&home, &body);
        self.calls -= 1;
        self.env = outer;
        result
    }

    fn one(&mut self, file: &str, at: Position, a: &Expr, build: fn(NodeId) -> Node) -> Loaded<NodeId> {
        let a = self.relation(file, a)?;
        self.node(file, at, build(a))
    }

    fn pair(
        &mut self,
        file: &str,
        at: Position,
        a: &Expr,
        b: &Expr,
        build: fn(NodeId, NodeId) -> Node,
    ) -> Loaded<NodeId> {
        let (mut a, mut b) = (self.expr(file, a)?, self.expr(file, b)?);
        let types = (self.model.facts(a).ty, self.model.facts(b).ty);
        let zero = |l: &Self, n: NodeId| l.model.nodes[n.index()] == Node::EmptyRelation;
        if types.0 != types.1 {
            if zero(self, a) {
                a = self.node(file, at, Node::EmptySet)?;
            } else if zero(self, b) {
                b = self.node(file, at, Node::EmptySet)?;
            } else {
                return Err(LoadError::new(file, at, "one side is a set and the other a relation")
                    .hint("`[S]` turns a set into a relation, `S * T` pairs two sets"));
            }
        }
        self.node(file, at, build(a, b))
    }

    fn relation(&mut self, file: &str, e: &Expr) -> Loaded<NodeId> {
        let node = self.expr(file, e)?;
        self.want(file, e.at, node, Type::Relation)?;
        Ok(node)
    }

    fn set(&mut self, file: &str, e: &Expr) -> Loaded<NodeId> {
        let node = self.expr(file, e)?;
        if self.model.nodes[node.index()] == Node::EmptyRelation {
            return self.node(file, e.at, Node::EmptySet);
        }
        self.want(file, e.at, node, Type::Set)?;
        Ok(node)
    }

    fn want(&self, file: &str, at: Position, node: NodeId, ty: Type) -> Loaded<()> {
        match (self.model.facts(node).ty, ty) {
            (Type::Set, Type::Relation) => Err(LoadError::new(file, at, "expected a relation, found a set")
                .hint("write `[S]` for the identity on a set")),
            (Type::Relation, Type::Set) => Err(LoadError::new(file, at, "expected a set, found a relation")
                .hint("`domain(r)` and `range(r)` are sets")),
            _ => Ok(()),
        }
    }
}
