"""States that an ONNX model takes and returns become variables of IR, and come back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from lxml import etree

import bridge
from bridge.check import check
from bridge.cli.options import states
from tests.support.reports import feeds_of
from tests.support.running import EXACT, OnnxRuntime

HEADS, SIZE, WORDS = 2, 4, 11


def decoder() -> onnx.ModelProto:
    """One layer of attention over earlier words, which it keeps in a cache."""
    rng = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        array = rng.standard_normal(shape).astype(np.float32)
        return onnx.numpy_helper.from_array(array, name)

    width = HEADS * SIZE
    cache = f"float[batch, {HEADS}, past, {SIZE}]"
    after = f"float[batch, {HEADS}, total, {SIZE}]"
    heads = "\n".join(
        f"""{t}_flat = MatMul(x, w_{t})
            {t}_split = Reshape({t}_flat, split)
            {t} = Transpose<perm=[0, 2, 1, 3]>({t}_split)"""
        for t in "qkv"
    )
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        decoder (int64[batch, sequence] input_ids, {cache} past_0_key,
                 {cache} past_0_value)
            => (float[batch, sequence, {WORDS}] logits, {after} present_0_key,
                {after} present_0_value)
            <int64[4] split = {{0, 0, {HEADS}, {SIZE}}}, int64[3] joined = {{0, 0, {width}}}> {{
            x = Gather(words, input_ids)
            {heads}
            present_0_key = Concat<axis=2>(past_0_key, k)
            present_0_value = Concat<axis=2>(past_0_value, v)
            turned = Transpose<perm=[0, 1, 3, 2]>(present_0_key)
            scores = MatMul(q, turned)
            shares = Softmax<axis=-1>(scores)
            mixed = MatMul(shares, present_0_value)
            back = Transpose<perm=[0, 2, 1, 3]>(mixed)
            hidden = Reshape(back, joined)
            logits = MatMul(hidden, head)
        }}""")
    model.graph.initializer.extend(
        [
            weights("words", WORDS, width),
            *(weights(f"w_{t}", width, width) for t in "qkv"),
            weights("head", width, WORDS),
        ]
    )
    return model


COUNTER = """
    <ir_version: 8, opset_import: ["" : 17]>
    counter (float[n, 3] x, float[2, 3] h, float[2, 3] c)
        => (float[1, n, 3] y, float[2, 3] hn, float[2, 3] cn) {
        hn = Add(h, c)
        one = Constant<value_float=1.0>()
        cn = Add(c, one)
        axes = Constant<value_ints=[0]>()
        sum = ReduceSum<keepdims=0>(hn, axes)
        all = Add(x, sum)
        y = Unsqueeze(all, axes)
    }"""


def request(path: Path) -> ov.InferRequest:
    return ov.Core().compile_model(path, "CPU", EXACT).create_infer_request()


@pytest.mark.parametrize("beam_idx", [False, True])
def test_decoder_token_by_token(beam_idx: bool, tmp_path: Path) -> None:
    onnx.save(decoder(), tmp_path / "a.onnx")
    report = bridge.convert(
        tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, beam_idx=beam_idx
    )
    assert "past_0_key = present_0_key" in report.notes[-1]
    session, stateful = OnnxRuntime(tmp_path / "a.onnx"), request(tmp_path / "b.xml")
    rng = np.random.default_rng(1)
    for _ in range(2):
        stateful.reset_state()
        past = [np.zeros((2, HEADS, 0, SIZE), np.float32)] * 2
        for length, order in ((3, [0, 1]), (1, [1, 0]), (1, [1, 1])):
            words = rng.integers(0, WORDS, (2, length))
            if beam_idx:
                past = [cache[order] for cache in past]
            names = ("past_0_key", "past_0_value")
            logits, *past = session.run({"input_ids": words, **dict(zip(names, past, strict=True))})
            feeds = {"input_ids": words}
            if beam_idx:
                feeds["beam_idx"] = np.array(order, np.int32)
            found = stateful.infer(feeds)["logits"]
            np.testing.assert_allclose(found, logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beam_idx", [False, True])
def test_the_way_back_gives_the_pairs_again(beam_idx: bool, tmp_path: Path) -> None:
    model = decoder()
    onnx.save(model, tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, beam_idx=beam_idx)
    bridge.convert(tmp_path / "b.xml", tmp_path / "c.onnx")
    back = onnx.load(tmp_path / "c.onnx")
    assert list(back.graph.input) == list(model.graph.input)
    assert list(back.graph.output) == list(model.graph.output)
    assert [node.op_type for node in back.graph.node] == [n.op_type for n in model.graph.node]
    assert check(tmp_path / "a.onnx", tmp_path / "c.onnx").ok


def test_check_compares_the_states_too(tmp_path: Path) -> None:
    onnx.save(decoder(), tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, beam_idx=True)
    assert check(tmp_path / "a.onnx", tmp_path / "b.xml").ok
    tree = etree.parse(tmp_path / "b.xml")
    keys, values = tree.xpath("//layer[@type='Assign']/data")
    ids = keys.get("variable_id"), values.get("variable_id")
    keys.set("variable_id", ids[1])
    values.set("variable_id", ids[0])
    tree.write(tmp_path / "b.xml")
    report = check(tmp_path / "a.onnx", tmp_path / "b.xml")
    assert not report.ok
    assert report.compared


@pytest.mark.parametrize(
    "stateful", [True, {"h": "hn", "c": "cn"}, {"c": "cn"}], ids=["names", "both", "one"]
)
def test_states_of_known_size(stateful: bool | Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.onnxtxt").write_text(COUNTER)
    bridge.convert(tmp_path / "a.onnxtxt", tmp_path / "b.xml", stateful=stateful)
    model = ov.Core().read_model(tmp_path / "b.xml")
    pairs = {"h": "hn", "c": "cn"} if stateful is True else dict(stateful)
    assert {sink.get_variable_id() for sink in model.get_sinks()} == {
        before + after for before, after in pairs.items()
    }
    expected = OnnxRuntime(bridge.to_onnx(tmp_path / "a.onnxtxt"))
    states = {name: np.zeros((2, 3), np.float32) for name in "hc"}
    running = request(tmp_path / "b.xml")
    for call in range(3):
        x = np.full((1 + call, 3), call, np.float32)
        y, h, c = expected.run({"x": x, **states})
        given = {name: value for name, value in states.items() if name not in pairs}
        np.testing.assert_allclose(running.infer({"x": x, **given})["y"], y)
        states = {"h": h, "c": c}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stateful": {"h": "y"}}, "cannot be the next state of the input"),
        ({"stateful": {"z": "hn"}}, 'the model has no input "z"; it has x, h, c'),
        ({"stateful": {"h": "z"}}, 'the model has no output "z"; it has y, hn, cn'),
        ({"stateful": {"h": "hn", "c": "hn"}}, "the next state of one input alone"),
        ({"stateful": "h=hn"}, "`stateful` is True, or maps inputs to outputs"),
        ({"beam_idx": True}, "`beam_idx` is for a stateful model"),
    ],
)
def test_what_is_no_state(options: dict, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.onnxtxt").write_text(COUNTER)
    with pytest.raises(bridge.UsageError, match=said):
        bridge.convert(tmp_path / "a.onnxtxt", tmp_path / "b.xml", **options)
    assert not (tmp_path / "b.xml").exists()


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("(float[n] h, float[n] x) => (float[n] d)", "--state INPUT=OUTPUT"),
        ("(float[n] h) => (float[n] hn)", "an input and an output beside its states"),
    ],
)
def test_models_without_states(signature: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.onnxtxt").write_text(f"""
        <ir_version: 8, opset_import: ["" : 17]> g {signature} {{
            {"hn" if "hn" in signature else "d"} = Neg(h)
        }}""")
    with pytest.raises(bridge.UsageError, match=said):
        bridge.convert(tmp_path / "a.onnxtxt", tmp_path / "b.xml", stateful=True)


@pytest.mark.parametrize("texts", [["h"], ["=hn"], ["h="], ["h=hn", "h=cn"]])
def test_options_that_are_no_states(texts: list[str]) -> None:
    with pytest.raises(bridge.UsageError, match="--state"):
        states(texts)


def test_a_stateful_ir_is_checked_against_its_conversion(tmp_path: Path) -> None:
    onnx.save(decoder(), tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, beam_idx=True)
    report = check(tmp_path / "b.xml")
    assert report.ok
    assert {"past_0_key", "past_0_value"} <= feeds_of(report)[0].keys()


# Models with one state of an open batch, and the sizes of `y` after calls with 2, 1 and 3 elements.
STATES = {
    "grows": ("present = Concat <axis = 1> (past, x) y = Neg (present)", [2, 3, 6]),
    "is cut": (
        "all = Concat <axis = 1> (past, x) present = Slice (all, end, end_of_all, one) "
        "y = Neg (all)", [2, 2, 4],
    ),
    "is not read": ("present = Neg (x) y = Neg (x)", [2, 1, 3]),
    "passes on": ("present = Identity (past) y = Neg (x)", [2, 1, 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_one_state_of_open_sizes(name: str, tmp_path: Path) -> None:
    """OpenVINO has faults if no other variable starts with the same value."""
    text, sizes = STATES[name]
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[b, n] x, float[b, m] past) => (float[b, k] y, float[b, l] present)
        <int64[1] end = {{-1}}, int64[1] end_of_all = {{99}}, int64[1] one = {{1}}> {{ {text} }}""")
    bridge.convert(model, tmp_path / "a.xml", stateful=True)
    request = ov.Core().compile_model(tmp_path / "a.xml", "CPU").create_infer_request()
    found = []
    for size in (2, 1, 3):
        request.infer({"x": np.ones((2, size), np.float32)})
        found.append(request.get_output_tensor(0).data.shape[1])
    assert found == sizes
    back = bridge.to_onnx(tmp_path / "a.xml")
    assert sorted(node.op_type for node in back.graph.node if node.op_type != "Identity") == sorted(
        node.op_type for node in model.graph.node if node.op_type != "Identity"
    )


NAMED: dict[str, tuple[str, str, dict[str, str]]] = {
    "numbered": (
        "float[n] x, float[1,4] input_states_1, float[1,4] input_states_2",
        "float[n] y, float[1,4] output_states_1, float[1,4] output_states_2",
        {"input_states_1": "output_states_1", "input_states_2": "output_states_2"},
    ),
    "letters": (
        "float[n] src, float[1,4] r1i, float[1,4] r2i",
        "float[n] fgr, float[1,4] r1o, float[1,4] r2o", {"r1i": "r1o", "r2i": "r2o"},
    ),
    "out": (
        "float[n] audio, float[1,4] conv, float[1,8] in_cache",
        "float[n] y, float[1,4] conv_out, float[1,8] out_cache",
        {"conv": "conv_out", "in_cache": "out_cache"},
    ),
    "vague": (
        "int64[n] ids, float[1,4] past_states.0.x, float[1,4] past_states.1.x",
        "float[n] logits, float[1,4] present.0.x, float[1,4] present.1.x",
        {"past_states.0.x": "present.0.x", "past_states.1.x": "present.1.x"},
    ),
    "a count": (
        "float[n] x, float[1,4] cache_last_channel, int64[1] cache_last_channel_len",
        "float[n] y, float[1,4] cache_last_channel_next, int64[1] cache_last_channel_next_len",
        {
            "cache_last_channel": "cache_last_channel_next",
            "cache_last_channel_len": "cache_last_channel_next_len",
        },
    ),
    "by types": (
        "float[n] x, float[1,4] a, int64[1] b", "float[n] y, float[1,4] p, int64[1] q",
        {"a": "p", "b": "q"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_states_by_other_names(name: str, tmp_path: Path) -> None:
    """The first output is the negative input, and each next state is the state plus itself."""
    inputs, outputs, pairs = NAMED[name]
    lines = [f"{after} = Add({before}, {before})" for before, after in named(pairs).items()]
    first, last = (text.split(",")[0].split()[-1] for text in (inputs, outputs))
    (tmp_path / "a.onnxtxt").write_text(f"""
        <ir_version: 8, opset_import: ["" : 17]> g ({quoted(inputs)}) => ({quoted(outputs)}) {{
            {last} = {"Cast <to = 1>" if "ids" in first else "Neg"}({first})
            {chr(10).join(lines)}
        }}""")
    bridge.convert(tmp_path / "a.onnxtxt", tmp_path / "b.xml", stateful=True)
    model = ov.Core().read_model(tmp_path / "b.xml")
    found = {x.get_variable_id() for x in model.get_sinks()}
    assert found == {before + after for before, after in named(pairs).items()}


def quoted(text: str) -> str:
    """Names without dots, which ONNX's texts do not have."""
    return text.replace(".", "_")


def named(pairs: dict[str, str]) -> dict[str, str]:
    return {quoted(before): quoted(after) for before, after in pairs.items()}


def test_all_options_are_printed(tmp_path: Path) -> None:
    """States of one type, and an input of that type beside them: only the user knows which."""
    count = 48
    inputs = ", ".join(f"float[1,4] {x}" for x in ["x", *(f"a{i}x" for i in range(count))])
    outputs = ", ".join(f"float[1,4] {x}" for x in ["y", *(f"b{i}y" for i in range(count))])
    lines = "\n".join(f"b{i}y = Neg(a{i}x)" for i in range(count))
    (tmp_path / "a.onnxtxt").write_text(f"""
        <ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{
            y = Neg(x)
            {lines}
        }}""")
    with pytest.raises(bridge.UsageError) as refused:
        bridge.convert(tmp_path / "a.onnxtxt", tmp_path / "b.xml", stateful=True)
    given = shlex.split(str(refused.value).partition("as in")[2].replace("\\\n", " "))
    texts = [f"a{i}x=b{i}y" for i in range(count)]
    assert given == [word for text in texts for word in ("--state", text)]
    bridge.convert(tmp_path / "a.onnxtxt", tmp_path / "b.xml", stateful=states(texts))
