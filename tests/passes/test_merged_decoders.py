"""Merged decoders, with an If on whether there are states, as stateful models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest

import bridge
from bridge.check import check
from tests.support.running import EXACT, OnnxRuntime

WIDTH, WORDS = 8, 11
PAST = ("past_0_key", "past_0_value", "past_0_encoder")
PRESENT = ("present_0_key", "present_0_value", "present_0_encoder")


def branch(name: str, key: str, value: str, cross: str, last: str) -> str:
    """A decoder that reads all earlier words, and `looks`, made from the encoder's states."""
    return f"""{name} () => (float[b, s, {WORDS}] {name}_logits, float[b, p, {WIDTH}] {name}_keys,
                    float[b, p, {WIDTH}] {name}_values, float[b, f, {WIDTH}] {name}_cross) {{
        {name}_x = Gather(words, input_ids)
        {name}_y = Neg({name}_x)
        {name}_keys = {key}
        {name}_values = {value}
        {cross}
        {name}_k = ReduceMax<axes=[1]>({name}_keys)
        {name}_v = ReduceMean<axes=[1]>({name}_values)
        {name}_c = ReduceMax<axes=[1]>({name}_looks)
        {name}_sum = Sum({name}_x, {name}_k, {name}_v, {name}_c)
        {name}_logits = MatMul({name}_sum, head)
        {name}_cross = {last}
    }}"""


LATER = branch(
    "later",
    "Concat<axis=1>(past_0_key, later_x)",
    "Concat<axis=1>(past_0_value, later_y)",
    "later_looks = Neg(past_0_encoder)",
    "Identity(nothing)",
)
FIRST = branch(
    "first",
    "Identity(first_x)",
    "Identity(first_y)",
    "first_made = MatMul(encoder_hidden_states, w)  first_looks = Neg(first_made)",
    "Identity(first_made)",
)


def merged(
    then: str = LATER, otherwise: str = FIRST, flag: str = "use_cache_branch", more: str = ""
) -> onnx.ModelProto:
    """A merged decoder, laid out as optimum does: later calls return no encoder's states."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        decoder (int64[batch, words] input_ids, float[batch, frames, {WIDTH}] encoder_hidden_states,
                 float[batch, past, {WIDTH}] past_0_key, float[batch, past, {WIDTH}] past_0_value,
                 float[batch, frames, {WIDTH}] past_0_encoder, bool[1] use_cache_branch, bool odd)
            => (float[batch, words, {WORDS}] logits, float[batch, total, {WIDTH}] present_0_key,
                float[batch, total, {WIDTH}] present_0_value,
                float[batch, frames, {WIDTH}] present_0_encoder) {{
            {more}
            logits, {", ".join(PRESENT)} =
                If({flag}) <then_branch = {then}, else_branch = {otherwise}>
        }}""")
    weights = {"words": (WORDS, WIDTH), "head": (WIDTH, WORDS), "w": (WIDTH, WIDTH)}
    for name, shape in {**weights, "nothing": (0, 1, WIDTH)}.items():
        array = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


FLIPPED = {"then": FIRST, "otherwise": LATER}
OF_A_BRANCH = FIRST.replace(
    "first_made = MatMul(encoder_hidden_states, w)",
    """first_if = If(odd) <then_branch = t () => (float[m, n] t) { t = Identity(w) },
                         else_branch = e () => (float[m, n] e) { e = Neg(w) }>
       first_made = MatMul(encoder_hidden_states, first_if)""",
)


@pytest.mark.parametrize("again", [False, True], ids=["once", "there and back and there"])
@pytest.mark.parametrize("beam_idx", [False, True])
@pytest.mark.parametrize(
    ("branches", "one_decoder", "outputs"),
    [
        ({}, False, [3]),
        ({}, True, []),
        (FLIPPED, False, [3]),
        (FLIPPED, True, []),
        ({"otherwise": OF_A_BRANCH}, False, [4]),
    ],
    ids=["later first", "one decoder", "flipped", "flipped, one decoder", "made by another If"],
)
def test_generates_as_the_merged_decoder_does(
    branches: dict,
    one_decoder: bool,
    outputs: list[int],
    beam_idx: bool,
    again: bool,
    tmp_path: Path,
) -> None:
    onnx.save(merged(**branches), tmp_path / "a.onnx")
    report = bridge.convert(
        tmp_path / "a.onnx", tmp_path / "b.xml",
        stateful=True, beam_idx=beam_idx, one_decoder=one_decoder,
    )  # fmt: skip
    assert any('the input "use_cache_branch" is gone' in note for note in report.notes)
    model = ov.Core().read_model(tmp_path / "b.xml")
    ifs = [op for op in model.get_ops() if op.get_type_name() == "If"]
    assert [len(one.outputs()) for one in ifs] == outputs
    if again:
        bridge.convert(tmp_path / "b.xml", tmp_path / "c.onnx")
        bridge.convert(tmp_path / "c.onnx", tmp_path / "b.xml", stateful=True, beam_idx=beam_idx)
    session = OnnxRuntime(tmp_path / "a.onnx")
    compiled = ov.Core().compile_model(tmp_path / "b.xml", "CPU", EXACT)
    request = compiled.create_infer_request()
    rng = np.random.default_rng(1)
    for frames in (3, 5):
        request.reset_state()
        seen = rng.standard_normal((2, frames, WIDTH)).astype(np.float32)
        nothing = np.zeros((2, 0, WIDTH), np.float32)
        past = [nothing] * len(PAST)
        for call, words in enumerate((3, 1, 1, 2)):
            ids = rng.integers(0, WORDS, (2, words))
            later = (call > 0) is not (branches is FLIPPED)
            given = {"input_ids": ids, "encoder_hidden_states": seen, "odd": np.array(True)}
            states = dict(zip(PAST, past, strict=True))
            expected, *new = session.run(
                {**given, **states, "use_cache_branch": np.array([later])}
            )  # fmt: skip
            past = [*new[:2], past[2] if call else new[2]]
            if call:  # No node reads it any more.
                given["encoder_hidden_states"] = np.zeros_like(seen)
            if beam_idx:
                given["beam_idx"] = np.arange(2, dtype=np.int32)
            np.testing.assert_allclose(request.infer(given)["logits"], expected, 1e-5, 1e-5)


def test_check_runs_both_branches(tmp_path: Path) -> None:
    onnx.save(merged(), tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, beam_idx=True)
    report = check(tmp_path / "a.onnx", tmp_path / "b.xml")
    assert report.ok
    (found,) = report.as_json()["ifs"]
    assert (found["then"]["state"], found["else"]["state"]) == ("reached", "reached")
    assert check(tmp_path / "b.xml").ok
    # The encoder's states of another model would be wrong in both branches.
    other = merged()
    other.graph.initializer[2].CopyFrom(
        onnx.numpy_helper.from_array(np.ones((WIDTH, WIDTH), np.float32), "w")
    )
    onnx.save(other, tmp_path / "c.onnx")
    assert not check(tmp_path / "c.onnx", tmp_path / "b.xml").ok


@pytest.mark.parametrize("one_decoder", [False, True])
@pytest.mark.parametrize("branches", [{}, FLIPPED], ids=["later first", "flipped"])
def test_check_compares_the_way_back(branches: dict, one_decoder: bool, tmp_path: Path) -> None:
    """The way back has no flag: the states in its feed say the same."""
    onnx.save(merged(**branches), tmp_path / "a.onnx")
    report = check(tmp_path / "a.onnx", stateful=True, one_decoder=one_decoder)
    assert report.ok and len(report.branches.reached) == 2, str(report)
    assert not any("is empty" in note for note in report.notes)
    bridge.convert(
        tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, one_decoder=one_decoder
    )  # fmt: skip
    bridge.convert(tmp_path / "b.xml", tmp_path / "c.onnx")
    assert check(tmp_path / "a.onnx", tmp_path / "c.onnx").ok
    other = merged(**{side: text.replace("Neg", "Abs") for side, text in branches.items()} or {
        "then": LATER.replace("Neg", "Abs"), "otherwise": FIRST.replace("Neg", "Abs")
    })  # fmt: skip
    onnx.save(other, tmp_path / "d.onnx")
    assert not check(tmp_path / "d.onnx", tmp_path / "c.onnx").ok


def test_check_shows_whether_one_decoder_is_enough(tmp_path: Path) -> None:
    """One decoder is not enough if later calls hold another value than the first."""
    onnx.save(merged(), tmp_path / "a.onnx")
    onnx.save(merged(then=LATER.replace("Neg(later_x)", "Abs(later_x)")), tmp_path / "b.onnx")
    for name, one_decoder, right in (("a", True, True), ("b", False, True), ("b", True, False)):
        path, ir = tmp_path / f"{name}.onnx", tmp_path / "b.xml"
        bridge.convert(path, ir, stateful=True, one_decoder=one_decoder)
        report = check(path, ir, samples=2)
        assert report.ok is right and len(report.branches.reached) == 2, str(report)


@pytest.mark.parametrize(
    ("changes", "states", "why"),
    [
        ({"otherwise": OF_A_BRANCH}, True, 'the first call alone gives "past_0_encoder"'),
        ({"more": "other = Not(use_cache_branch)", "flag": "other"}, True, "a merged decoder"),
        ({}, False, "is for a stateful model"),
    ],
    ids=["made by another If", "no merged decoder", "no states"],
)
def test_one_decoder_is_refused(changes: dict, states: bool, why: str, tmp_path: Path) -> None:
    with pytest.raises(bridge.BridgeError, match=why):
        bridge.convert(merged(**changes), tmp_path / "b.xml", stateful=states, one_decoder=True)
    assert not (tmp_path / "b.xml").exists()


def test_a_branch_that_gives_nothing_is_no_decoder(tmp_path: Path) -> None:
    with pytest.raises(bridge.UsageError, match="ask for `one_decoder`"):
        bridge.convert(
            merged(), tmp_path / "b.xml", stateful=True, values={"use_cache_branch": [True]}
        )
    assert not (tmp_path / "b.xml").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"more": "other = Not(use_cache_branch)", "flag": "other"},
        {"otherwise": LATER.replace("later", "first")},
    ],
    ids=["computed", "both look at states"],
)
def test_an_input_that_says_something_else_stays(changes: dict, tmp_path: Path) -> None:
    onnx.save(merged(**changes), tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True)
    model = ov.Core().read_model(tmp_path / "b.xml")
    assert "use_cache_branch" in {name for port in model.inputs for name in port.names}
