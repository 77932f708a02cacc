"""Nodes whose inputs are all known are known themselves, and are what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

import bridge
from bridge.neutral.builder import values_of
from bridge.onnx_format.evaluation import NOT_COMPUTED
from bridge.passes.specialize import fix_values
from tests.conformance.cases import cases
from tests.support import sample
from tests.support.running import OnnxRuntime

SPECIAL = np.array([np.inf, -np.inf, -0.0, 0.5, -0.5, 1.5, -2.5, 1e30, 3e9])
"""Real numbers that operators round, or that other types do not hold."""

Feeds = dict[str, np.ndarray]


def special(feeds: Feeds, seed: int) -> Feeds:
    """Inputs with some of these numbers among them."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, array in feeds.items():
        if array.dtype in (np.float32, np.float64) and array.size > 2:
            flat = array.reshape(-1).copy()
            places = rng.integers(flat.size, size=min(len(SPECIAL), flat.size // 2))
            flat[places] = rng.choice(SPECIAL, len(places))
            array = flat.reshape(array.shape)
        made[name] = array
    return made


def single_nodes() -> Iterator[tuple[str, onnx.ModelProto, Feeds]]:
    """Cases of one node that has no body, whose inputs are arrays."""
    for place, (name, case) in enumerate(cases().items()):
        graph = case.model.graph
        if len(graph.node) != 1 or any(a.HasField("g") for a in graph.node[0].attribute):
            continue
        if not all(i.type.HasField("tensor_type") for i in graph.input):
            continue
        for inputs, _ in case.data_sets:
            feeds = {i.name: np.asarray(x) for i, x in zip(graph.input, inputs, strict=False)}
            if len(feeds) == len(inputs) and all(x.dtype.kind in "biuf" for x in feeds.values()):
                yield name, case.model, feeds
                if sample.WHOLE or place % 3 == 0:
                    yield f"{name} special", case.model, special(feeds, place)


def computed(model: onnx.ModelProto, feeds: Feeds) -> list[np.ndarray | None]:
    """What is known of the outputs when the inputs are constants."""
    loaded = bridge.load(model)
    fix_values(loaded, feeds)
    return [values_of(value) for value in loaded.graph.outputs]


def test_known_nodes_are_what_onnxruntime_computes() -> None:
    count, wrong, never = 0, [], {}
    for name, model, feeds in single_nodes():
        op = model.graph.node[0].op_type
        known = computed(model, feeds)
        never[op] = never.get(op, True) and known[0] is None
        if None in [None if array is None else 0 for array in known]:
            continue
        try:
            expected = OnnxRuntime(model).run(feeds)
        except Exception:  # onnxruntime lacks some operators and types
            continue
        count += 1
        for one, other in zip(known, expected, strict=True):
            assert one is not None
            same = (one.dtype, one.shape) == (other.dtype, other.shape)
            if not same or not np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True):
                wrong.append(f"{name}: {one.reshape(-1)[:6]}, not {other.reshape(-1)[:6]}")
    assert not wrong, "\n".join(wrong)
    assert count > 800
    print(
        count, sorted(op for op, is_never in never.items() if is_never and op not in NOT_COMPUTED)
    )
