"""Programs that keep states, in OpenVINO and onnxruntime."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.check import check
from tests.programs.state_programs import Program, draw, fault_of

NAMED = {
    "a delay line": (
        "(float[2] a, float[2] x) => (float[2] an, float[2] y) { an = Identity (x) y = Neg (a) }"
    ),
    "two calls of delay": (
        "(int64[2] a, int64[2] b, int64[2] x) => (int64[2] an, int64[2] bn, int64[2] y) "
        "{ an = Identity (x) bn = Identity (a) y = Neg (b) }"
    ),
    "an input of 64 bits that is passed on": (
        "(int64[2] a, int64[2] x) => (int64[2] an, int64[2] y) "
        "{ an = Identity (x) y = Identity (a) }"
    ),
    "read by dead code": (
        "(float[2] a, float[2] x) => (float[2] an, float[2] y) "
        "{ d = Neg (a) an = Add (x, x) y = Neg (x) }"
    ),
    "read by a branch that goes": (
        "(float[2] a, float[2] x) => (float[2] an, float[2] y) <bool no = {0}> { an = Add (x, x) "
        "y = If (no) < then_branch = t () => (float[2] u) { u = Neg (a) }, "
        "else_branch = e () => (float[2] v) { v = Neg (x) } > }"
    ),
    "two, one of which dead code reads": (
        "(bool[1] f, float[2] a, float[2] x) => (bool[1] fn, float[2] an, float[2] y) "
        "{ d = Not (f) fn = Identity (f) an = Add (x, a) y = Neg (a) }"
    ),
    "a scalar": (
        "(int64 a, float[2] x) => (int64 an, float[2] y) <int64 one = {1}> "
        "{ an = Add (a, one) f = Cast <to = 1> (a) y = Mul (f, x) }"
    ),
    "a flag that starts anew": (
        "(float[p_a] a, float[n] x, bool f) => (float[p_n] an, float[p_m] y) { an = If (f) "
        "< then_branch = t () => (float[p_t] u) { u = Neg (x) }, "
        "else_branch = e () => (float[p_e] v) { v = Concat <axis = 0> (a, x) } > y = Abs (a) }"
    ),
    "an input that a variable takes and that is an output": (
        "(int8[o_a] a, int8[b] x) => (int8[b] an, int8[o_y] y, int8[b] again) "
        "{ an = Identity (x) again = Identity (an) y = Identity (a) }"
    ),
    "one of two that are outputs as they are": (
        "(bool[1] f, bool[1] x, float[2] a, float[2] z) => "
        "(bool[1] fn, bool[1] y, bool[1] w, float[2] an, float[2] v, float[2] u) "
        "{ fn = And (f, x) y = Identity (f) w = Identity (f) "
        "an = Add (a, z) v = Identity (a) u = Identity (a) }"
    ),
    "a state that cannot be empty": (
        "(float[o_a] a, float[b] x) => (float[b] an, float[b] y) { an = Add (x, a) y = Neg (an) }"
    ),
}
"""Programs whose states are `a`, `b` and `f` with `an`, `bn` and `fn`."""


def named(name: str) -> Program:
    text = NAMED[name]
    pairs = {one: f"{one}n" for one in ("a", "b", "f") if f"{one}n" in text.replace("(", " ")}
    return Program(f'<ir_version: 10, opset_import: ["" : 19]> g {text}', pairs)


@pytest.mark.parametrize("name", NAMED)
def test_states(name: str, tmp_path: Path) -> None:
    program = named(name)
    assert fault_of(program, tmp_path) == ""
    for report in (
        check(program.model(), tmp_path / "a.xml", samples=2),
        check(tmp_path / "a.xml", samples=2),
    ):
        assert report.ok, str(report)


@pytest.mark.parametrize("number", range(60))
def test_drawn_states(number: int, tmp_path: Path) -> None:
    assert fault_of(draw(f"test.{number}"), tmp_path) == ""
