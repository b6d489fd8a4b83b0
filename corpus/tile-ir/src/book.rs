//! The book of Tile IR: one entry an operation.
//!
//! An entry gives the variant of [`Op`] with its fields; in square brackets those fields in the order of the bytecode; the
//! word, opcode and first version of each operation with these fields; the types of its results; its text; and the rules
//! that NVIDIA's verifier checks, in their order. From it come the readers and writers of both forms, the operands, the
//! verifier, and what an error suggests. What an operation means is told elsewhere: `run`, `lowering`.
//!
//! Source: operations and binary format chapters of the Tile IR specification; versions of later operations are those
//! that the released compiler states.

use super::field::{Field, FieldMut, Kind, Named};
use super::words::{
    AtomicMode, Convert, FloatOp, Order, Overflow, Predicate, Reduction, Rounding, Scope, Sign,
};
use super::{Access, Assumption, Block, Constant, Hints, IntegerOp, Place, Type, Value};
use crate::Scalar;
use crate::bytecode::Bytecode;
use Piece::{Arrow, Comma, Flag, Index, Its, More, Token, Typed, Types};
use States::{Each, Indices, One, Result, Waits};
use Text::Pieces;
use std::mem::discriminant;

/// One operation: a word with its syntax in both forms.
pub(crate) struct Form {
    /// The word, without the prefix `cuda_tile.`.
    pub(crate) word: &'static str,
    /// The opcode.
    pub(crate) code: u64,
    /// The first version of the bytecode that has it.
    pub(crate) since: Bytecode,
    /// The results that every such operation has.
    pub(crate) gives: &'static [Gives],
    pub(crate) text: Text,
    /// An operation of this form, to be filled in.
    pub(crate) blank: fn() -> Op,
    /// Whether an operation has this form.
    is: fn(&Op) -> bool,
}

/// The text after the word.
pub(crate) enum Text {
    /// One piece after the other.
    Pieces(&'static [Piece]),
    /// A constant with its elements.
    Constant,
    /// `make_tensor_view`, whose numbers stand in its type, too.
    TensorView,
    /// `if`
    If,
    /// `for`
    For,
    /// `loop`
    Loop,
}

/// A piece of a text.
pub(crate) enum Piece {
    /// The field of this name, in the syntax of its kind.
    Its(&'static str),
    /// The word, if the flag of this name is set.
    Flag(&'static str, &'static str),
    /// `,`
    Comma,
    /// `, %v`, if there is one.
    More(&'static str),
    /// `token=%v`, if there is one, printed with this sign.
    Token(&'static str, &'static str),
    /// `[%i, %j]`
    Index(&'static str),
    /// `%v, %w : T, U`, or nothing.
    Typed(&'static str),
    /// `: T, U`
    Types(&'static [States]),
    /// `-> T, U`: the types of the results.
    Arrow,
}

/// What types after a colon state.
pub(crate) enum States {
    /// One type for each of these values.
    Each(&'static str),
    /// One type for all of these.
    One(&'static [&'static str]),
    /// One type for all of these and for each result.
    Result(&'static [&'static str]),
    /// One type for all indices, one for each, or none.
    Indices(&'static str),
    /// The type of this token, if there is one.
    Waits(&'static str),
}

/// The type of a result, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    /// Any type.
    Any,
    /// A tile.
    Tile,
    /// A token.
    Token,
    /// A partition view.
    Partition,
    /// A strided view.
    Strided,
    /// A view that gathers and scatters.
    Gather,
    /// A coordinate of a tile block, or a number of them.
    Coordinate,
}

impl Gives {
    /// Whether a result can have this type.
    pub(crate) fn fits(self, ty: &Type) -> bool {
        match self {
            Gives::Any => true,
            Gives::Tile => ty.tile().is_some(),
            Gives::Token => *ty == Type::Token,
            Gives::Partition => {
                matches!(ty, Type::View(view) if view.steps.is_none() && view.sparse.is_none())
            }
            Gives::Strided => matches!(ty, Type::View(view) if view.steps.is_some()),
            Gives::Gather => matches!(ty, Type::View(view) if view.sparse.is_some()),
            Gives::Coordinate => *ty == Type::scalar(Scalar::I32),
        }
    }
}

macro_rules! since {
    () => {
        Bytecode::V13_1
    };
    ($version:ident) => {
        Bytecode::$version
    };
}

macro_rules! book {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(($only:ident: $only_ty:ty))? $({ $($field:ident: $ty:ty),+ })?
            [$($slot:ident $(.$part:ident)? $(@$version:ident)?),*]
            $($word:literal = $code:literal $(@$since:ident)? $(with $set:ident = $value:expr)?;)+
            gives $gives:expr, $text:expr;
            rules [$($rules:tt)*];
    )+) => {
        /// An operation. `token` is the token it waits for, `mask` selects the elements it accesses. Each variant has only
        /// the fields that its operations can have; results are in [`super::Instr`].
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "fields are the operands, in the words of the specification")]
        pub enum Op {
            $($(#[$doc])* $variant $(($only_ty))? $({ $($field: $ty),+ })?),+
        }

        impl Op {
            /// The fields in the order of the bytecode.
            pub(crate) fn fields(&self) -> Vec<Named<Field<'_>>> {
                let mut out = Vec::new();
                match self {
                    $(Op::$variant $(($only))? $({ $($field),+ })? => {
                        $($slot $(.$part)?.field(&mut |field| out.push(Named {
                            name: concat!(stringify!($slot) $(, ".", stringify!($part))?),
                            since: since!($($version)?),
                            field,
                        }));)*
                    })+
                }
                out
            }

            /// The same fields, mutable.
            pub(crate) fn fields_mut(&mut self) -> Vec<Named<FieldMut<'_>>> {
                let mut out = Vec::new();
                match self {
                    $(Op::$variant $(($only))? $({ $($field),+ })? => {
                        $($slot $(.$part)?.field_mut(&mut |field| out.push(Named {
                            name: concat!(stringify!($slot) $(, ".", stringify!($part))?),
                            since: since!($($version)?),
                            field,
                        }));)*
                    })+
                }
                out
            }
        }

        /// Operations to be filled in, by their variants.
        #[expect(non_snake_case, reason = "named like the variants")]
        mod blank {
            use super::*;

            $(pub(super) fn $variant() -> Op {
                Op::$variant $((<$only_ty>::default()))? $({ $($field: <$ty>::default()),+ })?
            })+
        }

        /// All operations.
        pub(crate) static FORMS: &[Form] = &[
            $($(Form {
                word: $word,
                code: $code,
                since: since!($($since)?),
                gives: $gives,
                text: $text,
                blank: || {
                    blank::$variant()$(.with(|op| if let Op::$variant { $set, .. } = op { *$set = $value; }))?
                },
                is: |op| {
                    matches!(op, Op::$variant { .. })
                        $(&& matches!(op, Op::$variant { $set, .. } if discriminant($set) == discriminant(&$value)))?
                },
            }),+),+
        ];
    };
}

impl Form {
    /// The operation with this word.
    pub(crate) fn of_word(word: &str) -> Option<&'static Form> {
        FORMS.iter().find(|form| form.word == word)
    }

    /// The operation with this opcode.
    pub(crate) fn of_code(code: u64) -> Option<&'static Form> {
        FORMS.iter().find(|form| form.code == code)
    }
}

impl Op {
    fn with(mut self, set: impl FnOnce(&mut Op)) -> Op {
        set(&mut self);
        self
    }

    pub(crate) fn form(&self) -> &'static Form {
        FORMS.iter().find(|form| (form.is)(self)).expect("each variant has a form")
    }
}

/// A value and a token.
const READS: &[Gives] = &[Gives::Any, Gives::Token];
/// Two operands and their result have one type.
const PAIR: &[Piece] = &[Its("a"), Comma, Its("b"), Its("op"), Types(&[Result(&["a", "b"])])];
/// One value becomes a value of another type.
const BECOMES: &[Piece] = &[Its("value"), Types(&[Each("value")]), Arrow];
/// Only the type of the result is stated.
const MADE: &[Piece] = &[Types(&[Result(&[])])];
/// Values with their types, or nothing.
const ENDS: &[Piece] = &[Typed("values")];

/// Calls a macro with all entries.
macro_rules! operations {
    ($then:ident) => {
        $then! {
        Constant(constant: Constant) [constant]
            "constant" = 0x10;
            gives &[Gives::Tile], Text::Constant;
            rules [constant(constant)];

        /// The numbers 0, 1, 2, ..
        Iota []
            "iota" = 0x3a;
            gives &[Gives::Tile], Pieces(MADE);
            rules [iota()];

        Convert { to: Convert, value: Value } [to, value]
            "reshape" = 0x5b with to = Convert::Reshape;
            "broadcast" = 0x0b with to = Convert::Broadcast;
            "bitcast" = 0x09 with to = Convert::Bitcast;
            "ptr_to_ptr" = 0x57 with to = Convert::PtrToPtr;
            gives &[Gives::Any], Pieces(BECOMES);
            rules [convert(to, value)];

        Extend { sign: Sign, value: Value } [sign, value]
            "exti" = 0x25;
            gives &[Gives::Any], Pieces(&[Its("value"), Its("sign"), Types(&[Each("value")]), Arrow]);
            rules [wider(value)];

        Truncate { overflow: Overflow, value: Value } [overflow, value]
            "trunci" = 0x6b;
            gives &[Gives::Any], Pieces(&[Its("value"), Its("overflow"), Types(&[Each("value")]), Arrow]);
            rules [narrower(value)];

        /// Moves pointers by a number of elements.
        Offset { pointer: Value, offset: Value } [pointer, offset]
            "offset" = 0x51;
            gives &[Gives::Any], Pieces(&[
                Its("pointer"), Comma, Its("offset"), Types(&[Each("pointer"), Each("offset")]), Arrow,
            ]);
            rules [moved(pointer, offset)];

        Integer { op: IntegerOp, a: Value, b: Value } [op, a, b]
            "addi" = 0x03 with op = IntegerOp::Add(Overflow::Wraps);
            "subi" = 0x68 with op = IntegerOp::Sub(Overflow::Wraps);
            "muli" = 0x4e with op = IntegerOp::Mul(Overflow::Wraps);
            "andi" = 0x04 with op = IntegerOp::And;
            "ori" = 0x52 with op = IntegerOp::Or;
            "xori" = 0x6c with op = IntegerOp::Xor;
            "maxi" = 0x46 with op = IntegerOp::Max(Sign::Unsigned);
            "mini" = 0x48 with op = IntegerOp::Min(Sign::Unsigned);
            "shli" = 0x60 with op = IntegerOp::Shl(Overflow::Wraps);
            "shri" = 0x61 with op = IntegerOp::Shr(Sign::Unsigned);
            "remi" = 0x5a with op = IntegerOp::Rem(Sign::Unsigned);
            gives &[Gives::Any], Pieces(PAIR);
            rules [whole(a), pair(a, b)];

        Negate { overflow: Overflow, value: Value } [overflow @V13_2, value]
            "negi" = 0x50;
            gives &[Gives::Any], Pieces(&[Its("value"), Its("overflow"), Types(&[Result(&["value"])])]);
            rules [whole(value), negates(overflow), keeps(value)];

        Float { op: FloatOp, rounding: Rounding, flush: bool, a: Value, b: Value } [op, flush, rounding, a, b]
            "addf" = 0x02 with op = FloatOp::Add;
            "subf" = 0x67 with op = FloatOp::Sub;
            "mulf" = 0x4c with op = FloatOp::Mul;
            gives &[Gives::Any], Pieces(&[
                Its("a"), Comma, Its("b"), Its("rounding"), Flag("flush", "flush_to_zero"),
                Types(&[Result(&["a", "b"])]),
            ]);
            rules [real(flush, a), pair(a, b)];

        Compare { predicate: Predicate, sign: Sign, a: Value, b: Value } [predicate, sign, a, b]
            "cmpi" = 0x0f;
            gives &[Gives::Any], Pieces(&[
                Its("predicate"), Its("a"), Comma, Its("b"), Comma, Its("sign"), Types(&[One(&["a", "b"])]), Arrow,
            ]);
            rules [compared(a, b)];

        Select { condition: Value, a: Value, b: Value } [condition, a, b]
            "select" = 0x5f;
            gives &[Gives::Any], Pieces(&[
                Its("condition"), Comma, Its("a"), Comma, Its("b"),
                Types(&[Each("condition"), Result(&["a", "b"])]),
            ]);
            rules [chooses(condition, a), pair(a, b)];

        Assume { that: Assumption, value: Value } [that, value]
            "assume" = 0x06;
            gives &[Gives::Any], Pieces(&[Its("that"), Comma, Its("value"), Types(&[Result(&["value"])])]);
            rules [assumed(that, value)];

        TileBlockId []
            "get_tile_block_id" = 0x30;
            gives &[Gives::Coordinate; 3], Pieces(MADE);
            rules [coordinates()];

        NumTileBlocks []
            "get_num_tile_blocks" = 0x2e;
            gives &[Gives::Coordinate; 3], Pieces(MADE);
            rules [coordinates()];

        /// Makes a tensor view; `shape` and `strides` hold only the values that the result type leaves open.
        TensorView { base: Value, shape: Vec<Value>, strides: Vec<Value> } [base, shape, strides]
            "make_tensor_view" = 0x43;
            gives &[Gives::Any], Text::TensorView;
            rules [tensor_view(base, shape, strides)];

        PartitionView { tensor: Value } [tensor]
            "make_partition_view" = 0x42;
            gives &[Gives::Partition], Pieces(&[Its("tensor"), Types(&[Result(&[])])]);
            rules [cut(tensor)];

        StridedView { tensor: Value } [tensor]
            "make_strided_view" = 0x74;
            gives &[Gives::Strided], Pieces(&[Its("tensor"), Types(&[Result(&[])])]);
            rules [cut(tensor)];

        GatherView { tensor: Value } [tensor]
            "make_gather_scatter_view" = 0x73 @V13_3;
            gives &[Gives::Gather], Pieces(&[Its("tensor"), Types(&[Result(&[])])]);
            rules [cut(tensor)];

        MakeToken []
            "make_token" = 0x44;
            gives &[Gives::Token], Pieces(MADE);
            rules [makes_token()];

        JoinTokens(tokens: Vec<Value>) [tokens]
            "join_tokens" = 0x3c;
            gives &[Gives::Token], Pieces(&[Its("tokens"), Types(&[Result(&["tokens"])])]);
            rules [joins(tokens), makes_token()];

        LoadPtr {
            pointers: Value, access: Access, hints: Hints, mask: Option<Value>, padding: Option<Value>,
            token: Option<Value>
        } [access, hints, pointers, mask, padding, token]
            "load_ptr_tko" = 0x3d;
            gives READS, Pieces(&[
                Its("access"), Its("pointers"), More("mask"), More("padding"), Token("token", "="), Its("hints"),
                Types(&[Each("pointers"), Each("mask"), Each("padding")]), Arrow,
            ]);
            rules [
                hinted(hints), load_order(access), loads(pointers), masks(pointers, mask), pads(mask, padding),
                waits(token)
            ];

        StorePtr {
            pointers: Value, value: Value, access: Access, hints: Hints, mask: Option<Value>, token: Option<Value>
        } [access, hints, pointers, value, mask, token]
            "store_ptr_tko" = 0x65;
            gives &[Gives::Token], Pieces(&[
                Its("access"), Its("pointers"), Comma, Its("value"), More("mask"), Token("token", "="),
                Its("hints"), Types(&[Each("pointers"), Each("value"), Each("mask")]), Arrow,
            ]);
            rules [
                hinted(hints), store_order(access), stores(pointers, value), masks(pointers, mask),
                waits(token), makes_token()
            ];

        LoadView { place: Place, access: Access, hints: Hints, token: Option<Value> }
            [access, hints, place.inbounds @V13_4, place.view, place.index, token]
            "load_view_tko" = 0x3e;
            gives READS, Pieces(&[
                Its("access"), Its("place.view"), Index("place.index"), Token("token", " = "), Its("hints"),
                Its("place.inbounds"), Types(&[Each("place.view"), Indices("place.index")]), Arrow,
            ]);
            rules [hinted(hints), load_order(access), ordinary(place), loads_tile(place), waits(token)];

        StoreView { place: Place, value: Value, access: Access, hints: Hints, token: Option<Value> }
            [access, hints, place.inbounds @V13_4, value, place.view, place.index, token]
            "store_view_tko" = 0x66;
            gives &[Gives::Token], Pieces(&[
                Its("access"), Its("value"), Comma, Its("place.view"), Index("place.index"),
                Token("token", " = "), Its("hints"), Its("place.inbounds"),
                Types(&[Each("value"), Each("place.view"), Indices("place.index")]), Arrow,
            ]);
            rules [
                hinted(hints), store_order(access), ordinary(place), stores_tile(place, value), waits(token),
                makes_token()
            ];

        AtomicRmw {
            pointers: Value, mode: AtomicMode, value: Value, order: Order, scope: Scope, mask: Option<Value>,
            token: Option<Value>
        } [order, scope, mode, pointers, value, mask, token]
            "atomic_rmw_tko" = 0x08;
            gives READS, Pieces(&[
                Its("order"), Its("scope"), Its("pointers"), Comma, Its("mode"), Comma, Its("value"),
                More("mask"), Token("token", "="), Types(&[Each("pointers"), Each("value"), Each("mask")]), Arrow,
            ]);
            rules [
                changes(pointers, value), masks(pointers, mask), waits(token), combines(mode, pointers),
                atomic_order(order)
            ];

        AtomicCas {
            pointers: Value, compare: Value, value: Value, order: Order, scope: Scope, mask: Option<Value>,
            token: Option<Value>
        } [order, scope, pointers, compare, value, mask, token]
            "atomic_cas_tko" = 0x07;
            gives READS, Pieces(&[
                Its("order"), Its("scope"), Its("pointers"), Comma, Its("compare"), Comma, Its("value"),
                More("mask"), Token("token", "="),
                Types(&[Each("pointers"), One(&["value", "compare"]), Each("mask")]), Arrow,
            ]);
            rules [swaps(pointers, compare, value), masks(pointers, mask), waits(token), atomic_order(order)];

        AtomicRedView {
            place: Place, mode: AtomicMode, value: Value, order: Order, scope: Scope, token: Option<Value>
        } [order, scope, mode, place.inbounds @V13_5, place.view, place.index, value, token]
            "atomic_red_view_tko" = 0x75 @V13_3;
            gives &[Gives::Token], Pieces(&[
                Its("order"), Its("scope"), Its("place.view"), Index("place.index"), Comma, Its("mode"), Comma,
                Its("value"), Token("token", " = "), Its("place.inbounds"),
                Types(&[Each("value"), Each("place.view"), Indices("place.index")]), Arrow,
            ]);
            rules [
                unpadded(place), ordinary(place), stores_tile(place, value), combines_view(mode, place),
                view_order(order, scope), waits(token), makes_token()
            ];

        MultimemLoadReduce { place: Place, reduction: Reduction, access: Access, token: Option<Value> }
            [access, reduction, place.inbounds @V13_5, place.view, place.index, token]
            "multimem_load_reduce_view_tko" = 0x7b @V13_5;
            gives READS, Pieces(&[
                Its("access"), Its("place.view"), Index("place.index"), Token("token", " = "),
                Its("place.inbounds"), Its("reduction"),
                Types(&[Each("place.view"), Indices("place.index"), Waits("token")]), Arrow,
            ]);
            rules [
                load_order(access), multicast(place), loads_tile(place), waits(token),
                reduces(place, reduction)
            ];

        MultimemReduce {
            place: Place, reduction: Reduction, value: Value, order: Order, scope: Scope, token: Option<Value>
        } [order, scope, reduction, place.inbounds @V13_5, place.view, value, place.index, token]
            "multimem_reduce_view_tko" = 0x7c @V13_5;
            gives &[Gives::Token], Pieces(&[
                Its("order"), Its("scope"), Its("place.view"), Comma, Its("value"), Index("place.index"),
                Token("token", " = "), Its("place.inbounds"), Its("reduction"),
                Types(&[Each("place.view"), Each("value"), Indices("place.index"), Waits("token")]), Arrow,
            ]);
            rules [
                multicast(place), stores_tile(place, value), waits(token), makes_token(),
                reduces(place, reduction), reduce_order(order)
            ];

        MultimemStore { place: Place, value: Value, access: Access, token: Option<Value> }
            [access, place.inbounds @V13_5, place.view, value, place.index, token]
            "multimem_store_view_tko" = 0x7d @V13_5;
            gives &[Gives::Token], Pieces(&[
                Its("access"), Its("place.view"), Comma, Its("value"), Index("place.index"),
                Token("token", " = "), Its("place.inbounds"),
                Types(&[Each("place.view"), Each("value"), Indices("place.index"), Waits("token")]), Arrow,
            ]);
            rules [store_order(access), multicast(place), stores_tile(place, value), waits(token), makes_token()];

        AliasFence { token: Value } [token]
            "memory_fence_alias_tko" = 0x7a @V13_4;
            gives &[Gives::Token], Pieces(&[Its("token")]);
            rules [waits_for(token), makes_token()];

        GdcWait { token: Option<Value> } [token]
            "gdc_wait_tko" = 0x78 @V13_4;
            gives &[Gives::Token], Pieces(&[Token("token", " = "), Arrow]);
            rules [waits(token), makes_token()];

        GdcLaunch { token: Option<Value> } [token]
            "gdc_launch_dependents_tko" = 0x77 @V13_4;
            gives &[Gives::Token], Pieces(&[Token("token", " = "), Arrow]);
            rules [waits(token), makes_token()];

        If { condition: Value, then: Block, otherwise: Option<Block> } [condition, then, otherwise]
            "if" = 0x32;
            gives &[], Text::If;
            rules [branch(condition, then, otherwise)];

        /// Parameters of the body are the counter, then the loop-carried values.
        For { unsigned: bool, bounds: [Value; 3], inits: Vec<Value>, body: Block }
            [unsigned @V13_2, bounds, inits, body]
            "for" = 0x29;
            gives &[], Text::For;
            rules [counted(bounds, inits, body)];

        Loop { inits: Vec<Value>, body: Block } [inits, body]
            "loop" = 0x41;
            gives &[], Text::Loop;
            rules [repeated(inits, body)];

        Yield(values: Vec<Value>) [values]
            "yield" = 0x6d;
            gives &[], Pieces(ENDS);
            rules [yields(values)];

        Continue(values: Vec<Value>) [values]
            "continue" = 0x11;
            gives &[], Pieces(ENDS);
            rules [continues(values)];

        Break(values: Vec<Value>) [values]
            "break" = 0x0a;
            gives &[], Pieces(ENDS);
            rules [breaks(values)];

        Return(values: Vec<Value>) [values]
            "return" = 0x5c;
            gives &[], Pieces(ENDS);
            rules [returns(values)];
        }
    };
}
operations!(book);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_and_opcodes_are_told_apart() {
        let words: BTreeSet<&str> = FORMS.iter().map(|form| form.word).collect();
        let codes: BTreeSet<u64> = FORMS.iter().map(|form| form.code).collect();
        assert_eq!((words.len(), codes.len()), (FORMS.len(), FORMS.len()));
        for form in FORMS {
            assert_eq!((form.blank)().form().word, form.word);
        }
    }

    #[test]
    fn texts_name_fields_that_are_there() {
        for form in FORMS {
            let mut op = (form.blank)();
            let changed: Vec<&str> = op.fields_mut().iter().map(|named| named.name).collect();
            let names: Vec<&str> = op.fields().iter().map(|named| named.name).collect();
            assert_eq!(names, changed, "{}", form.word);
            let Text::Pieces(pieces) = form.text else { continue };
            let mut named: Vec<&str> = Vec::new();
            for piece in pieces {
                match piece {
                    Its(name) | Flag(name, _) | More(name) | Token(name, _) | Index(name) | Typed(name) => {
                        named.push(name);
                    }
                    Types(states) => named.extend(states.iter().flat_map(|state| match state {
                        Each(name) | Indices(name) | Waits(name) => std::slice::from_ref(name),
                        One(names) | Result(names) => *names,
                    })),
                    Comma | Arrow => {}
                }
            }
            // Arithmetic without a promise has nothing to say after its operands.
            named.retain(|name| *name != "op");
            assert!(named.iter().all(|name| names.contains(name)), "{}: {named:?} of {names:?}", form.word);
            let stated: BTreeSet<&str> = names.into_iter().filter(|name| *name != "op").collect();
            assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), stated, "{}", form.word);
        }
    }
}
