"""What can be seen and steered inside a model, and what in two models stands for each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from bridge.check.engines import Engine, OnnxRuntime, OpenVino
from bridge.check.surgery.bringing import COUNT, brought_out, last
from bridge.check.surgery.sites import graphs_of, sites_of
from bridge.check.surgery.slices import slice_of
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.twins import twin_sites, twins
from bridge.check.surgery.watching import all_taken, iterations
from bridge.neutral.graph import Graph, Model, Value

ENGINES = [(".onnx", OnnxRuntime), (".xml", OpenVino)]

NESTED = """<ir_version: 9, opset_import: ["" : 18]>
g (float[N] x, int64 n, bool c) => (float[N] y) <int64 one = {1}> {
  y = Loop (n, "", x) <body = outer (int64 i, bool a, float[N] v) => (bool b, float[N] w) {
    b = Identity (a)
    m = Add (i, one)
    w = Loop (m, "", v) <body = inner (int64 j, bool d, float[N] s) => (bool e, float[N] t) {
      e = Identity (d)
      t = If (c) <then_branch = t () => (float[N] p) { p = Exp (s) },
                  else_branch = e () => (float[N] q) { q = Sin (s) }>
    }>
  }>
}"""

OPEN_RANK = """<ir_version: 9, opset_import: ["" : 18]>
g (float[2,3] x, bool c) => (float[k] y) <int64[1] all = {-1}, int64[1] f = {0}> {
  r = If (c) <then_branch = t () => (float[3] a) { z = Neg (x) a = ReduceSum <keepdims=0> (z, f) },
              else_branch = e () => (float[2,3] b) { b = Abs (x) }>
  s = Relu (r)
  y = Reshape (s, all)
}"""


def loaded(text: str) -> Model:
    return bridge.load(onnx.parser.parse_model(text))


def graph_of(model: Model, name: str) -> tuple[Graph, Value]:
    """The value of a name and the graph that computes it."""
    return next(
        (graph, value)
        for _, graph in graphs_of(model)
        for node in graph.nodes
        for value in node.outputs
        if name in value.names
    )


@pytest.mark.parametrize(("suffix", "engine"), ENGINES)
def test_a_model_says_what_ran(suffix: str, engine: type[Engine], tmp_path: Path) -> None:
    surgery = Surgery(loaded(NESTED))
    surgery.watch()
    bridge.convert(surgery.model, tmp_path / f"m{suffix}")
    session = engine().load(tmp_path / f"m{suffix}")
    branch, outer, inner = sites = list(sites_of(loaded(NESTED)).values())
    x = np.ones(2, np.float32)
    for n, most, taken in [
        (0, 0, {(outer.index, 0)}),
        (1, 1, {(branch.index, 0), (outer.index, 1), (inner.index, 1)}),
        (3, 3, {(branch.index, 0), (outer.index, 2), (inner.index, 1), (inner.index, 2)}),
    ]:
        results = session.run({"x": x, "n": np.array(n), "c": np.array(False)})
        assert all_taken(results, sites) == taken
        assert iterations(results, sites) == {outer.index: n, inner.index: most}


@pytest.mark.parametrize(("suffix", "engine"), ENGINES)
def test_a_value_of_one_iteration(suffix: str, engine: type[Engine], tmp_path: Path) -> None:
    model = loaded(NESTED)
    graph, value = graph_of(model, "p")
    surgery = Surgery(model)
    surgery.bring_out(graph, {"seen": value})
    bridge.convert(surgery.model, tmp_path / f"m{suffix}")
    session = engine().load(tmp_path / f"m{suffix}")
    x = np.zeros(2, np.float32)
    feed = {"x": x, "n": np.array(4), "c": np.array(True), last(0): np.array(1)}
    found = brought_out(session.run({**feed, last(1): np.array(0)}), "seen")
    np.testing.assert_allclose(found, np.full(2, np.exp(1)), rtol=1e-5)
    assert len(model.graph.outputs) == 1


@pytest.mark.parametrize(("suffix", "engine"), ENGINES)
@pytest.mark.parametrize("taken", [True, False])
def test_a_value_of_open_rank(
    taken: bool, suffix: str, engine: type[Engine], tmp_path: Path
) -> None:
    model = loaded(OPEN_RANK)
    graph, value = graph_of(model, "s")
    assert value.rank is None
    surgery = Surgery(model)
    surgery.bring_out(graph, {"seen": value})
    bridge.convert(surgery.model, tmp_path / f"m{suffix}")
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 3
    results = engine().load(tmp_path / f"m{suffix}").run({"x": x, "c": np.array(taken)})
    wanted = np.maximum(-x.sum(0), 0) if taken else np.abs(x)
    np.testing.assert_array_equal(brought_out(results, "seen"), wanted)
    assert COUNT not in results


def test_some_nodes_as_a_model(tmp_path: Path) -> None:
    model = loaded(OPEN_RANK)
    graph, a = graph_of(model, "a")
    (node,) = (node for node in graph.nodes if a in node.outputs)
    z = node.inputs[0]
    assert z is not None
    part = slice_of(model, [node], [z], [a], {z: "in", a: "out"})
    bridge.save(part, tmp_path / "part.onnx")
    results = OnnxRuntime().load(tmp_path / "part.onnx").run({"in": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(results["out"], np.full(3, 2, np.float32))


def test_twins_have_one_name(tmp_path: Path) -> None:
    model = loaded(NESTED)
    bridge.convert(onnx.parser.parse_model(NESTED), tmp_path / "m.xml")
    other = bridge.load(tmp_path / "m.xml")
    found = twin_sites(model, other)
    assert {site.where for site in found.values()} == {s.where for s in sites_of(model).values()}
    graph, value = graph_of(model, "y")
    pairs = twins(graph, other.graph)
    assert "y" in pairs.values[value].names
    assert [node.op for node in pairs.nodes] == ["Loop"]


def test_twins_without_names_have_one_position() -> None:
    renamed = onnx.parser.parse_model(NESTED)
    renamed.graph.node[0].output[0] = renamed.graph.output[0].name = "other"
    outer = renamed.graph.node[0].attribute[0].g
    outer.node[2].output[0] = outer.output[1].name = "others"
    model, other = loaded(NESTED), bridge.load(renamed)
    found = {site.where: node for node, site in twin_sites(model, other).items()}
    assert [node.op for node in found.values()] == ["If", "Loop", "Loop"]
    assert [node.outputs[0].name for node in found.values()] == ["t", "other", "others"]
