"""GroupQueryAttention with caches of a window's size, of few bits, and with padding behind the new
words. OpenVINO computes what onnxruntime does; what the operator leaves open is not compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, helper

import bridge
from tests.support.running import EXACT, OnnxRuntime, assert_close

HEADS, GROUPS, SIZE, WINDOW = 4, 2, 32, 4
BITS = {0: TensorProto.FLOAT, 8: TensorProto.INT8, 4: TensorProto.UINT8}
Feed = dict[str, np.ndarray]


@dataclass(frozen=True)
class Group:
    """A node with a cache of `bits` (0: f32) and a scale of shape `scale`. `more` has inputs, by
    name, with their places and shapes. `calls` are (new words, size of the cache, keys of each
    sequence)."""

    calls: list[tuple[int, int, list[int]]]
    bits: int = 0
    scale: tuple[int, ...] = (1,)
    more: dict[str, tuple[int, list[Any]]] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        f, i, kept = TensorProto.FLOAT, TensorProto.INT32, SIZE // 2 if self.bits == 4 else SIZE
        own = [
            ("q", f, ["b", "s", HEADS * SIZE]), ("k", f, ["b", "s", GROUPS * SIZE]),
            ("v", f, ["b", "s", GROUPS * SIZE]), ("pk", BITS[self.bits], ["b", GROUPS, "p", kept]),
            ("pv", BITS[self.bits], ["b", GROUPS, "p", kept]), ("n", i, ["b"]), ("t", i, []),
        ]  # fmt: skip
        names, attributes = [name for name, *_ in own] + [""] * 10, dict(self.attributes)
        more = dict(self.more)
        if self.bits:
            more |= {"ks": (12, list(self.scale)), "vs": (13, list(self.scale))}
            kind = "PER_TENSOR" if self.scale == (1,) else "PER_CHANNEL"
            attributes |= {"k_quant_type": kind, "v_quant_type": kind}
            attributes["kv_cache_bit_width"] = self.bits
        for name, (place, shape) in more.items():
            names[place] = name
            own.append((name, i if name == "added" else f, shape))
        outputs = [("y", f, None), ("ok", BITS[self.bits], None), ("ov", BITS[self.bits], None)]
        node = helper.make_node(
            "GroupQueryAttention", names, ["y", "ok", "ov"], domain="com.microsoft",
            num_heads=HEADS, kv_num_heads=GROUPS, **attributes,
        )  # fmt: skip
        values = [[helper.make_tensor_value_info(*x) for x in some] for some in (own, outputs)]
        domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        graph = helper.make_graph([node], "g", *values)
        return helper.make_model(graph, opset_imports=domains, ir_version=10)

    def feeds(self) -> Iterator[Feed]:
        rng = np.random.default_rng(3)
        types = {0: np.float32, 8: np.int8, 4: np.uint8}
        for new, held, keys in self.calls:
            batch, most = len(keys), np.array(keys, np.int32)
            shapes = {
                "q": (batch, new, HEADS * SIZE), "k": (batch, new, GROUPS * SIZE),
                "v": (batch, new, GROUPS * SIZE), "bias": (1, HEADS, new, most.max()),
                "sink": (HEADS,),
            }  # fmt: skip
            feed = {
                name: rng.normal(size=shape).astype(np.float32)
                for name, shape in shapes.items()
                if name in (*self.more, "q", "k", "v")
            }
            shape = (batch, GROUPS, held, SIZE // 2 if self.bits == 4 else SIZE)
            for name in ("pk", "pv"):
                stored = rng.normal(size=shape) if not self.bits else rng.integers(0, 250, shape)
                feed[name] = stored.astype(types[self.bits])
            feed |= {"n": most - 1, "t": np.array(most.max())}
            if self.bits:
                step = 4.0 / (1 << self.bits)
                for name in ("ks", "vs"):
                    feed[name] = rng.uniform(step, 2 * step, self.scale).astype(np.float32)
            if "added" in self.more:
                feed["added"] = np.array([min(new - i % 2, n) for i, n in enumerate(keys)])
            for name, value in feed.items():
                if value.dtype == np.int64:
                    feed[name] = value.astype(np.int32)
            yield feed


IN_WINDOW = {"sliding_window_cache": 1, "local_window_size": WINDOW}
CALLS = [(new, held, [n]) for held in (4, 5, 9) for new in (1, 3, 10) for n in range(new, 22, 3)]
BATCHES = [(1, held, [a, b]) for held in (4, 7) for a in (1, 4, 13) for b in (3, 8, 20)]
PADDED = [(3, 9, [5, 4]), (1, 9, [5, 4]), (4, 9, [3, 4])]
FEW = [(3, 6, [9]), (1, 9, [9, 4]), (5, 9, [5])]
BIASES = [(2, 6, [n]) for n in range(2, 14)] + [(1, 6, [n, 3]) for n in range(3, 12)]
GROUPS_OF_CALLS: dict[str, Group] = {
    "window": Group(CALLS, attributes=IN_WINDOW),
    "window, several": Group(BATCHES, attributes=IN_WINDOW),
    "window, softcap, sink": Group(
        BATCHES, more={"sink": (11, [HEADS])}, attributes={**IN_WINDOW, "softcap": 2.0}
    ),
    "window, bias": Group(
        BIASES, more={"bias": (10, [1, HEADS, "s", "keys"])}, attributes=IN_WINDOW
    ),
    "window, padded": Group(
        [(3, 6, [a, b]) for a in (3, 5, 11) for b in (3, 7, 8)],
        more={"added": (16, ["b"])},
        attributes=IN_WINDOW,
    ),
    "padded": Group(PADDED, more={"added": (16, ["b"])}),
    "padded, local": Group(
        PADDED, more={"added": (16, ["b"])}, attributes={"local_window_size": 2}
    ),
}
for bits in (8, 4):
    for scale in ((1,), (1, GROUPS, 1, SIZE), (GROUPS * SIZE,)):
        GROUPS_OF_CALLS[f"{bits} bits, {len(scale)}, {scale[0]}"] = Group(FEW, bits, scale)
    GROUPS_OF_CALLS[f"{bits} bits, smooth, softcap"] = Group(
        FEW, bits, attributes={"smooth_softmax": 1, "softcap": 1.5}
    )
    GROUPS_OF_CALLS[f"{bits} bits, window"] = Group(
        CALLS, bits, (1, GROUPS, 1, SIZE), attributes=IN_WINDOW
    )


@pytest.mark.parametrize("name", GROUPS_OF_CALLS)
def test_caches(name: str, tmp_path: Path) -> None:
    group = GROUPS_OF_CALLS[name]
    model = group.model()
    onnx.save(model, tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "a.xml")
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert [n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node] == ["GroupQueryAttention"]
    engine = OnnxRuntime(tmp_path / "a.onnx")
    for feed in group.feeds():
        results = engine.run(feed), list(compiled(feed).values())
        expected, actual = ([*said(group, feed, some)] for some in results)
        assert_close(actual, expected)


def said(group: Group, feed: Feed, results: list[np.ndarray]) -> Iterator[np.ndarray]:
    """What the operator says of the results: the rows of new words, and the keys in use."""
    y, *caches = results
    for i, keys in enumerate(feed["n"] + 1):
        yield y[i, : feed["added"][i]] if "added" in feed else y[i]
        for cache in caches:
            held = cache.shape[2]
            if "sliding_window_cache" in group.attributes and keys > held:
                freed = held - WINDOW + 1
                keys -= freed * -(-(keys - held) // freed)
            yield cache[i, :, :keys]


def test_attributes_without_use(tmp_path: Path) -> None:
    """The builder writes these, whatever the model."""
    given = {
        "do_rotary": 0, "rotary_interleaved": 0, "softcap": 0.0, "smooth_softmax": 0,
        "qk_output": 0, "causal": 1, "k_quant_type": "NONE", "v_quant_type": "NONE",
        "kv_cache_bit_width": 0, "qk_norm_epsilon": 1e-6, "sliding_window_cache": 0,
        "local_window_size": -1, "scale": 0.25,
    }  # fmt: skip
    group = Group(FEW, attributes=given)
    bridge.convert(group.model(), tmp_path / "a.xml")
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    engine = OnnxRuntime(group.model())
    for feed in group.feeds():
        assert_close(list(compiled(feed).values()), engine.run(feed))


def test_norms_of_heads(tmp_path: Path) -> None:
    """onnxruntime's CPU kernel takes no norms of heads; they equal norms in front of it."""
    normed = {"qn": (14, [SIZE]), "kn": (15, [SIZE])}
    group = Group([(3, 6, [9])], more=normed, attributes={"qk_norm_epsilon": 1e-2})
    bridge.convert(group.model(), tmp_path / "a.xml")
    compiled = openvino.Core().compile_model(tmp_path / "a.xml", "CPU", EXACT)
    rng, (feed,) = np.random.default_rng(1), group.feeds()
    weights = {name: rng.normal(size=SIZE).astype(np.float32) for name in normed}
    plain = Group(group.calls)
    outside = dict(feed)
    for name in ("q", "k"):
        heads = feed[name].reshape(1, 3, -1, SIZE)
        root = np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-2)
        outside[name] = (heads / root * weights[f"{name}n"]).reshape(feed[name].shape)
    expected = OnnxRuntime(plain.model()).run(outside)
    assert_close(list(compiled(feed | weights).values()), expected)
