"""Branches that cannot run with the given shapes are pruned; a graph that always fails is
refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import bridge
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.constraints import constrained, contradiction
from bridge.neutral.types import F32, TensorType
from bridge.operators import load_all
from tests.support.running import OpenVino, assert_close

# An operator, the nodes of a branch that fails on x (float [2,6]), and why.
FAILING = [
    ("Add", "c = Constant<value = float[5] {1,2,3,4,5}>() y = Add(x, c)", "broadcast together"),
    ("Where", "k = Constant<value = bool[3,1] {1,0,1}>() y = Where(k, x, x)", "broadcast together"),
    (
        "PRelu",
        "c = Constant<value = float[5] {1,2,3,4,5}>() y = PRelu(x, c)",
        "broadcast together",
    ),
    ("MatMul", "y = MatMul(x, x)", "[2,6] and [2,6] cannot be multiplied"),
    ("Gemm", "y = Gemm<transA = 1, transB = 1>(x, x)", "cannot be multiplied"),
    ("Gemm", "v = Constant<value = float[6] {1,2,3,4,5,6}>() y = Gemm(x, v)", "no matrices"),
    ("Conv", "w = Constant<value = float[1,1,1] {1}>() y = Conv(x, w)", "differ in rank"),
    (
        "Conv",
        "s = Constant<value_ints = [1,3,4]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,2,1] {1,1}>() y = Conv(d, w)",
        "differ in channels",
    ),
    (
        "Conv",
        "s = Constant<value_ints = [1,2,6]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,2,1] {1,1}>() y = Conv<pads = [0]>(d, w)",
        "its pads [0] are not for 1 axes",
    ),
    (
        "MaxPool",
        "s = Constant<value_ints = [1,2,6]>() d = Reshape(x, s) "
        "y = MaxPool<kernel_shape = [2], strides = [0]>(d)",
        "its strides are [0], and must be 1 or more",
    ),
    (
        "NonMaxSuppression",
        "s = Constant<value_ints = [1,3,4]>() boxes = Reshape(x, s) "
        "t = Constant<value_ints = [1,2,6]>() d = Reshape(x, t) "
        "k = Constant<value_ints = [1]>() n = NonMaxSuppression(boxes, d, k) "
        "y = Cast<to = 1>(n)",
        "are no boxes and scores",
    ),
    (
        "ReduceSum",
        "a = Constant<value = int64[1,1] {0}>() y = ReduceSum(x, a)",
        "its input 1 is [1,1]",
    ),
    (
        "Loop",
        """y = Loop("", "", x) <body = b (int64 i, bool c, float[2,6] s) => (bool d, float[2,6] t) {
          d = Identity(c) t = Neg(s) }>""",
        "it never ends",
    ),
    ("LpPool", "y = LpPool<kernel_shape = [2]>(x)", "of rank 2, without axes for a window"),
    ("Reshape", "s = Constant<value_ints = [5,-1]>() y = Reshape(x, s)", "take the shape [5, -1]"),
    ("Reshape", "s = Constant<value_ints = [-1,-1]>() y = Reshape(x, s)", "[-1, -1] is no shape"),
    ("Reshape", "s = Constant<value_ints = [2,6,0]>() y = Reshape(x, s)", "no dimension to copy"),
    ("Transpose", "y = Transpose<perm = [2,0,1]>(x)", "no 3 axes"),
    ("Concat", "t = Transpose(x) y = Concat<axis = 1>(x, t)", "differ along axis 0"),
    (
        "Concat",
        "a = Constant<value_ints = [0]>() t = Unsqueeze(x, a) y = Concat<axis = 0>(x, t)",
        "differ in rank",
    ),
    ("Squeeze", "a = Constant<value_ints = [1]>() y = Squeeze(x, a)", "axis 1 of [2,6] is not 1"),
    ("Squeeze", "a = Constant<value_ints = [2]>() y = Squeeze(x, a)", "has no axis 2"),
    (
        "RNN",
        "s = Constant<value_ints = [3,2,2]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,1,1] {1}>() y = RNN<hidden_size = 1>(d, w, w)",
        "differ in input size",
    ),
    (
        "RNN",
        "w = Constant<value = float[1,1,1] {1}>() y = RNN<hidden_size = 1>(x, w, w)",
        "not of rank 3",
    ),
    (
        "RNN",
        "s = Constant<value_ints = [2,2,3]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,1,3] {1,1,1}>() r = Constant<value = float[1,1,1] {1}>() "
        'y = RNN<hidden_size = 1, direction = "bidirectional">(d, w, r)',
        "for 2 directions",
    ),
    ("ArgMax", "k = ArgMax<axis = 2>(x) y = Cast<to = 1>(k)", "no axis 2"),
    ("Softmax", "y = Softmax<axis = -3>(x)", "no axis -3"),
    ("ReduceSum", "a = Constant<value_ints = [5]>() y = ReduceSum(x, a)", "no axis 5"),
    ("CumSum", "a = Constant<value_int = 4>() y = CumSum(x, a)", "no axis 4"),
    ("CumSum", "a = Constant<value_ints = [0, 1]>() y = CumSum(x, a)", "one number, not [2]"),
    (
        "OneHot",
        "i = Cast<to = 7>(x) d = Constant<value_int = 3>() v = Constant<value_floats = [0.0,1.0]>()"
        " y = OneHot<axis = 3>(i, d, v)",
        "no axis 3",
    ),
    ("TopK", "k = Constant<value_ints = [7]>() y, i = TopK(x, k)", "no 7 elements"),
    (
        "QuantizeLinear",
        "s = Constant<value_floats = [1.0,1.0,1.0]>() z = Constant<value = uint8[3] {0,0,0}>() "
        "q = QuantizeLinear<axis = 1>(x, s, z) y = Cast<to = 1>(q)",
        "has other scales, [3]",
    ),
    (
        "ScatterElements",
        "i = Constant<value = int64[1,1] {0}>() u = Constant<value = float[1,1] {1}>() "
        "y = ScatterElements<axis = 2>(x, i, u)",
        "no axis 2",
    ),
    (
        "If",
        "k = Constant<value = bool[2] {1,0}>() y = If(k) <then_branch = t () => (float[2,6] p) "
        "{ p = Neg(x) }, else_branch = e () => (float[2,6] q) { q = Abs(x) }>",
        "one truth value, not [2]",
    ),
    (
        "Loop",
        "n = Constant<value_int = 2>() k = Constant<value = bool[2] {1,0}>() "
        "y = Loop(n, k, x) <body = l (int64 i, bool[2] h, float[2,6] s) => "
        "(bool[2] m, float[2,6] t) { m = Identity(h) t = Neg(s) }>",
        "one truth value, not [2]",
    ),
    (
        "CenterCropPad",
        "s = Constant<value_ints = [3]>() y = CenterCropPad<axes = [2]>(x, s)",
        "no axis 2",
    ),
    ("Concat", "y = Concat<axis = 2>(x, x)", "no axis 2"),
    ("Flatten", "y = Flatten<axis = 3>(x)", "no axis 3"),
    ("Gather", "i = Constant<value_int = 0>() y = Gather<axis = 2>(x, i)", "no axis 2"),
    (
        "GatherElements",
        "i = Constant<value_ints = [0]>() y = GatherElements(x, i)",
        "differ in rank",
    ),
    (
        "MeanVarianceNormalization",
        "y = MeanVarianceNormalization<axes = [0, 3]>(x)",
        "no axis 3",
    ),
    (
        "Conv",
        "s = Constant<value_ints = [1,2,6]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,1,1] {1}>() y = Conv<group = 2>(d, w)",
        "[1,1,1] has no 2 groups",
    ),
    (
        "Conv",
        "s = Constant<value_ints = [1,2,6]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,2,1] {1,1}>() y = Conv<kernel_shape = [3]>(d, w)",
        "its kernel_shape is [3], and its weights are [1,2,1]",
    ),
    (
        "ConvTranspose",
        "s = Constant<value_ints = [1,2,6]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,2,1] {1,1}>() y = ConvTranspose(d, w)",
        "[1,2,6] and [1,2,1] differ in channels",
    ),
    (
        "Col2Im",
        "i = Constant<value_ints = [2,2]>() k = Constant<value_ints = [1,1,1]>() "
        "s = Constant<value_ints = [1,3,4]>() d = Reshape(x, s) y = Col2Im(d, i, k)",
        "its image_shape and block_shape are 2 and 3 numbers",
    ),
    (
        "Col2Im",
        "i = Constant<value_ints = [2,2]>() k = Constant<value_ints = [1,1]>() "
        "s = Constant<value_ints = [1,3,4]>() d = Reshape(x, s) "
        "y = Col2Im<strides = [1,0]>(d, i, k)",
        "its strides are [1, 0], and must be 1 or more",
    ),
    ("Expand", "s = Constant<value_ints = [3,6]>() y = Expand(x, s)", "take the shape [3, 6]"),
    (
        "Unsqueeze",
        "a = Constant<value = int64[1,1] {0}>() y = Unsqueeze(x, a)",
        "its input 1 is [1,1]",
    ),
    (
        "ReverseSequence",
        "n = Constant<value_ints = [1,1,1]>() y = ReverseSequence<batch_axis = 0, time_axis = 1>"
        "(x, n)",
        "[3] are no lengths for axis 0 of [2,6]",
    ),
    (
        "ReverseSequence",
        "n = Constant<value_ints = [1,1]>() y = ReverseSequence<batch_axis = 0, time_axis = 0>"
        "(x, n)",
        "its batch and its time are axis 0",
    ),
    (
        "Resize",
        "e = Constant<value = float[0] {}>() y = Resize(x, , e)",
        "neither scales nor sizes",
    ),
    (
        "STFT",
        "s = Constant<value_int = 2>() f = Constant<value_int = 3>() "
        "w = Constant<value_floats = [1.0,1.0]>() y = STFT(x, s, w, f)",
        "its window is [2], and its frame length 3",
    ),
    ("Pad", "p = Constant<value_ints = [1,1]>() y = Pad(x, p)", "2 pads for 2 axes"),
    (
        "Pad",
        "p = Constant<value_ints = [1,1]>() a = Constant<value_ints = [0]>() "
        "s = ReduceMax<keepdims = 0>(x) y = Pad(s, p, , a)",
        "[] has no axis 0",
    ),
    (
        "GatherND",
        "i = Constant<value = int64[3,1] {0,0,0}>() y = GatherND<batch_dims = 1>(x, i)",
        "[2,6] and [3,1] differ in batch dimensions",
    ),
    (
        "GatherND",
        "i = Constant<value = int64[2,1] {0,0}>() y = GatherND<batch_dims = 2>(x, i)",
        "[2,1] has no 2 batch dimensions",
    ),
    ("Einsum", 'y = Einsum<equation = "ij,jk->ik">(x)', "is for 2 inputs, and it has 1"),
    ("Einsum", 'y = Einsum<equation = "ij,jk->ik">(x, x)', "differ in the size of j"),
    ("Einsum", 'y = Einsum<equation = "ijk->i">(x)', '"ijk" are no axes of [2,6]'),
    ("Einsum", 'y = Einsum<equation = "ij->ik">(x)', '"ij->ik" makes k of nothing'),
    (
        "GatherElements",
        "i = Constant<value = int64[1,7] {0,0,0,0,0,0,0}>() y = GatherElements(x, i)",
        "[1,7] are more indices than",
    ),
    (
        "STFT",
        "s = Constant<value_int = 2>() f = Constant<value_int = -4>() y = STFT(x, s, , f)",
        "its frame length is -4",
    ),
    (
        "Range",
        "a = Constant<value_floats = [0.0,1.0]>() one = Constant<value_float = 1.0>() "
        "y = Range(a, one, one)",
        "one number, not [2]",
    ),
    (
        "Resize",
        "s = Constant<value_floats = [2.0]>() y = Resize<axes = [2]>(x, , s)",
        "no axis 2",
    ),
    (
        "Slice",
        "a = Constant<value_ints = [0]>() e = Constant<value_ints = [1,1]>() y = Slice(x, a, e)",
        "of several lengths",
    ),
    (
        "Slice",
        "a = Constant<value_ints = [0]>() e = Constant<value_ints = [1]>() "
        "n = Constant<value_ints = [2]>() y = Slice(x, a, e, n)",
        "no axis 2",
    ),
    (
        "Split",
        "n = Constant<value_ints = [6]>() y, z = Split<axis = 1>(x, n)",
        "it has 2 outputs for 1 parts",
    ),
    ("Split", "n = Constant<value_ints = [2,3]>() y, z = Split<axis = 1>(x, n)", "parts of [2, 3]"),
    ("Unsqueeze", "a = Constant<value_ints = [4]>() y = Unsqueeze(x, a)", "no axis 4"),
    ("Reshape", "s = Constant<value_int = 12>() y = Reshape(x, s)", "[], not of rank 1"),
    ("Tile", "s = Constant<value_int = 2>() y = Tile(x, s)", "[], not of rank 1"),
    (
        "ConstantOfShape",
        "s = Constant<value = int64[1,1] {2}>() y = ConstantOfShape(s)",
        "[1,1], not of rank 1",
    ),
    (
        "Resize",
        "s = Constant<value_floats = [1.0,2.0,2.0]>() y = Resize(x, , s)",
        "[3], for 2 axes",
    ),
    ("Tile", "s = Constant<value_ints = [2,-1]>() y = Tile(x, s)", "its input 1 is [2, -1]"),
    (
        "Expand",
        "s = Constant<value_ints = [2,-128]>() y = Expand(x, s)",
        "its input 1 is [2, -128]",
    ),
    (
        "ConstantOfShape",
        "s = Constant<value_ints = [-3]>() y = ConstantOfShape(s)",
        "its input 0 is [-3]",
    ),
    ("Expand", "s = Constant<value_int = 6>() y = Expand(x, s)", "[], not of rank 1"),
    (
        "ScatterElements",
        "i = Constant<value = int64[1,1] {0}>() u = Constant<value = float[1,2] {1,2}>() "
        "y = ScatterElements(x, i, u)",
        "[1,2] are no updates for indices [1,1]",
    ),
    (
        "ScatterND",
        "i = Constant<value = int64[1,1] {0}>() u = Constant<value = float[1,2] {1,2}>() "
        "y = ScatterND(x, i, u)",
        "[1,2] are no updates, which are [1,6]",
    ),
    (
        "GatherND",
        "i = Constant<value = int64[1,3] {0,0,0}>() y = GatherND(x, i)",
        "[1,3] are no indices of places in [2,6]",
    ),
    (
        "Range",
        "a = Constant<value_float = 0.0>() e = Constant<value_float = 3.0>() y = Range(a, e, a)",
        "its step is 0.0",
    ),
    (
        "Split",
        "f = ReduceSum<keepdims = 0>(x) y, z = Split<num_outputs = 2>(f)",
        "[], not of rank 1 or more",
    ),
    ("EyeLike", "f = ReduceSum<keepdims = 0>(x) y = EyeLike(f)", "[], not of rank 2"),
    ("Trilu", "f = ReduceSum<keepdims = 0>(x) y = Trilu(f)", "[], not of rank 2 or more"),
    (
        "Gather",
        "f = ReduceSum<keepdims = 0>(x) i = Constant<value_int = 0>() y = Gather(f, i)",
        "[], not of rank 1 or more",
    ),
    (
        "Pad",
        "p = Constant<value_ints = [0,-4,0,-3]>() y = Pad(x, p)",
        "axis 1 of [2,6] is padded by -4 and -3",
    ),
    (
        "QuantizeLinear",
        "s = Constant<value_floats = [1.0,1.0]>() z = Constant<value = uint8[2] {0,0}>() "
        "q = QuantizeLinear<axis = 9>(x, s, z) y = Cast<to = 1>(q)",
        "no axis 9",
    ),
    (
        "Resize",
        "s = Constant<value_floats = [1.0,-2.0]>() y = Resize(x, , s)",
        "its scales are [1.0, -2.0]",
    ),
    (
        "RNN",
        "a = Constant<value_ints = [0]>() v = Unsqueeze(x, a) "
        "w = Constant<value = float[1,1,6] {1,1,1,1,1,1}>() r = Constant<value = float[1,1] {1}>() "
        "y = RNN<hidden_size = 1>(v, w, r)",
        "its input 2 is [1,1], not of rank 3",
    ),
]


def model_of(nodes: str) -> onnx.ModelProto:
    """An If that runs `nodes` if `go` is false, else a possible node."""
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        choice (float[2,6] x, bool go) => (float out) {{
          r = If (go) <
            then_branch = works () => (float a) {{ n = Neg(x) a = ReduceSum<keepdims = 0>(n) }},
            else_branch = fails () => (float b) {{ {nodes} b = ReduceSum<keepdims = 0>(y) }}>
          out = Abs(r)
        }}""")


@pytest.mark.parametrize(("op", "nodes", "why"), FAILING)
def test_branch_that_fails(op: str, nodes: str, why: str, tmp_path: Path) -> None:
    model = model_of(nodes)
    report = bridge.convert(model, tmp_path / "m.xml")
    assert len(report.pruned) == 1
    assert "its else_branch fails" in report.pruned[0]
    assert why in report.pruned[0]
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert_close(OpenVino(tmp_path / "m.xml").run([x, np.array(True)]), [x.sum()])


def test_what_fails_on_either_way_is_refused(tmp_path: Path) -> None:
    model = model_of("y = MatMul(x, x)")
    model.graph.node[0].attribute[0].CopyFrom(model.graph.node[0].attribute[1])
    model.graph.node[0].attribute[0].name = "then_branch"
    (tmp_path / "m.xml").write_text("<net>old</net>")
    with pytest.raises(bridge.UnsupportedError, match=r"MatMul .x2.: .* cannot be multiplied"):
        bridge.convert(model, tmp_path / "m.xml")
    assert (tmp_path / "m.xml").read_text() == "<net>old</net>"


def test_branch_that_fails_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(bridge.UnsupportedError, match=r"multiplied; without `?keep_branches"):
        bridge.convert(model_of("y = MatMul(x, x)"), tmp_path / "m.xml", keep_branches=True)
    model = model_of("y = Neg(x)")
    model.graph.node.add(op_type="MatMul", input=["x", "x"], output=["z"])
    model.graph.output.add(name="z").type.tensor_type.elem_type = 1
    with pytest.raises(bridge.UnsupportedError, match=r"MatMul .x1.: .* cannot be multiplied"):
        bridge.convert(model, tmp_path / "m.xml", keep_branches=True)


# An operator of IR alone, the shapes of its inputs or their integers, its attributes, and why.
FAILING_IN_IR: list[tuple[str, list[tuple[int, ...] | list[int]], dict[str, object], str]] = [
    ("MVN", [(2, 6), [2]], {"eps": 1e-5, "eps_mode": "inside_sqrt"}, "no axis 2"),
    ("ScatterUpdate", [(2, 6), [0], (1, 6), [4]], {}, "no axis 4"),
    ("Roll", [(2, 6), [1], [-3]], {}, "no axis -3"),
    ("SliceScatter", [(2, 6), (1, 6), [0], [1], [1], [2]], {}, "no axis 2"),
    ("VariadicSplit", [(2, 6), [3], [1, 1]], {}, "no axis 3"),
    ("VariadicSplit", [(2, 6), [0, 1], [1, 1]], {}, "one number, not [2]"),
    ("Interpolate", [(1, 1, 2, 6), [4], [4]], {"mode": "nearest"}, "no axis 4"),
    ("Interpolate", [(1, 1, 2, 6), [4, 4], [3, -1]], {"mode": "nearest"}, "name one of"),
    ("Unsqueeze", [(2, 6), [0, -4]], {}, "name one of 4 twice"),
    ("Broadcast", [(6,), [-1]], {"mode": "numpy"}, "input 1 is [-1]"),
    ("Unsqueeze", [(2, 6), (1,)], {}, "its axes are f32"),
    ("ir::Pad", [(2, 6), [0, 0], [0]], {"pad_mode": "edge"}, "input 2 is [1], for 2 axes"),
    ("Attention", [(1, 2, 3, 4), (3, 4), (1, 2, 3, 4)], {}, "are not all of rank 3 or all of"),
    ("Attention", [(1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 4)], {}, "in the size of a head"),
    ("Attention", [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 5, 4)], {}, "differ in length"),
    ("Attention", [(1, 2, 3, 4), (1, 2, 3, 4), (1, 1, 3, 4)], {}, "differ in heads"),
    ("Attention", [(1, 3, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)], {}, "3 heads of queries do not"),
    ("Attention", [(1, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)], {}, "differ in batches"),
    ("Attention", [(1, 2, 3, 4)] * 3, {"qk_matmul_output_mode": 4}, "have no stage 4"),
    ("Attention", [(1, 3, 4)] * 3, {"q_num_heads": 2, "kv_num_heads": 3}, "has no 3 heads"),
    ("Attention", [(1, 3, 4)] * 3, {"q_num_heads": 2, "kv_num_heads": 4}, "2 heads of queries"),
    ("ScaledDotProductAttention", [(3, 4), (3, 5), (3, 4)], {}, "in the size of a head"),
    ("ScaledDotProductAttention", [(3, 4), (3, 4), (2, 4)], {}, "differ in length"),
    ("ScaledDotProductAttention", [(3, 4), (3, 4), [1]], {}, "its inputs are f32 and i64"),
    ("GroupNormalization", [(1, 4, 2), (4,), (4,)], {"num_groups": 3}, "are no 3 groups"),
    ("GroupNormalization", [(1, 4, 2), (2,), (4,)], {"num_groups": 2}, "[2] are no factors"),
    ("ConvolutionBackpropData", [(1, 2, 6), (1, 2, 1)], {}, "differ in channels"),
    ("DeformConv", [(1, 2, 3, 3), (1, 2, 1, 1), (1, 3, 3, 3)], {}, "are no offsets for 1 groups"),
    ("DeformConv", [(1, 2, 3, 3), (1, 2, 1, 1), (1, 2, 3, 2)], {}, "not for the places of"),
    ("QuantizeLinear", [(4, 4), (2, 2), (2,)], {"axis": 0, "block_size": 2}, "no zero points for"),
    ("QuantizeLinear", [(4, 4), (2,)], {"axis": 0, "block_size": 2}, "are no scales of blocks"),
    ("VariadicSplit", [(2, 6), [1], [-1, -1]], {}, "[-1, -1] are no lengths of"),
    ("ir::Split", [(), [0]], {"num_splits": 1}, "[], not of rank 1 or more"),
    ("Col2Im", [(1, 4, 4), [2, 2], [2, 2]], {}, "[1,4,4] are not the 1 blocks"),
    ("SpaceToDepth", [(1, 2, 3, 4)], {"blocksize": 2}, "[1,2,3,4] has no blocks of 2"),
    ("DepthToSpace", [(1, 6, 3, 4)], {"blocksize": 2}, "[1,6,3,4] has no blocks of 2"),
    ("DepthToSpace", [(1, 6, 3, 4)], {"blocksize": 0}, "its blocks have the size 0"),
    ("ISTFT", [(5, 6, 2), (8,), [-8], [4]], {}, "its frame length is -8"),
    ("ir::STFT", [(40,), (8,), [8], [0]], {"transpose_frames": False}, "its step is 0"),
    ("ir::STFT", [(40,), (8,), [8, 8], [4]], {"transpose_frames": False}, "is one number"),
    ("ir::RandomUniform", [[2], [3], [3]], {}, "nothing lies between 3 and 3"),
    ("GridSample", [(1, 1, 3, 3), (1, 2, 2, 3)], {}, "[1,2,2,3] are no places in [1,1,3,3]"),
    (
        "LSTM",
        [(1, 2, 4), (1, 12, 4), (1, 12, 3), (1, 24), (2,), (1, 2, 7)],
        {"hidden_size": 3},
        "its input 5 is [1,2,7], for a hidden size of 3",
    ),
    (
        "LSTM",
        [(1, 2, 4), (1, 12, 4), (1, 12, 3), (1, 24), (3,)],
        {"hidden_size": 3},
        "its input 4 is [3], for a batch of 2",
    ),
    ("LSTMSequence", [(4,)], {}, "[4], not of rank 3"),
    ("LSTMCell", [(4, 4), (1, 4), (4,)], {"hidden_size": 4}, "its input 2 is [4], not of rank 2"),
    ("GRUSequence", [(1, 1, 4), (4,)], {"hidden_size": 4}, "[4], not of rank 3"),
    ("GRUCell", [(4,)], {"hidden_size": 4}, "[4], not of rank 2"),
    ("Gather", [(2, 6), [0], [1]], {"batch_dims": -2}, "[1] has no -2 batch dimensions"),
    ("Gather", [(2, 6), (3, 1), [1]], {"batch_dims": 1}, "differ in batch dimensions"),
    ("Gather", [(2, 6), (2, 6), [0]], {"batch_dims": -1}, "axis 0 is one of its 1 batch"),
    ("ir::OneHot", [[0], [3], [1, 1], [0]], {"axis": 0}, "its input 2 is one number"),
    ("Compress", [(2, 6), (2,)], {"axis": 3}, "[2,6] has no axis 3"),
    ("RMSNormalization", [(2, 6), (6,)], {"axis": 2}, "[2,6] has no axis 2"),
    ("ShuffleChannels", [(2, 6)], {"axis": -3}, "[2,6] has no axis -3"),
    ("RDFT", [(2, 6), [2]], {}, "[2,6] has no axis 2"),
    ("GroupConvolution", [(2, 6), (1, 1, 1)], {}, "of rank 2, without axes for a window"),
    ("ConvInteger", [(2, 6), (1, 1)], {}, "of rank 2, without axes for a window"),
    ("NV12toRGB", [(1, 4, 4, 1), (1, 2, 4, 2)], {}, "[1,2,4,2] is not half of [1,4,4,1]"),
    ("NV12toRGB", [(1, 4, 4, 1), (3, 2, 2, 2)], {}, "are of several pictures"),
    ("I420toRGB", [(1, 4, 4, 1), (1, 2, 2, 1), (1, 2, 3, 1)], {}, "differ"),
    ("com.microsoft::Attention", [(2, 6)], {}, "[2,6], not of rank 3"),
    ("com.microsoft::MultiHeadAttention", [(2, 6)], {}, "[2,6], not of rank 5"),
    ("com.microsoft::MultiHeadAttention", [(2, 6), (2, 6)], {}, "[2,6], not of rank 3"),
    ("com.microsoft::DecoderMaskedMultiHeadAttention", [(2, 6)], {}, "[2,6], not of rank 3"),
    ("com.microsoft::EmbedLayerNormalization", [(6,)], {}, "[6], not of rank 2"),
    ("com.microsoft::FusedGemm", [(2, 6), (6,)], {}, "[6], not of rank 2"),
    ("com.microsoft::DynamicQuantizeLSTM", [(2, 6)], {"hidden_size": 3}, "not of rank 3"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "why"), FAILING_IN_IR)
def test_node_of_ir_that_fails(
    op: str, inputs: list[tuple[int, ...] | list[int]], attributes: dict[str, object], why: str
) -> None:
    builder = Builder([])
    values = [
        Value(TensorType(F32, given)) if isinstance(given, tuple) else builder.constant(given)
        for given in inputs
    ]
    assert why in contradiction(builder.node(op, values, 1, attributes))


COUNTING = {"com.microsoft::GroupQueryAttention"}
"""Its counts decide which inputs are drawn; other inputs are not refused."""


def test_every_check_is_tried() -> None:
    tried = {op for op, *_ in (*FAILING, *FAILING_IN_IR)}
    load_all()
    declared = {op: checks for op, checks in constrained().items() if op not in COUNTING}
    assert set(declared.values()) == {declared[op] for op in tried & set(declared)}


def test_what_steps_down_to_a_size_is_empty(tmp_path: Path) -> None:
    """So the branch fails: its Reshape copies a size that does not exist."""
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 19]>
        g (float[k] x, bool c) => (float[u] y) {
          down = Constant <value = int64 {-1}> ()
          one = Constant <value = int64[1] {1}> ()
          y = If (c) <
            then_branch = th () => (float[a] t) {
              flat = Constant <value = int64[1] {-1}> ()
              n = Size (x)
              r = Range (down, n, down)
              f = Cast <to = 1> (r)
              s = Shape (f)
              sizes = Concat <axis = 0> (one, s)
              row = Reshape (f, sizes)
              t = Reshape (row, flat) },
            else_branch = el () => (float[b] e) { e = Neg (x) }
          >
        }""")
    report = bridge.convert(model, tmp_path / "m.xml")
    assert "has no dimension to copy" in report.pruned[0]
    x = np.array([1, 2], np.float32)
    assert_close(OpenVino(tmp_path / "m.xml").run([x, np.array(False)]), [-x])


def test_parts_of_another_size(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "roundtrip_models" / "tensor_iterator_part_size.xml"
    text = source.read_text()
    (tmp_path / "m.xml").write_text('part_size="3"'.join(text.rsplit('part_size="2"', 1)))
    with pytest.raises(bridge.InvalidModelError, match="no part of 3 along axis 0"):
        bridge.load(tmp_path / "m.xml")


def test_slices_of_other_numbers(tmp_path: Path) -> None:
    """OpenVINO reads such a model but does not compile it."""
    source = Path(__file__).parents[2] / "roundtrip_models" / "scan_axis_1.onnxtxt"
    bridge.convert(source, tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text()
    state = '<input external_port_id="0" internal_layer_id="0"'
    assert state in text
    (tmp_path / "m.xml").write_text(text.replace(state, f'{state} axis="1"'))
    with pytest.raises(bridge.InvalidModelError, match="its slices are 2 and 5"):
        bridge.load(tmp_path / "m.xml")
