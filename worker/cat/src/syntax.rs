//! The parsed text of a cat file, before names mean anything.

use crate::error::Position;

/// A statement with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Where it starts.
    pub at: Position,
    /// What it is.
    pub kind: StatementKind,
}

/// Kinds of statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// `let [rec] a = .. and b = ..`
    Let {
        /// `rec`
        recursive: bool,
        /// In the order of the text.
        bindings: Vec<Binding>,
    },
    /// `include "file"`
    Include(String),
    /// `[flag] [~] acyclic|irreflexive|empty e [as name]`
    Check {
        /// Reported, never filters.
        flag: bool,
        /// `~`: the property must fail.
        negated: bool,
        /// Which property.
        property: Property,
        /// Of what.
        expr: Expr,
        /// `as name`.
        name: Option<String>,
    },
    /// `(*| switch .. *)` and its like: a declaration, see [`crate::contract`].
    Declaration(String),
}

/// What a check says of its expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the cat keywords")]
pub enum Property {
    Acyclic,
    Irreflexive,
    Empty,
}

/// One `name params = body`.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Where the name stands.
    pub at: Position,
    /// The name.
    pub name: String,
    /// Empty for a value.
    pub params: Vec<String>,
    /// The body.
    pub body: Expr,
}

/// An expression with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Where its operator or first token stands.
    pub at: Position,
    /// What it is.
    pub kind: ExprKind,
    /// Operators on the longest way down, at most [`HEIGHT`].
    pub height: u16,
}

/// Greatest height of an expression: passes over it recurse this deep.
pub const HEIGHT: u16 = 400;

/// Kinds of expression.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "one variant an operator of the language")]
pub enum ExprKind {
    Name(String),
    Zero,
    Call(String, Vec<Expr>),
    Union(Box<Expr>, Box<Expr>),
    Inter(Box<Expr>, Box<Expr>),
    Diff(Box<Expr>, Box<Expr>),
    Seq(Box<Expr>, Box<Expr>),
    Cross(Box<Expr>, Box<Expr>),
    Inverse(Box<Expr>),
    Plus(Box<Expr>),
    Star(Box<Expr>),
    Opt(Box<Expr>),
    Complement(Box<Expr>),
    Lift(Box<Expr>),
    If(VariantTest, Box<Expr>, Box<Expr>),
}

/// Condition of an `if`: a Boolean combination of variant names such as `"Q6=B"`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the usual connectives")]
pub enum VariantTest {
    Is(Position, String),
    Not(Box<VariantTest>),
    And(Box<VariantTest>, Box<VariantTest>),
    Or(Box<VariantTest>, Box<VariantTest>),
}
