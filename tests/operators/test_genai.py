"""onnxruntime's operators come back from IR, in decoders as onnxruntime-genai writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from openvino._offline_transformations import paged_attention_transformation

import bridge
from bridge.check import check
from tests.operators.microsoft_cases import CASES
from tests.operators.test_microsoft import feed_of, model_of
from tests.support.genai import WORDS, Decoder, feed
from tests.support.reports import feeds_of
from tests.support.running import EXACT, OnnxRuntime, OpenVino, assert_close

DECODERS = {
    "packed": Decoder(),
    "separate": Decoder(packed=False),
    "4 bits": Decoder(bits=4),
    "two tables": Decoder(long=True),
    "operator set 23": Decoder(opset=23),
    "window": Decoder(window=6),
    "cache of 8 bits": Decoder(stored=8),
    "window of 8 bits": Decoder(stored=8, window=6),
    "cache of 4 bits": Decoder(stored=4),
    "heads of a named size": Decoder(named=True),
    "4 bits, heads of a named size": Decoder(named=True, packed=False, stored=4),
}
STEPS = ((7, 0), (1, 7), (1, 15))
"""The lengths of new words, and of words before them."""


def nodes_of(model: onnx.ModelProto, decoder: Decoder) -> list[onnx.NodeProto]:
    """The nodes of a decoder. An IR reads the whole length elsewhere, or nowhere, with a window or
    a cache of few bits. The nodes that compute it then have another place."""
    nodes = model.graph.node
    other = decoder.window > 0 or decoder.stored
    return sorted(nodes, key=lambda node: node.output[0]) if other else list(nodes)


@pytest.mark.parametrize("name", DECODERS)
def test_decoder_comes_back(name: str, tmp_path: Path) -> None:
    decoder = DECODERS[name]
    model = decoder.model()
    onnx.save(model, tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    nodes = [nodes_of(graph, decoder) for graph in (onnx.load(tmp_path / "b.onnx"), model)]
    back, former = ([(node.op_type, list(node.output)) for node in some] for some in nodes)
    assert back == former
    bridge.convert(tmp_path / "b.onnx", tmp_path / "b.xml")
    bridge.convert(tmp_path / "b.xml", tmp_path / "c.onnx")
    assert (tmp_path / "c.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    engines = [OnnxRuntime(tmp_path / f"{x}.onnx") for x in "ab"]
    openvino = OpenVino(tmp_path / "a.xml")
    for length, past in STEPS:
        # The last rows of a longer cache hold anything.
        held = decoder.window if decoder.window > 0 else None
        given = feed(decoder, length, past, held=held)
        expected, actual = (engine.run(given) for engine in engines)
        for one, other in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(one, other)
        assert_close(openvino.run(list(given.values())), expected)


@pytest.mark.parametrize("name", ["4 bits", "two tables"])
def test_check_draws_lengths_that_go_together(name: str, tmp_path: Path) -> None:
    onnx.save(DECODERS[name].model(), tmp_path / "a.onnx")
    report = check(tmp_path / "a.onnx", samples=2)
    assert report.ok and len(report.branches.reached) == len(report.branches.all), str(report)
    for given in feeds_of(report):
        mask, cache = given["attention_mask"], given["past_key_values.0.key"]
        assert mask.shape[1] == cache.shape[2] + given["input_ids"].shape[1]
        assert mask.all() and given["input_ids"].min() >= 0 and given["input_ids"].max() < WORDS


def test_check_finds_a_mask_that_forbids_new_words(tmp_path: Path) -> None:
    onnx.save(Decoder(layers=1).model(), tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    assert 'type="LessEqual"' in text
    (tmp_path / "a.xml").write_text(text.replace('type="LessEqual"', 'type="Less"'))
    assert check(tmp_path / "a.onnx", tmp_path / "a.xml", samples=1).different


@pytest.mark.parametrize(
    "sizes",
    [{"past_sequence_length": 7}, {"total_sequence_length": 9}, {"sequence_length": 3}],
    ids=str,
)
def test_check_keeps_sizes_of_the_user(sizes: dict[str, int], tmp_path: Path) -> None:
    onnx.save(DECODERS["packed"].model(), tmp_path / "a.onnx")
    report = check(tmp_path / "a.onnx", sizes=sizes, samples=2)
    assert report.ok, str(report)
    for given in feeds_of(report):
        new, total = given["input_ids"].shape[1], given["attention_mask"].shape[1]
        past = given["past_key_values.0.key"].shape[2]
        found = dict(zip(("sequence_length", "total_sequence_length", "past_sequence_length"),
                         (new, total, past), strict=True))  # fmt: skip
        assert total == past + new and sizes.items() <= found.items()


@pytest.mark.parametrize("name", ["groups, prompt", "groups, tokens", "groups, packed"])
def test_check_draws_lengths_that_are_inputs(name: str, tmp_path: Path) -> None:
    onnx.save(model_of(CASES[name]), tmp_path / "a.onnx")
    report = check(tmp_path / "a.onnx")
    assert report.ok, str(report)
    for given in feeds_of(report):
        past = given["i3"].shape[2] if "i3" in given else 0
        assert given["i6"] == past + given["i0"].shape[1]
        assert (given["i5"] == given["i6"] - 1).all()


def test_window_wraps(tmp_path: Path) -> None:
    """Calls in a row give what onnxruntime gives, whose cache has the size of the window."""
    decoder, text, steps = Decoder(window=4), [5, 9, 3, 60, 11], 12
    compiled = stateful(decoder, tmp_path)
    engine, total, words = OnnxRuntime(tmp_path / "a.onnx"), len(text), np.array([text])
    given, found = feed(decoder, total, 0, held=5), []
    names = [name for name in given if name.startswith("past")]
    for step in range(steps):
        given |= {"input_ids": words, "attention_mask": np.ones((1, total), np.int64)}
        logits, *present = engine.run(given)
        given |= dict(zip(names, present, strict=True))
        found.append(logits[:, -1])
        words, total = np.full((1, 1), 7 * step % WORDS), total + 1
    assert_close([generated(compiled, [text], steps)], [np.array(found)])


@pytest.mark.parametrize("suffix", ["onnx", "xml"])
@pytest.mark.parametrize("name", ["packed", "two tables"])
def test_decoder_in_standard_operators(name: str, suffix: str, tmp_path: Path) -> None:
    decoder = DECODERS[name]
    onnx.save(decoder.model(), tmp_path / "a.onnx")
    if suffix == "xml":
        bridge.convert(tmp_path / "a.onnx", tmp_path / "a.xml")
    bridge.convert(tmp_path / f"a.{suffix}", tmp_path / "b.onnx", standard_operators=True)
    onnx.checker.check_model(tmp_path / "b.onnx", full_check=True)
    assert {item.domain for item in onnx.load(tmp_path / "b.onnx").opset_import} == {""}
    before, after = OnnxRuntime(tmp_path / "a.onnx"), OnnxRuntime(tmp_path / "b.onnx")
    for length, past in STEPS:
        given = feed(decoder, length, past)
        assert_close(after.run(given), before.run(given))


def stateful(decoder: Decoder, folder: Path, **options: object) -> openvino.CompiledModel:
    onnx.save(decoder.model(), folder / "a.onnx")
    bridge.convert(folder / "a.onnx", folder / "a.xml", stateful=True, beam_idx=True, **options)
    return openvino.Core().compile_model(folder / "a.xml", "CPU", EXACT)


def generated(compiled: openvino.CompiledModel, texts: list[list[int]], steps: int) -> np.ndarray:
    """The logits of the last word for each of `steps` calls. The texts are padded in front."""
    request, width = compiled.create_infer_request(), max(map(len, texts))
    beams = {"beam_idx": np.arange(len(texts), dtype=np.int32)}
    mask = np.array([[0] * (width - len(text)) + [1] * len(text) for text in texts])
    words, found = np.array([[0] * (width - len(text)) + text for text in texts]), []
    taken = {port.any_name for port in compiled.inputs}
    for step in range(steps):
        places = np.maximum(mask.cumsum(1) - 1, 0)[:, -words.shape[1] :]
        given = {"input_ids": words, "attention_mask": mask, "position_ids": places, **beams}
        results = request.infer({name: x for name, x in given.items() if name in taken})
        found.append(results["logits"][:, -1])
        words = np.full((len(texts), 1), 7 * step % WORDS)
        mask = np.concatenate([mask, np.ones_like(words)], 1)
    return np.array(found)


@pytest.mark.parametrize("name", DECODERS)
def test_stateful_decoder(name: str, tmp_path: Path) -> None:
    """The variables are caches: OpenVINO's CPU plugin joins them within its attention, or divides
    them into pages. Texts of several lengths give the same together as alone."""
    decoder = DECODERS[name]
    compiled = stateful(decoder, tmp_path)
    if not decoder.long and not decoder.stored:  # Its tables depend on the mask's length.
        pages = openvino.Core().read_model(tmp_path / "a.xml")
        paged_attention_transformation(pages)
        assert "attention_mask" not in {name for port in pages.inputs for name in port.names}
    layers = [node.rt_info["layerType"] for node in compiled.get_runtime_model().get_ops()]
    assert layers.count("ScaledDotProductAttention") == (0 if decoder.stored else decoder.layers)
    texts = [[5, 9, 3, 60, 11], [17, 4]]
    together = generated(compiled, texts, 4)
    for place, text in enumerate(texts):
        assert_close([together[:, place]], [generated(compiled, [text], 4)[:, 0]])
    engine, length = OnnxRuntime(tmp_path / "a.onnx"), len(texts[0])
    (logits, *_) = engine.run(
        feed(decoder, length, 0, held=max(decoder.window, 0))
        | {"input_ids": np.array([texts[0]]), "attention_mask": np.ones((1, length), np.int64)}
    )
    assert_close([together[0, 0]], [logits[0, -1]])


@pytest.mark.parametrize("name", DECODERS)
def test_stateful_decoder_comes_back(name: str, tmp_path: Path) -> None:
    stateful(DECODERS[name], tmp_path)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    before, after = (nodes_of(onnx.load(tmp_path / f"{x}.onnx"), DECODERS[name]) for x in "ab")
    assert [node.op_type for node in after] == [node.op_type for node in before]
    for one, other in zip(before, after, strict=True):
        assert {a.name for a in other.attribute} <= {a.name for a in one.attribute}
    if DECODERS[name].window < 0:  # Other sizes of a cache are drawn.
        report = check(tmp_path / "a.onnx", tmp_path / "a.xml", samples=2)
        assert report.ok, str(report)


def test_stateful_decoder_of_one_text(tmp_path: Path) -> None:
    """A single sequence has no shorter one beside it, so no mask is needed."""
    shapes = {"input_ids": (1, None), "attention_mask": (1, None)}
    compiled = stateful(Decoder(), tmp_path, input_shapes=shapes)
    assert 'type="LogicalOr"' not in (tmp_path / "a.xml").read_text()
    other = stateful(Decoder(), tmp_path)
    texts = [[5, 9, 3, 60, 11]]
    assert_close([generated(compiled, texts, 4)], [generated(other, texts, 4)])


def test_changed_layers_are_what_counts(tmp_path: Path) -> None:
    case = CASES["skip, sum"]
    bridge.convert(model_of(case), tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    assert text.count('eps="1e-05"') == 1
    (tmp_path / "a.xml").write_text(text.replace('eps="1e-05"', 'eps="0.5"'))
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert not any(node.domain for node in onnx.load(tmp_path / "b.onnx").graph.node)
    given = feed_of(case)
    expected = OpenVino(tmp_path / "a.xml").run(list(given.values()))
    assert_close(OnnxRuntime(tmp_path / "b.onnx").run(given), expected)


def test_outputs_without_a_use_stay(tmp_path: Path) -> None:
    """onnxruntime computes attention with a cache only if the node has the cache as an output."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[b,s,8] x, float[b,2,p,4] key, float[b,2,p,4] value) => (float[b,s,8] y) {
            y, whole_key, whole_value = com.microsoft.MultiHeadAttention <num_heads = 2>
                (x, x, x, "", "", "", key, value)
        }""")
    bridge.convert(model, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    (node,) = onnx.load(tmp_path / "b.onnx").graph.node
    assert list(node.output) == ["y", "whole_key", "whole_value"]
    rng = np.random.default_rng(3)
    shapes = {"x": (2, 3, 8), "key": (2, 2, 5, 4), "value": (2, 2, 5, 4)}
    given = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    assert_close(OnnxRuntime(tmp_path / "b.onnx").run(given), OnnxRuntime(model).run(given))
