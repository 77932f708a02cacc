"""Experts, recurrent attention and others of onnxruntime's own operators that newer models have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest

import bridge
from tests.operators.microsoft_cases import Case, f32, i32, i64, random, whole
from tests.operators.test_microsoft import feed_of, model_of
from tests.support.running import EXACT, OnnxRuntime, assert_close

EXPERTS, WIDTH, INNER, TOKENS = 4, 32, 64, 6


def experts(activation: str = "silu", kept: bool = True, **attributes: Any) -> Case:
    """A MoE, with biases if `kept`."""
    wide = INNER * (2 if attributes.get("swiglu_fusion") else 1)
    layers = [random(EXPERTS, wide, WIDTH), random(EXPERTS, wide), random(EXPERTS, WIDTH, INNER)]
    inputs = [random(TOKENS, WIDTH), random(TOKENS, EXPERTS), *layers, random(EXPERTS, WIDTH)]
    given = [x if kept or i not in (3, 5) else None for i, x in enumerate(inputs)]
    return Case("MoE", given, {"activation_type": activation, **attributes}, (0, 1))


def few_bits(
    bits: int, block: int = 0, zeros: bool = False, mixing: bool = False, **attributes: Any
) -> Case:
    """A QMoE with SwiGLU if `swiglu_fusion` is among the attributes, else with SiLU."""
    fused = attributes.get("swiglu_fusion")
    kind = "swiglu" if fused else "silu"
    layers: list[list[np.ndarray | None]] = []
    for rows, columns in ((INNER * (2 if fused else 1), WIDTH), (WIDTH, INNER)):
        blocks = columns // block if block else 1
        scales = abs(random(EXPERTS, rows, blocks)) / (1 << bits)
        packed = (EXPERTS, rows, -(-blocks * bits // 8)) if block else (EXPERTS, rows * bits // 8)
        layers.append([
            whole(EXPERTS, rows, columns * bits // 8),
            scales if block else scales[..., 0],
            random(EXPERTS, rows),
            whole(*packed) if zeros else None,
        ])  # fmt: skip
    (w1, s1, b1, z1), (w2, s2, b2, z2) = layers
    inputs = [random(TOKENS, WIDTH), random(TOKENS, EXPERTS), w1, s1, b1, w2, s2, b2]
    inputs += [None, None, None, z1, z2, None, abs(random(TOKENS, EXPERTS)) if mixing else None]
    attributes |= {"block_size": block} if block else {}
    attributes |= {"activation_type": kind, "expert_weight_bits": bits}
    return Case("QMoE", inputs, attributes, (0, 1, 14) if mixing else (0, 1))


SWIGLU = {
    "swiglu_fusion": 1, "swiglu_limit": 0.5, "activation_alpha": 1.7, "activation_beta": 1.0, "k": 2
}  # fmt: skip
CASES: dict[str, Case] = {
    **{f"experts, {kind}": experts(kind) for kind in ("relu", "gelu", "silu", "identity")},
    "experts, swiglu": experts("swiglu", **SWIGLU),
    "experts, without biases": experts(kept=False, k=2),
    "experts, normalised": experts(k=3, normalize_routing_weights=1),
    **{f"experts of {bits} bits": few_bits(bits, k=2) for bits in (2, 4, 8)},
    "experts of 4 bits, blocks": few_bits(4, 16, k=2),
    "experts of 4 bits, blocks, zero points": few_bits(4, 16, True, k=2),
    "experts of 4 bits, zero points": few_bits(4, 0, True),
    "experts of 8 bits, zero points": few_bits(8, 0, True),
    "experts of 4 bits, swiglu": few_bits(4, 32, **SWIGLU),
    "experts of 4 bits, swiglu, normalised": few_bits(4, **SWIGLU, normalize_routing_weights=1),
    "experts of 4 bits, what others read": few_bits(
        4, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0
    ),
    "experts of 4 bits, shares": few_bits(4, mixing=True, k=2),
    "experts of 4 bits, normalised shares": few_bits(
        4, mixing=True, k=2, normalize_routing_weights=1
    ),
}

GROUPS = np.random.default_rng(4).permutation(np.arange(64) // 16)
for name, groups in (("in order", np.arange(64) // 16), ("mixed", GROUPS)):
    CASES[f"4 bits, groups {name}"] = Case(
        "MatMulNBits",
        [random(3, 64), whole(8, 4, 8), abs(random(32)) / 16, None, i32(groups)],
        {"K": 64, "N": 8, "bits": 4, "block_size": 16},
    )

BATCH, LENGTH, CHANNELS = 2, 5, 6
TAPS, BIAS = random(CHANNELS, 1, 4), random(CHANNELS)
LAST = {"channels_last": 1, "activation": "silu"}
CASES |= {
    "channels last": Case(
        "CausalConvWithState",
        [random(BATCH, LENGTH, CHANNELS), TAPS, BIAS, random(BATCH, 3, CHANNELS)],
        LAST, (0, 3), ("y", "state"),
    ),
    "channels on two axes": Case(
        "CausalConvWithState",
        [random(BATCH, LENGTH, 2, 3), TAPS, BIAS, random(BATCH, 3, 2, 3)],
        LAST, (0, 3), ("y", "state"),
    ),
    "dilated": Case(
        "CausalConvWithState",
        [random(BATCH, CHANNELS, LENGTH), TAPS, None, random(BATCH, CHANNELS, 6)],
        {"dilation": 2}, (0, 3), ("y", "state"),
    ),
    "dilated, no state, last": Case(
        "CausalConvWithState", [random(BATCH, LENGTH, CHANNELS), TAPS, BIAS],
        {"dilation": 3, **LAST}, (0,), ("y", "state"),
    ),
    "gate": Case(
        "LinearAttentionGate",
        [random(BATCH, LENGTH, 3), random(3), random(3), random(BATCH, LENGTH, 3)],
        {}, (0, 3), ("decay", "rate"),
    ),
}  # fmt: skip

PLACES = i64(np.random.default_rng(2).integers(0, 9, (3, BATCH, LENGTH)))
for name, shape, sections, more in (
    ("chunks", (BATCH, 2, LENGTH, 8), [2, 1, 1], {}),
    ("columns", (BATCH, 2, LENGTH, 24), [6, 3, 3], {"mrope_layout": 1, "interleaved": 1}),
    ("a part", (BATCH, LENGTH, 24), [2, 1, 1],
     {"num_heads": 2, "rotary_embedding_dim": 8, "scale": 0.5}),
):  # fmt: skip
    CASES[f"rotary embedding of images, {name}"] = Case(
        "MRotaryEmbedding",
        [random(*shape), PLACES, random(9, sum(sections)), random(9, sum(sections))],
        {"mrope_section": sections, **more}, (0, 1),
    )  # fmt: skip

FEW, MANY, KEY, VALUE = 2, 4, 4, 3


def delta_net(*lead: int, wide: bool = False, activated: bool = False, **attributes: Any) -> Case:
    """A GatedDeltaNet of tokens [*lead], with a decay for each element of a key if it is `wide`."""
    rule = attributes.get("update_rule", "gated_delta")
    heads = (MANY, KEY) if wide else (MANY,)
    inputs = [
        random(*lead, FEW, KEY), random(*lead, FEW, KEY), random(*lead, MANY, VALUE), None,
        -abs(random(*lead, *heads)) if "gated" in rule else None,
        abs(random(*lead, MANY)) if "delta" in rule else None,
        random(BATCH, MANY, VALUE, KEY),
    ]  # fmt: skip
    inputs += [random(MANY), random(*heads)] if activated else []
    places = tuple(i for i, x in enumerate(inputs) if x is not None and i < 7)
    return Case("GatedDeltaNet", inputs, attributes, places, ("y", "state"))


FLAT, SOFT = BATCH * LENGTH, {"gate_activation": "softplus", "beta_activation": "sigmoid"}
CASES |= {
    "delta net": delta_net(FLAT, qk_l2_norm=1),
    "delta net, sequences": delta_net(BATCH, LENGTH, qk_l2_norm=1, scale=0.7),
    "delta net, decay by element": delta_net(FLAT, wide=True, qk_l2_norm=1),
    "delta net, softplus": delta_net(FLAT, activated=True, qk_l2_norm=1, **SOFT),
    "delta net, all": delta_net(BATCH, LENGTH, wide=True, activated=True, qk_l2_norm=1, **SOFT),
    "delta net, bounded": delta_net(
        BATCH, LENGTH, activated=True, qk_l2_norm=1, gate_activation="kda", gate_lower_bound=-3.0
    ),
    **{
        f"delta net, {rule}": delta_net(FLAT, qk_l2_norm=int(rule == "delta"), update_rule=rule)
        for rule in ("linear", "gated", "delta")
    },
}

NOT_USED = {
    "beta_activation": "none", "gate_activation": "none", "gate_lower_bound": -5.0,
    "chunk_size": 64, "state_update_capacity": 0,
}  # fmt: skip
CASES["delta net, attributes without use"] = delta_net(FLAT, update_rule="linear", **NOT_USED)

HELD, PAST = 9, 5


def masked(further: dict[int, np.ndarray] | None = None, cross: bool = False) -> Case:
    """A DecoderMaskedMultiHeadAttention with 2 heads of 4."""
    new = [random(BATCH, 1, 8) for _ in range(3)]
    if cross:
        inputs = [new[0], random(BATCH, 2, PAST, 4), random(BATCH, 2, PAST, 4)] + [None] * 8
    else:
        caches = [random(BATCH, 2, HELD, 4) for _ in range(2)]
        inputs = [*new, None, None, *caches, i32([PAST]), None, None, None]
    for place, value in (further or {}).items():
        inputs[place] = value
    places = tuple(i for i, x in enumerate(inputs) if x is not None)
    attributes = {"num_heads": 2, "past_present_share_buffer": int(not cross)}
    return Case(
        "DecoderMaskedMultiHeadAttention", inputs, attributes, places,
        ("y",) if cross else ("y", "key", "value"),
    )  # fmt: skip


KEPT = i32(np.random.default_rng(6).integers(0, 2, (BATCH, PAST + 1)))
BEAMS = i32(np.random.default_rng(7).integers(0, 2, (1, BATCH, HELD)))
CASES |= {
    "one token": masked(),
    "one token, masked": masked({3: KEPT, 4: random(1, 2, 1, PAST + 1)}),
    "one token, bias": masked({10: random(24)}),
    "one token, beams": masked({8: i32([2]), 9: BEAMS, 10: random(24)}),
    "one token, cross": masked(cross=True),
    "one token, cross, masked": masked({3: KEPT[:, :PAST]}, cross=True),
}


@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str, tmp_path: Path) -> None:
    """OpenVINO computes the same as onnxruntime, and the operator comes back."""
    case = CASES[name]
    model, feed = model_of(case), feed_of(case)
    bridge.convert(model, tmp_path / "a.xml")
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    expected, actual = OnnxRuntime(model).run(feed), list(compiled(list(feed.values())).values())
    if case.op == "DecoderMaskedMultiHeadAttention":  # The rest of the buffer holds anything.
        expected, actual = (
            [x[:, :, : PAST + 1] if x.ndim == 4 else x for x in some] for some in (expected, actual)
        )
    assert_close(actual, expected)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node] == [case.op]


def test_experts_in_standard_operators(tmp_path: Path) -> None:
    """A Loop visits the experts that have tokens."""
    case = CASES["experts, swiglu"]
    model, feed = model_of(case), feed_of(case)
    bridge.convert(model, tmp_path / "b.onnx", standard_operators=True)
    assert_close(OnnxRuntime(tmp_path / "b.onnx").run(feed), OnnxRuntime(model).run(feed))


@pytest.mark.parametrize("outside", [False, True], ids=["weights inside", "weights outside"])
@pytest.mark.parametrize("name", ["experts, swiglu", "experts of 4 bits, blocks, zero points"])
def test_experts_in_a_branch(name: str, outside: bool, tmp_path: Path) -> None:
    """The branch with the experts, and the one that passes the tokens on, in both directions."""
    model = model_of(CASES[name], dynamic=True)
    graph = model.graph
    weights = [] if outside else list(graph.initializer)
    y = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    then = onnx.helper.make_graph(list(graph.node), "then", [], y, weights)
    same = onnx.helper.make_node("Identity", ["i0"], ["y"])
    otherwise = onnx.helper.make_graph([same], "else", [], y)
    one = onnx.helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=otherwise)
    del graph.node[:]
    graph.node.append(one)
    graph.input.append(onnx.helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))
    graph.output[0].name = "z"
    if not outside:
        del graph.initializer[:]
    bridge.convert(model, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    engine, back = OnnxRuntime(model), OnnxRuntime(tmp_path / "b.onnx")
    for taken in (True, False):
        feed = {**feed_of(CASES[name]), "c": np.array(taken)}
        expected = engine.run(feed)
        assert_close(list(compiled(list(feed.values())).values()), expected)
        assert_close(back.run(feed), expected)
    (one,) = onnx.load(tmp_path / "b.onnx").graph.node
    then, _ = (attribute.g for attribute in one.attribute)
    assert [node.op_type for node in then.node] == [CASES[name].op]


def test_zero_points_of_groups(tmp_path: Path) -> None:
    """onnxruntime's CPU kernel ignores zero points beside g_idx; the groups keep them."""
    x, packed, scales = random(3, 64), whole(8, 4, 8), abs(random(8, 4)) / 16
    points = np.random.default_rng(1).integers(0, 16, (8, 4))
    case = Case(
        "MatMulNBits",
        [x, packed, scales.reshape(-1), (points[:, ::2] | points[:, 1::2] << 4).astype(np.uint8)
         .reshape(-1), i32(GROUPS)],
        {"K": 64, "N": 8, "bits": 4, "block_size": 16},
    )  # fmt: skip
    bridge.convert(model_of(case), tmp_path / "a.xml")
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    levels = np.stack([packed & 15, packed >> 4], -1).reshape(8, 64).astype(np.float32)
    weights = (levels - points[:, GROUPS]) * scales[:, GROUPS]
    assert_close(list(compiled([x]).values()), [f32(x @ weights.T)])
