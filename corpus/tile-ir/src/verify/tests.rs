//! Small modules that break one rule each, and similar ones that break none.

use super::{Reason, verify};
use crate::text::{parse, print};

const HEAD: &str = "testing$func @f(%p: tile<ptr<i32>>, %q: tile<4xptr<i32>>, %x: tile<i32>, %y: tile<4xi32>, \
%b: tile<i1>, %m: tile<4xi1>, %t: token, %l: tile<i64>, %f: tile<4xf32>, %pf: tile<4xptr<f32>>, \
%w: tensor_view<16x16xi32, strides=[16,1]>, %v: partition_view<tile=(4x4), tensor_view<16x16xi32, strides=[16,1]>>, \
%z: partition_view<tile=(4x4), padding_value = zero, tensor_view<16x16xi32, strides=[16,1]>>, %s: tile<4x4xi32>, \
%g: partition_view<tile=(4x4), tensor_view<16x16xi32, strides=[16,1], #cuda_tile.ptr_attr<multicast>>>, \
%mp: tile<ptr<i32, <multicast>>>) {\n";
const V: &str = "partition_view<tile=(4x4), tensor_view<16x16xi32, strides=[16,1]>>";
const Z: &str = "partition_view<tile=(4x4), padding_value = zero, tensor_view<16x16xi32, strides=[16,1]>>";
const G: &str =
    "partition_view<tile=(4x4), tensor_view<16x16xi32, strides=[16,1], #cuda_tile.ptr_attr<multicast>>>";

/// The reason for which the reader or the verifier refuses the body.
fn reason(body: &str) -> Option<Reason> {
    let body = body.replace("$V", V).replace("$Z", Z).replace("$G", G);
    let text = format!("{HEAD}{body}\n}}\n");
    match parse(&text) {
        Err(error) => error.0.rule.and_then(Reason::named),
        Ok(module) => {
            assert_eq!(parse(&print(&module)).as_ref(), Ok(&module), "{text}");
            verify(&module).first().map(|fault| fault.reason)
        }
    }
}

#[track_caller]
fn right(body: &str) {
    assert_eq!(reason(body), None, "{body}");
}

#[track_caller]
fn wrong(want: Reason, body: &str) {
    assert_eq!(reason(body), Some(want), "{body}");
}

#[test]
fn constants_and_shapes() {
    right("%0 = constant <i32: [1, 2, 3, -4]> : tile<4xi32>");
    right("%0 = constant <f16: [[1.5, 0x7C00]]> : tile<1x2xf16>");
    wrong(Reason::Shape, "%0 = constant <i32: [1, 2, 3]> : tile<4xi32>");
    wrong(Reason::Shape, "%0 = constant <i32: [[1], 2]> : tile<2x1xi32>");
    wrong(Reason::Shape, "%0 = constant <i32: [1, [2]]> : tile<2x1xi32>");
    wrong(Reason::Shape, "%0 = constant <i32: 1> : tile<3xi32>");
    wrong(Reason::ElementType, "%0 = constant <i32: 1> : tile<i64>");
    wrong(Reason::Constant, "%0 = constant <i8: 256> : tile<i8>");
    wrong(Reason::Constant, "%0 = constant <f32: nan> : tile<f32>");
    right("%0 = iota : tile<256xi8>");
    wrong(Reason::Shape, "%0 = iota : tile<512xi8>");
    wrong(Reason::Shape, "%0 = iota : tile<i32>");
    wrong(Reason::ElementType, "%0 = iota : tile<4xf32>");
    right("%0 = reshape %y : tile<4xi32> -> tile<2x2xi32>");
    wrong(Reason::Shape, "%0 = reshape %y : tile<4xi32> -> tile<2xi32>");
    wrong(Reason::Shape, "%0 = broadcast %y : tile<4xi32> -> tile<8xi32>");
    wrong(Reason::ElementType, "%0 = reshape %y : tile<4xi32> -> tile<4xi64>");
    right("%0 = bitcast %y : tile<4xi32> -> tile<4xf32>");
    wrong(Reason::ElementType, "%0 = bitcast %y : tile<4xi32> -> tile<4xf16>");
    right("%0 = ptr_to_ptr %q : tile<4xptr<i32>> -> tile<4xptr<f32>>");
    wrong(Reason::Pointer, "%0 = ptr_to_ptr %y : tile<4xi32> -> tile<4xptr<f32>>");
}

#[test]
fn arithmetic() {
    right("%0 = addi %x, %x overflow<no_wrap> : tile<i32>");
    wrong(Reason::ValueType, "%0 = addi %x, %l : tile<i32>");
    wrong(Reason::ElementType, "%0 = addi %f, %f : tile<4xf32>");
    wrong(Reason::ElementType, "%0 = addf %y, %y : tile<4xi32>");
    right("%0 = addf %f, %f rounding<zero> flush_to_zero : tile<4xf32>");
    wrong(Reason::Results, "%0 = cmpi equal %y, %y, signed : tile<4xi32> -> tile<i1>");
    wrong(Reason::Word, "%0 = cmpi same %y, %y, signed : tile<4xi32> -> tile<4xi1>");
    wrong(Reason::Shape, "%0 = select %b, %y, %y : tile<i1>, tile<4xi32>");
    right("%0 = exti %x signed : tile<i32> -> tile<i64> %1 = trunci %0 : tile<i64> -> tile<i32>");
    wrong(Reason::ElementType, "%0 = exti %l signed : tile<i64> -> tile<i32>");
    wrong(Reason::Constant, "%0 = assume div_by<3>, %x : tile<i32>");
    wrong(Reason::Shape, "%0 = assume div_by<4, every 8 along 0>, %y : tile<4xi32>");
    wrong(Reason::Constant, "%0 = assume bounded<3, 2>, %x : tile<i32>");
    wrong(Reason::Constant, "%0 = assume bounded<?, 2147483648>, %x : tile<i32>");
    right("%0 = assume bounded<-2147483648, 2147483647>, %x : tile<i32>");
    wrong(Reason::Pointer, "%0 = offset %x, %x : tile<i32>, tile<i32> -> tile<i32>");
    wrong(Reason::Shape, "%0 = offset %q, %x : tile<4xptr<i32>>, tile<i32> -> tile<4xptr<i32>>");
    wrong(Reason::Tokens, "%0 = join_tokens %t : token");
    wrong(Reason::Operation, "%0 = addj %x, %x : tile<i32>");
}

#[test]
fn accesses() {
    right(
        "%0, %1 = load_ptr_tko acquire sys %q, %m, %y token=%t : tile<4xptr<i32>>, tile<4xi1>, tile<4xi32> -> tile<4xi32>, token",
    );
    wrong(Reason::Ordering, "%0, %1 = load_ptr_tko acq_rel device %p : tile<ptr<i32>> -> tile<i32>, token");
    wrong(Reason::ScopeMissing, "%0, %1 = load_ptr_tko relaxed %p : tile<ptr<i32>> -> tile<i32>, token");
    wrong(Reason::ScopeUnwanted, "%0, %1 = load_ptr_tko weak sys %p : tile<ptr<i32>> -> tile<i32>, token");
    wrong(Reason::Pointee, "%0, %1 = load_ptr_tko weak %p : tile<ptr<i32>> -> tile<f32>, token");
    wrong(Reason::Shape, "%0, %1 = load_ptr_tko weak %q : tile<4xptr<i32>> -> tile<i32>, token");
    wrong(
        Reason::Mask,
        "%0 = store_ptr_tko weak %q, %y, %y : tile<4xptr<i32>>, tile<4xi32>, tile<4xi32> -> token",
    );
    wrong(
        Reason::MaskShape,
        "%0 = store_ptr_tko weak %q, %y, %b : tile<4xptr<i32>>, tile<4xi32>, tile<i1> -> token",
    );
    wrong(Reason::ValueType, "%0 = store_ptr_tko weak %p, %x token=%x : tile<ptr<i32>>, tile<i32> -> token");
    wrong(
        Reason::Multicast,
        "%0 = store_ptr_tko weak %mp, %x : tile<ptr<i32, <multicast>>>, tile<i32> -> token",
    );
    wrong(
        Reason::Hint,
        "%0, %1 = load_ptr_tko weak %p optimization_hints = <sm_90 = {latency = 3, latency = 2}> : tile<ptr<i32>> -> tile<i32>, token",
    );
    wrong(Reason::Value, "%0 = store_ptr_tko weak %p, 3 : tile<ptr<i32>>, tile<i32> -> token");
}

#[test]
fn atomics() {
    right(
        "%0, %1 = atomic_rmw_tko acq_rel tl_blk %q, umin, %y, %m token=%t : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token",
    );
    right(
        "%0, %1 = atomic_rmw_tko relaxed sys %pf, xchg, %f : tile<4xptr<f32>>, tile<4xf32> -> tile<4xf32>, token",
    );
    wrong(
        Reason::Ordering,
        "%0, %1 = atomic_rmw_tko weak sys %p, add, %x : tile<ptr<i32>>, tile<i32> -> tile<i32>, token",
    );
    wrong(
        Reason::AtomicType,
        "%0, %1 = atomic_rmw_tko relaxed sys %pf, add, %f : tile<4xptr<f32>>, tile<4xf32> -> tile<4xf32>, token",
    );
    wrong(
        Reason::Word,
        "%0, %1 = atomic_rmw_tko relaxed sys %p, inc, %x : tile<ptr<i32>>, tile<i32> -> tile<i32>, token",
    );
    wrong(
        Reason::Ordering,
        "%0, %1 = atomic_cas_tko weak sys %p, %x, %x : tile<ptr<i32>>, tile<i32> -> tile<i32>, token",
    );
    wrong(
        Reason::Pointee,
        "%0, %1 = atomic_cas_tko relaxed sys %p, %l, %l : tile<ptr<i32>>, tile<i64> -> tile<i64>, token",
    );
}

#[test]
fn views() {
    right(
        "%0, %1 = load_view_tko relaxed sys %v[%x, %x] token = %t inbounds = [true, false] : $V, tile<i32> -> tile<4x4xi32>, token",
    );
    right(
        "%0 = store_view_tko weak %s, %z[%x, %x] optimization_hints = <sm_90 = {latency = 2, allow_tma = false}> : tile<4x4xi32>, $Z, tile<i32> -> token",
    );
    right(
        "%0 = atomic_red_view_tko relaxed device %v[%x, %x], add, %s : tile<4x4xi32>, $V, tile<i32> -> token",
    );
    wrong(
        Reason::PaddedView,
        "%0 = atomic_red_view_tko relaxed device %z[%x, %x], add, %s : tile<4x4xi32>, $Z, tile<i32> -> token",
    );
    wrong(
        Reason::AtomicMode,
        "%0 = atomic_red_view_tko relaxed device %v[%x, %x], xchg, %s : tile<4x4xi32>, $V, tile<i32> -> token",
    );
    wrong(
        Reason::Ordering,
        "%0 = atomic_red_view_tko release device %v[%x, %x], add, %s : tile<4x4xi32>, $V, tile<i32> -> token",
    );
    wrong(
        Reason::ScopeUnwanted,
        "%0 = atomic_red_view_tko relaxed sys %v[%x, %x], add, %s : tile<4x4xi32>, $V, tile<i32> -> token",
    );
    wrong(Reason::IndexCount, "%0, %1 = load_view_tko weak %v[%x] : $V, tile<i32> -> tile<4x4xi32>, token");
    wrong(
        Reason::IndexType,
        "%0, %1 = load_view_tko weak %v[%x, %l] : $V, tile<i32>, tile<i64> -> tile<4x4xi32>, token",
    );
    wrong(Reason::ViewTile, "%0, %1 = load_view_tko weak %v[%x, %x] : $V, tile<i32> -> tile<4xi32>, token");
    right("%0 = make_partition_view %w : $V");
    wrong(
        Reason::ValueType,
        "%0 = make_partition_view %w : partition_view<tile=(4x4), tensor_view<16x16xf32, strides=[16,1]>>",
    );
    wrong(Reason::Type, "%0 = make_strided_view %w : $V");
    wrong(
        Reason::ViewShape,
        "%0 = make_partition_view %w : partition_view<tile=(4), tensor_view<16x16xi32, strides=[16,1]>>",
    );
    wrong(
        Reason::ViewShape,
        "%0 = make_partition_view %w : partition_view<tile=(4x4), tensor_view<16x16xi32, strides=[16,1]>, dim_map=[1, 1]>",
    );
    right(
        "%0 = make_tensor_view %p, shape = [%x, 4], strides = [%x, 1] : tile<i32> -> tensor_view<?x4xi32, strides=[?,1]>",
    );
    wrong(
        Reason::ViewShape,
        "%0 = make_tensor_view %p, shape = [%x, 4], strides = [4, 1] : tile<i32> -> tensor_view<?x4xi32, strides=[?,1]>",
    );
    wrong(
        Reason::ValueType,
        "%0 = make_tensor_view %p, shape = [4], strides = [1] : tensor_view<4xf32, strides=[1]>",
    );
    wrong(
        Reason::Padding,
        "%0 = make_partition_view %w : partition_view<tile=(4x4), padding_value = nan, tensor_view<16x16xi32, strides=[16,1]>>",
    );
}

#[test]
fn multicast_and_grids() {
    right(
        "%0, %1 = multimem_load_reduce_view_tko acquire sys %g[%x, %x] token = %t attributes {reduction = #cuda_tile.multimem_reduction_kind<umax>} : $G, tile<i32>, token -> tile<4x4xi32>, token",
    );
    right(
        "%0 = multimem_reduce_view_tko relaxed device %g, %s[%x, %x] : $G, tile<4x4xi32>, tile<i32> -> token",
    );
    right(
        "%0 = multimem_store_view_tko weak %g, %s[%x, %x] inbounds = [false, true] : $G, tile<4x4xi32>, tile<i32> -> token",
    );
    wrong(
        Reason::Multicast,
        "%0 = multimem_store_view_tko weak %v, %s[%x, %x] : $V, tile<4x4xi32>, tile<i32> -> token",
    );
    wrong(
        Reason::Multicast,
        "%0, %1 = load_view_tko weak %g[%x, %x] : $G, tile<i32> -> tile<4x4xi32>, token",
    );
    right(
        "%0 = gdc_wait_tko -> token %1 = gdc_launch_dependents_tko token = %0 -> token %2 = memory_fence_alias_tko %1",
    );
    wrong(Reason::ValueType, "%2 = memory_fence_alias_tko %x");
}

#[test]
fn blocks() {
    right(
        "%0:2 = if %b -> (tile<i32>, token) { yield %x, %t : tile<i32>, token } else { yield %x, %t : tile<i32>, token } %1 = addi %0#0, %x : tile<i32>",
    );
    right("if %b { return }");
    wrong(Reason::Results, "%0 = if %b -> (tile<i32>) { yield %x : tile<i32> }");
    wrong(Reason::Results, "%0 = if %b -> (tile<i32>) { yield %x : tile<i32> } else { }");
    wrong(Reason::ValueType, "if %m { }");
    wrong(Reason::Name, "if %b { %0 = addi %x, %x : tile<i32> } %1 = addi %0, %x : tile<i32>");
    wrong(Reason::Name, "%x = addi %x, %x : tile<i32>");
    wrong(Reason::Syntax, "if %b { return yield }");
    right(
        "%0 = for unsigned %i in (%x to %x, step %x) : tile<i32> iter_values(%k = %t) -> (token) { continue %k : token }",
    );
    right(
        "%0 = loop iter_values(%k = %t) : token -> tile<i32> { if %b { break %x : tile<i32> } continue %k : token }",
    );
    right("%0 = loop : token { if %b { break %t : token } else { continue } }");
    wrong(Reason::Results, "%0 = loop iter_values(%k = %t) : token -> tile<i32> { break %k : token }");
    wrong(
        Reason::Results,
        "%0 = for %i in (%x to %x, step %x) : tile<i32> iter_values(%k = %t) -> (token) { }",
    );
    wrong(Reason::Block, "for %i in (%x to %x, step %x) : tile<i32> { break }");
    wrong(Reason::Block, "for %i in (%x to %x, step %x) : tile<i32> { return }");
    wrong(Reason::Block, "yield %x : tile<i32>");
    wrong(Reason::Block, "continue");
    wrong(Reason::Type, "loop iter_values(%k = %v) : $V { }");
    wrong(Reason::Results, "return %x : tile<i32>");
    wrong(Reason::Results, "%0, %1 = make_token : token");
    wrong(Reason::Limit, &"if %b { ".repeat(60));
}

#[test]
fn kernels_take_scalars_and_return_nothing() {
    let reason = |text: &str| verify(&parse(text).unwrap()).first().map(|f| f.reason);
    assert_eq!(reason("entry @k(%a: tile<ptr<i32>>, %b: tile<f32>) { return }"), None);
    assert_eq!(reason("entry @k(%a: tile<4xi32>) { return }"), Some(Reason::Entry));
    assert_eq!(reason("entry @k(%a: token) { return }"), Some(Reason::Entry));
    assert_eq!(reason("entry @k(%a: tile<i32>) -> tile<i32> { return %a : tile<i32> }"), Some(Reason::Entry));
}

/// Checks a module that no text can express.
#[test]
fn values_of_malformed_modules_are_checked_before_use() {
    use crate::{Function, Module, Op, Type, Value};
    let mut function = Function::entry("k", vec![Type::pointer(crate::Scalar::I32)]);
    let mut body = std::mem::take(&mut function.body);
    function.push(&mut body, Op::JoinTokens(vec![Value(7), Value(70)]), vec![Type::Token]);
    body.ops[0].results.push(Value(99));
    function.push(&mut body, Op::MakeToken, Vec::new());
    function.push(&mut body, Op::Return(vec![Value(1)]), Vec::new());
    function.push(&mut body, Op::Return(Vec::new()), Vec::new());
    body.params.push(Value(0));
    function.body = body;
    let module = Module { name: String::new(), functions: vec![function] };
    let reasons: Vec<Reason> = verify(&module).into_iter().map(|f| f.reason).collect();
    assert_eq!(reasons, [Reason::Name, Reason::Name, Reason::Results, Reason::Block]);
    print(&module);
}
