//! From parsed text to a [`Model`]: names resolved, functions expanded, types and growth found, checks classified.

use crate::error::{LoadError, Position, closest};
use crate::model::{Model, Node, NodeId, Profile, Switch, Type};
use crate::parse::parse;
use crate::syntax::{Binding, Expr, ExprKind, Statement, StatementKind, VariantTest};
use crate::vocabulary::{rel, rels, set, sets};
use std::collections::BTreeMap;
use std::rc::Rc;

mod classify;
pub(crate) use classify::operands;

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
    /// The text of a file, or `None`.
    fn open(&self, name: &str) -> Option<String>;
}

/// Name under which [`Variants`] choose a profile, as in `profile` -> `practice`.
pub const PROFILE: &str = "profile";
/// The profile every model has: each switch at its default.
pub const LETTER: &str = "letter";

/// Switch values by switch name, for example `Q6` -> `B`; under [`PROFILE`] the name of a profile, which gives the values
/// of switches that are not named.
pub type Variants = BTreeMap<String, String>;

/// Loads a model. Every variant must be declared by the text (`(*| switch .. *)`) with that value.
pub fn load(name: &str, text: &str, library: &dyn Library, variants: &Variants) -> Result<Model, LoadError> {
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
    loader.file(name, text)?;
    loader.unknown_variants(name)?;
    if loader.model.checks.iter().all(|c| c.flag) && loader.model.names.is_empty() && name != "any" {
        let start = Position { line: 1, column: 1 };
        return Err(
            LoadError::new(name, start, "this file defines and checks nothing").hint("is it a cat model?")
        );
    }
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
    open: Vec<String>,
    includes: usize,
    calls: usize,
    expansions: usize,
    bindings: usize,
    work: usize,
    nesting: usize,
}

type Loaded<T> = Result<T, LoadError>;

impl Loader<'_> {
    fn file(&mut self, name: &str, text: &str) -> Loaded<()> {
        self.open.push(name.into());
        self.model.text.push_str(text);
        for statement in parse(name, text)? {
            self.statement(name, &statement)?;
        }
        self.open.pop();
        Ok(())
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
            StatementKind::Switch(text) => self.switch(file, statement.at, text),
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
        let stem = |p: &str| p.strip_suffix(".cat").unwrap_or(p).to_owned();
        if self.open.iter().any(|o| stem(o) == stem(path)) {
            let chain = self.open.join("` includes `");
            return Err(LoadError::new(file, at, format!("`{chain}` includes `{path}` again"))
                .hint("an include may not lead back to a file that is still open"));
        }
        self.includes += 1;
        if self.includes > INCLUDES {
            return Err(LoadError::new(file, at, format!("more than {INCLUDES} files included")));
        }
        let Some(text) = self.library.open(path) else {
            return Err(LoadError::new(file, at, format!("cannot open `{path}`")).hint(
                "shipped files are named as in `moire models list`; others are looked for beside this one",
            ));
        };
        self.file(path, &text)
    }

    /// `profile practice = TQ5=B TQ7=B : one line`, before the switches it sets
    fn profile(&mut self, file: &str, at: Position, text: &str) -> Loaded<()> {
        Self::limit(file, at, self.model.profiles.len(), SWITCHES, "profiles")?;
        let bad = || {
            LoadError::new(file, at, "this declaration is not understood")
                .hint("write `(*| profile NAME = SWITCH=VALUE .. : what it is *)`")
        };
        let (head, doc) = text.split_once(" : ").ok_or_else(bad)?;
        let rest = head.trim().strip_prefix("profile ").ok_or_else(bad)?;
        let (name, settings) = rest.split_once('=').ok_or_else(bad)?;
        let one = |w: &str| w.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())).ok_or_else(bad);
        let settings = settings.split_whitespace().map(one).collect::<Loaded<Vec<_>>>()?;
        let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
        self.model.profiles.push(Profile { name: name.trim().into(), settings, doc });
        Ok(())
    }

    /// The value asked for, by name or by a profile.
    fn asked(&self, switch: &str) -> Option<&String> {
        let chosen = self.requested.get(PROFILE);
        let profile = self.model.profiles.iter().find(|p| Some(&p.name) == chosen);
        let settings = profile.into_iter().flat_map(|p| &p.settings);
        let of_profile = settings.filter(|s| s.0 == switch).map(|s| &s.1).next();
        self.requested.get(switch).or(of_profile)
    }

    /// `switch Q6 = A | B | C default A contests B : one line`
    fn switch(&mut self, file: &str, at: Position, text: &str) -> Loaded<()> {
        if text.trim_start().starts_with("profile ") {
            return self.profile(file, at, text);
        }
        Self::limit(file, at, self.model.switches.len(), SWITCHES, "switches")?;
        let bad = || {
            LoadError::new(file, at, "this declaration is not understood")
                .hint("write `(*| switch NAME = A | B default A contests B : what it is *)`")
        };
        let (head, doc) = text.split_once(" : ").ok_or_else(bad)?;
        let rest = head.trim().strip_prefix("switch ").ok_or_else(bad)?;
        let (name, rest) = rest.split_once('=').ok_or_else(bad)?;
        let (values, rest) = rest.split_once("default").ok_or_else(bad)?;
        let (default, contesting) = rest.split_once("contests").unwrap_or((rest, ""));
        let words = |s: &str| -> Vec<String> {
            s.split(['|', '/', ' ', '\n', '\r', '\t']).filter(|w| !w.is_empty()).map(str::to_owned).collect()
        };
        let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
        let switch = Switch {
            name: name.trim().into(),
            values: words(values),
            default: default.trim().into(),
            contesting: words(contesting),
            doc,
        };
        let named = |v: &String| switch.values.contains(v);
        if !named(&switch.default) || !switch.contesting.iter().all(named) {
            return Err(bad());
        }
        let value = match self.asked(&switch.name) {
            Some(v) if named(v) => v.clone(),
            Some(v) => {
                return Err(LoadError::new(file, at, format!("switch {} has no value `{v}`", switch.name))
                    .hint(format!("its values are {}", switch.values.join(", "))));
            }
            None => switch.default.clone(),
        };
        self.model.variants.insert(switch.name.clone(), value);
        self.model.switches.retain(|s| s.name != switch.name);
        self.model.switches.push(switch);
        Ok(())
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
        let group = u32::try_from(self.model.groups.len()).unwrap_or(u32::MAX);
        self.model.groups.push(Vec::new());
        let mut env = (*self.env).clone();
        for (member, b) in bindings.iter().enumerate() {
            if !b.params.is_empty() {
                return Err(LoadError::new(file, b.at, "a recursive definition takes no parameters"));
            }
            let member = u32::try_from(member).unwrap_or(u32::MAX);
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
            let member = u32::try_from(member).unwrap_or(u32::MAX);
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
