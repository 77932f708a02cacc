"""Drawn programs of every kind compute the same in both formats; `python -m tests.programs` draws
more of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import bridge
from tests.programs.__main__ import main
from tests.programs.drawing import KINDS, draw
from tests.programs.reducing import reduced
from tests.programs.saved import FORMS
from tests.programs.splicing import splice
from tests.programs.storing import with_external_data
from tests.programs.verdict import NO_PROGRAM, Verdict, judge
from tests.support.running import OnnxRuntime, assert_close
from tests.support.sample import WHOLE, few

FEEDS = 4
COUNTS = {
    "if": 60, "rare": 50, "odd": 40, "texts": 40, "ranks": 30, "sequences": 50,
    "cases": 24, "chains": 200, "contrib": 10, "outlined": 60, "constants": 60, "served": 280,
}  # fmt: skip


def sample_of_forms() -> list[tuple[str, str]]:
    """Each form with some kinds, and each kind with some forms."""
    # Products of integers are too large for f16 in one engine, and not in the other.
    pairs = [(f, kind) for f in FORMS for kind in KINDS if (f, kind) != ("half", "cases")]
    return pairs if WHOLE else pairs[::5]


def test_weights_beside_the_model() -> None:
    """Of any offset and order."""
    for program in draw("constants", few(60, 8), seed=3):
        feeds = [program.feed(seed) for seed in range(FEEDS)]
        verdict = judge(program.model, feeds, with_external_data)
        assert not verdict.is_failure, verdict


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    count = str(few(COUNTS[kind], 8))
    failed = main(["--as-drawn", "--seed", "1", "--kind", kind, "-n", count])
    assert not failed, capsys.readouterr().out


@pytest.mark.parametrize(("form", "kind"), sample_of_forms())
def test_saved_by_openvino(form: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """IR of drawn programs as OpenVINO saves it, to ONNX and back."""
    count = str(few(30, 30))
    options = ["--as-drawn", "--seed", "2", "--kind", kind, "-n", count, "--saved", form]
    failed = main(options)
    assert not failed, capsys.readouterr().out


def test_program_is_valid_and_survives_rewriting() -> None:
    for program in draw("if", 40, seed=1):
        onnx.checker.check_model(program.model, full_check=True)
        copy = bridge.to_onnx(program.model)
        onnx.checker.check_model(copy, full_check=True)
        original, again = OnnxRuntime(program.model), OnnxRuntime(copy)
        for seed in range(FEEDS):
            feed = program.feed(seed)
            assert_close(again.run(feed), original.run(feed))


def test_a_seed_draws_the_same() -> None:
    texts = [[program.model.SerializeToString() for program in draw("rare", 5, 3)] for _ in "ab"]
    assert texts[0] == texts[1]


LARGER = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
g (bool c, float[2] x) => (float[2] y, float[2] z) {
    y = If (c) <
      then_branch = t () => (float[2] p) { a = Neg (x) b = Relu (a) p = Exp (b) },
      else_branch = e () => (float[2] q) { q = Identity (x) }>
    z = Neg (x)
}""")


def test_what_fails_is_made_small() -> None:
    small = reduced(LARGER, lambda model: "Relu" in onnx.printer.to_text(model))
    assert [node.op_type for node in small.graph.node] == ["Relu"]


def test_whole_models_in_bodies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(LARGER, tmp_path / "larger.onnx")
    assert splice(tmp_path, 1) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 right"


UNLIKE = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {
    k = Constant <value = float[3] {1, 1, 1}> () y = Add (x, k) }"""


def test_verdicts() -> None:
    """A right program, a file that is no program, and conversions that crash or refuse."""
    feeds = [{"c": np.array(True), "x": np.ones(2, np.float32)}]
    right, none = judge(LARGER, feeds), judge(parser.parse_model(UNLIKE), feeds)
    ended, refused = judge(LARGER, feeds, _ends), judge(LARGER, feeds, _refuses)
    assert right.kind == "right"
    assert none.kind == NO_PROGRAM
    assert ended == Verdict("to IR: process ends", "it ended the process (SIGFPE)")
    assert refused.kind == "to IR: refused"


def _ends(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGFPE)


def _refuses(*_: object) -> None:
    raise bridge.BridgeError("no")
