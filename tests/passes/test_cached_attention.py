"""Attention as exporters write it, with a cache that becomes a variable. OpenVINO's CPU plugin runs
it as one node, and it comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

import bridge
from tests.support.running import EXACT, OnnxRuntime, assert_close

SCALED_KEYS = "kt = Transpose <perm = [0, 1, 3, 2]> (keys) ks = Mul (kt, half)"
PLAIN_KEYS = "ks = Transpose <perm = [0, 1, 3, 2]> (keys)"
REPEATED = """
    apart = Unsqueeze (key, two) sizes = Shape (key) five = Gather (sizes, places)
    whole = Mul (five, times)
    many = Expand (apart, whole) keys = Reshape (many, heads)
    v_apart = Unsqueeze (value, two) v_many = Expand (v_apart, whole)
    values = Reshape (v_many, heads)"""
ALONE = "keys = Identity (key) values = Identity (value)"
SOFTMAX = "shares = Softmax <axis = -1> (masked)"
GUARD = """weights = Softmax <axis = -1> (masked) nothing = IsNaN (weights)
    shares = Where (nothing, zero, weights)"""

FUSED = {
    "no scale": (ALONE, PLAIN_KEYS, "masked = MatMul (q, ks)", SOFTMAX),
    "divided": (ALONE, PLAIN_KEYS, "s = MatMul (q, ks) masked = Div (s, root)", SOFTMAX),
    "a mask": (ALONE, PLAIN_KEYS, "s = MatMul (q, ks) masked = Add (mask, s)", SOFTMAX),
    "scales on both sides, a guard": (
        ALONE, SCALED_KEYS, "qs = Mul (q, half) s = MatMul (qs, ks) masked = Add (s, mask)", GUARD
    ),
    "a scale that is computed": (
        ALONE, PLAIN_KEYS,
        "f = Mul (half, mean) s = MatMul (q, ks) t = Mul (s, f) masked = Add (t, mask)", SOFTMAX
    ),
    "heads that share keys": (
        REPEATED, PLAIN_KEYS, "s = MatMul (q, ks) t = Mul (s, half) masked = Add (t, mask)", SOFTMAX
    ),
    "heads that share keys, as often as is known": (
        REPEATED.replace("apart, whole", "apart, times"), PLAIN_KEYS,
        "s = MatMul (q, ks) t = Mul (s, half) masked = Add (t, mask)", SOFTMAX
    ),
    "converted to what it is": (
        ALONE, PLAIN_KEYS, "s = MatMul (q, ks) masked = Cast <to = 1> (s)", SOFTMAX
    ),
}  # fmt: skip
LEFT = {
    "a scale for each head": (
        ALONE, PLAIN_KEYS, "s = MatMul (q, ks) masked = Mul (s, by_head)", SOFTMAX
    ),
    "shares of queries": (
        ALONE, PLAIN_KEYS, "masked = MatMul (q, ks)", "shares = Softmax <axis = -2> (masked)"
    ),
    "scores that are an output": (
        ALONE, PLAIN_KEYS, "scores = MatMul (q, ks) masked = Identity (scores)", SOFTMAX
    ),
}  # fmt: skip


def model_of(parts: tuple[str, ...]) -> onnx.ModelProto:
    repeated = parts[0] is not ALONE
    groups, outputs = (1 if repeated else 2), ", float[b,2,s,t] scores" * ("scores =" in parts[2])
    cache = f"float[b,{groups},p,4]"
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[b,2,s,4] q, float[b,{groups},s,4] k, float[b,{groups},s,4] v,
           float[b,1,s,t] mask, float[1] mean, {cache} past_key, {cache} past_value)
            => (float[b,2,s,4] y{outputs}, float[b,{groups},t,4] present_key,
                float[b,{groups},t,4] present_value)
            <float half = {{0.5}}, float[1] root = {{2.0}}, float zero = {{0.0}},
             float[2,1,1] by_head = {{0.5, 2.0}}, int64[1] two = {{2}},
             int64[5] places = {{0, 1, 1, 2, 3}}, int64[5] times = {{1, 1, 2, 1, 1}},
             int64[4] heads = {{0, 2, -1, 4}}> {{
            key = Concat <axis = 2> (past_key, k)
            value = Concat <axis = 2> (past_value, v)
            {parts[0]} {parts[1]} {parts[2]} {parts[3]}
            y = MatMul (shares, values)
            present_key = Identity (key) present_value = Identity (value)
        }}""")


def calls(model: onnx.ModelProto, rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Inputs of calls with 3, 1 and 1 new words of two texts; each query sees at least the last
    key."""
    groups, past, found = model.graph.input[1].type.tensor_type.shape.dim[1].dim_value, 0, []
    for new in (3, 1, 1):
        past += new
        given = {
            name: rng.normal(size=(2, heads, new, 4)).astype(np.float32)
            for name, heads in (("q", 2), ("k", groups), ("v", groups))
        }
        mask = np.where(rng.random((2, 1, new, past)) < 0.3, -np.inf, 0).astype(np.float32)
        mask[..., -1] = 0
        found.append({**given, "mask": mask, "mean": np.array([0.7], np.float32)})
    return found


@pytest.mark.parametrize("name", [*FUSED, *LEFT])
def test_attention_with_a_cache(name: str, tmp_path: Path) -> None:
    model = model_of((FUSED | LEFT)[name])
    onnx.save(model, tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "a.xml", stateful=True, beam_idx=True)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    bridge.convert(tmp_path / "b.onnx", tmp_path / "b.xml", stateful=True, beam_idx=True)
    bridge.convert(tmp_path / "b.xml", tmp_path / "c.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == (tmp_path / "c.onnx").read_bytes()
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    layers = [node.rt_info["layerType"] for node in compiled.get_runtime_model().get_ops()]
    assert layers.count("ScaledDotProductAttention") == (name in FUSED)
    request, engines = compiled.create_infer_request(), [OnnxRuntime(tmp_path / "a.onnx")]
    engines.append(OnnxRuntime(tmp_path / "b.onnx"))
    groups = model.graph.input[1].type.tensor_type.shape.dim[1].dim_value
    held = {f"past_{x}": np.zeros((2, groups, 0, 4), np.float32) for x in ("key", "value")}
    taken = {port.any_name for port in compiled.inputs}
    names = [value.name for value in model.graph.output]
    for given in calls(model, np.random.default_rng(4)):
        found = []
        for engine in engines:
            wanted = {port.name for port in engine.session.get_inputs()}
            feed = {k: v for k, v in {**given, **held}.items() if k in wanted}
            found.append(dict(zip(names, engine.run(feed), strict=True)))
        beams = {"beam_idx": np.arange(2, dtype=np.int32)}
        results = request.infer({k: v for k, v in {**given, **beams}.items() if k in taken})
        assert_close([results["y"]], [found[0]["y"]])
        assert_close([found[1][x] for x in names], [found[0][x] for x in names])
        held = {f"past_{x}": found[0][f"present_{x}"] for x in ("key", "value")}


ATTENTION = """<ir_version: 11, opset_import: ["" : 23]>
    g (float[b,4,s,4] q, float[b,GROUPS,s,4] k, float[b,GROUPS,s,4] v, float[b,1,s,t] mask,
       float[b,GROUPS,p,4] past_key, float[b,GROUPS,p,4] past_value)
        => (float[b,4,s,4] y, float[b,GROUPS,t,4] present_key, float[b,GROUPS,t,4] present_value) {
        y, present_key, present_value =
            Attention <ATTRIBUTES> (q, k, v, MASK, past_key, past_value)
    }"""


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("mask", ["mask", '""'])
@pytest.mark.parametrize("attributes", ["scale = 0.7", "is_causal = 1"])
def test_operator_of_the_standard(groups: int, mask: str, attributes: str, tmp_path: Path) -> None:
    text = ATTENTION.replace("GROUPS", str(groups)).replace("MASK", mask)
    model = onnx.parser.parse_model(text.replace("ATTRIBUTES", attributes))
    bridge.convert(model, tmp_path / "a.xml", stateful=True, beam_idx=True)
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    layers = [node.rt_info["layerType"] for node in compiled.get_runtime_model().get_ops()]
    assert "ScaledDotProductAttention" in layers
    request, engine = compiled.create_infer_request(), OnnxRuntime(model)
    held = [np.zeros((2, groups, 0, 4), np.float32)] * 2
    rng = np.random.default_rng(7)
    for new, past in ((3, 0), (1, 3), (1, 4)):
        sizes = {"q": (4, new), "k": (groups, new), "v": (groups, new), "mask": (1, new)}
        feed = {
            name: rng.normal(size=(2, *size, past + new if name == "mask" else 4)).astype("f4")
            for name, size in sizes.items()
        }
        y, *after = engine.run({**feed, "past_key": held[0], "past_value": held[1]})
        taken = {port.any_name for port in compiled.inputs} & feed.keys()
        beams = {"beam_idx": np.arange(2, dtype=np.int32)}
        results = request.infer({**{name: feed[name] for name in taken}, **beams})
        assert_close([results["y"]], [y])
        held = after


def test_query_whose_keys_are_all_masked(tmp_path: Path) -> None:
    """The result is 0, by the guard in the file."""
    model = model_of(FUSED["scales on both sides, a guard"])
    bridge.convert(model, tmp_path / "a.xml", stateful=True, beam_idx=True)
    request = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT).create_infer_request()
    (given, *_) = calls(model, np.random.default_rng(4))
    given["mask"][0, 0, 1] = -np.inf
    given.pop("mean")
    results = request.infer({**given, "beam_idx": np.arange(2, dtype=np.int32)})
    assert not results["y"][0, :, 1].any() and np.isfinite(results["y"]).all()
