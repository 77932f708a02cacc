"""One request over sizes with 0 among them: OpenVINO's CPU plugin refuses the size that would spoil
a later call, and is right in all others."""

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from onnx import parser

import bridge
from tests.support.running import EXACT, OnnxRuntime, run_request

ATTENTION = (
    "t = Transpose <perm = [1, 0]> (m) s = MatMul (x, t) p = Softmax (s) a = MatMul (p, m) "
    "y = Add (a, x)"
)
REFUSED = {
    "MaxPool": ("float[n,2,4,4] x", "y = MaxPool <kernel_shape = [2, 2]> (x)"),
    "AveragePool": ("float[n,2,4] x", "y = AveragePool <kernel_shape = [2]> (x)"),
    "LpPool": ("float[n,2,4,4] x", "r = Relu (x) y = LpPool <kernel_shape = [2, 2]> (r)"),
    "an attention": ("float[s,4] x, float[n,4] m", ATTENTION),
    "an Attention": ("float[1,2,s,4] x, float[1,2,n,4] m", "y = Attention (x, m, m)"),
    "a joined product": ("float[s,n] x, float[n,3] m", "p = MatMul (x, m) y = Relu (p)"),
}
RIGHT = {
    "an attention of the rows themselves": (
        "float[n,4] x",
        ATTENTION.replace("m)", "x)").replace("(m", "(x"),
    ),
    "a product": ("float[s,n] x, float[n,3] m", "y = MatMul (x, m)"),
    "a GlobalAveragePool": ("float[n,2,4,4] x", "y = GlobalAveragePool (x)"),
    "a pool in a branch not taken": (
        "float[n,2,4,4] x, bool c",
        "y = If (c) <then_branch = a () => (float[n,2,k,l] u) "
        "{ u = MaxPool <kernel_shape = [2, 2]> (x) }, "
        "else_branch = b () => (float[n,2,4,4] v) { v = Neg (x) }>",
    ),
}


@pytest.mark.parametrize("sizes", [(2, 0, 2), (3, 0, 2), (0, 2)])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", [*REFUSED, *RIGHT])
def test_sizes_in_a_row(case: str, threads: int, sizes: tuple[int, ...], tmp_path: Path) -> None:
    inputs, nodes = (REFUSED | RIGHT)[case]
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 23]> g ({inputs}) => (float[] y) {{ {nodes} }}'
    )
    bridge.convert(model, tmp_path / "m.xml", debug=True)
    config = {**EXACT, "INFERENCE_NUM_THREADS": threads}
    compiled = openvino.Core().compile_model(tmp_path / "m.xml", "CPU", config)
    request, random = compiled.create_infer_request(), np.random.default_rng(0)
    for size in sizes:
        feed = {}
        for declared in model.graph.input:
            dims = declared.type.tensor_type.shape.dim
            shape = [{"n": size, "s": 3}.get(dim.dim_param, dim.dim_value) for dim in dims]
            feed[declared.name] = random.standard_normal(shape).astype(np.float32)
            if not shape:
                feed[declared.name] = np.array(False)
        if size == 0 and case in REFUSED:
            with pytest.raises(RuntimeError, match=r"1\.\."):
                run_request(request, [*feed.values()])
            continue
        (expected,) = OnnxRuntime(model).run(feed)
        (got,) = run_request(request, [*feed.values()])
        np.testing.assert_allclose(got, expected, 1e-4, 1e-5)


def test_the_names_of_sizes_come_back(tmp_path: Path) -> None:
    inputs, nodes = REFUSED["MaxPool"]
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 18]> g ({inputs}) => (float[n,2,3,3] y) {{ {nodes} }}'
    )
    bridge.convert(model, tmp_path / "m.xml")
    assert 'shape="1..,2,4,4"' in (tmp_path / "m.xml").read_text()
    bridge.convert(tmp_path / "m.xml", tmp_path / "same.xml")
    assert (tmp_path / "same.xml").read_bytes() == (tmp_path / "m.xml").read_bytes()
    bridge.convert(tmp_path / "m.xml", tmp_path / "back.onnx")
    (x,) = onnx.load(tmp_path / "back.onnx").graph.input
    assert x.type.tensor_type.shape.dim[0].dim_param == "n"
