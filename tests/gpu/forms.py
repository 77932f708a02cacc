"""Which forms of Ifs and Loops OpenVINO's GPU plugin has right, each in the smallest model of
OpenVINO's interface. `python -m tests.gpu --store` runs them, and the faults, on the emulated
device, and keeps what they give in `forms.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset15 as op

from tests.gpu.faults import (
    FAULTS,
    FIVES,
    NO,
    ONES,
    YES,
    Shown,
    a_constant,
    an_if,
    apart,
    floats,
    loop,
)

MEASURED = Path(__file__).parent / "forms.json"
"""The verdicts of the last measurement, by form."""


def if_with_one_output() -> Shown:
    """A branch computes, and the other one hands its input through."""
    c, x = op.parameter([], bool), floats(2)
    (output,) = an_if(c, [x], lambda a: [op.add(a, a)], lambda a: [a])
    return ov.Model([op.result(output)], [c, x]), [[YES, ONES], [NO, ONES], [YES, FIVES]]


def if_with_one_output_of_open_size() -> Shown:
    """The branches give other sizes."""
    c, x = op.parameter([], bool), floats(-1)
    (output,) = an_if(c, [x], lambda a: [op.concat([a, a], 0)], lambda a: [op.negative(a)])
    rows = [[YES, ONES], [NO, ONES], [YES, np.ones(3, np.float32)], [NO, FIVES]]
    return ov.Model([op.result(output)], [c, x]), rows


def if_with_two_outputs_of_open_size() -> Shown:
    """The branches compute both."""
    c, x = op.parameter([], bool), floats(-1)
    outputs = an_if(
        c, [x], lambda a: [op.add(a, a), op.exp(a)], lambda a: [op.negative(a), op.abs(a)]
    )
    model = ov.Model([op.result(v) for v in outputs], [c, x])
    return model, [[YES, ONES], [NO, ONES], [YES, FIVES]]


def if_whose_output_is_read() -> Shown:
    """An operator behind the If reads its output, in used requests."""
    c, x = op.parameter([], bool), floats(2)
    (output,) = an_if(c, [x], lambda a: [op.add(a, a)], lambda a: [op.negative(a)])
    return ov.Model([op.result(op.exp(output))], [c, x]), [[YES, ONES], [NO, ONES], [YES, ONES]]


def loop_of_constant_count() -> Shown:
    """The plugin unrolls it."""
    x = floats(2)
    outputs = loop(a_constant(np.int64(3)), a_constant(True), [x], lambda s: [op.add(s, s)])
    return ov.Model([op.result(v) for v in outputs], [x]), [[ONES], [FIVES]]


def _of_count(body: Callable[..., Any], states: int = 1) -> Shown:
    n, inputs = op.parameter([], np.int64), [floats(2) for _ in range(states)]
    outputs = loop(n, a_constant(True), inputs, body)
    model = ov.Model([op.result(v) for v in outputs], [n, *inputs])
    rows = [[np.array(trips), *[ONES, FIVES][:states]] for trips in (1, 3, 2)]
    return model, rows


def loop_of_computed_count() -> Shown:
    """Its states keep their size, and each depends on itself alone."""
    return _of_count(lambda a: [op.multiply(a, a_constant(np.float32(2)))])


def loop_with_two_states() -> Shown:
    """Each depends on itself alone."""
    return _of_count(lambda a, b: [op.add(a, a), op.negative(b)], 2)


def loop_that_never_runs() -> Shown:
    """A computed count is 0."""
    model, _ = _of_count(lambda a: [op.add(a, a)])
    return model, [[np.array(0), ONES], [np.array(2), ONES], [np.array(0), FIVES]]


def loop_that_a_condition_ends() -> Shown:
    """The body says whether it goes on."""
    x, most = floats(1), op.parameter([], np.float32)
    number, state = op.parameter([], np.int64), floats(1)
    limit = op.parameter([], np.float32)
    twice = op.add(state, state)
    again = op.less(op.squeeze(twice, a_constant(np.int64([0]))), limit)
    node = op.loop(a_constant(np.int64(20)), a_constant(True))
    results = [op.result(again), op.result(twice)]
    node.set_function(ov.Model(results, [number, state, limit]))
    node.set_special_body_ports([0, 0])
    node.set_merged_input(state, x.output(0), results[1].output(0))
    node.set_invariant_input(limit, most.output(0))
    output = node.get_iter_value(results[1].output(0), -1)
    one = np.ones(1, np.float32)
    rows = [[one, np.float32(bound)] for bound in (7, 100, 7)]
    return ov.Model([op.result(output)], [x, most]), rows


def _over_rows(stacks: bool) -> Shown:
    """A TensorIterator over the rows of an input of open size."""
    x, first = floats(-1, 2), floats(1, 2)
    row, state = floats(1, 2), floats(1, 2)
    summed = op.add(state, row)
    node = op.tensor_iterator()
    result = op.result(summed)
    node.set_body(ov.Model([result], [row, state]))
    node.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    node.set_merged_input(state, first.output(0), result.output(0))
    output = (
        node.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 0)
        if stacks
        else node.get_iter_value(result.output(0), -1)
    )
    rows = [
        [np.arange(2 * count, dtype=np.float32).reshape(count, 2), np.ones((1, 2), np.float32)]
        for count in (3, 1, 4)
    ]
    return ov.Model([op.result(output)], [x, first]), rows


def iterations_over_rows() -> Shown:
    """Of an input of open size; the last state is read."""
    return _over_rows(stacks=False)


def iterations_whose_results_are_stacked() -> Shown:
    """The rows of the output are the states."""
    return _over_rows(stacks=True)


FORMS: dict[str, Callable[[], Shown]] = {
    made.__name__.replace("_", " "): made
    for made in (
        if_with_one_output, if_with_one_output_of_open_size, if_with_two_outputs_of_open_size,
        if_whose_output_is_read, loop_of_constant_count, loop_of_computed_count,
        loop_with_two_states, loop_that_never_runs, loop_that_a_condition_ends,
        iterations_over_rows, iterations_whose_results_are_stacked,
    )
}  # fmt: skip
"""What shall be seen to hold, or not; `FAULTS` do not."""


def run(text: str = "", keep: bool = False) -> None:
    """Prints what each plugin gives, of those whose name has this text in it."""
    kept = {name: _verdict(name) for name in FORMS | FAULTS if text in name}
    if not keep:
        return
    if text:
        kept = json.loads(MEASURED.read_text(encoding="utf-8")) | kept
    MEASURED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _verdict(name: str) -> str:
    made = (FORMS | FAULTS)[name]
    wanted, found = apart(made, "CPU"), apart(made, "GPU")
    print(f"{name}: {made.__doc__}\n  CPU: {wanted}\n  GPU: {found}", flush=True)
    if found == wanted:
        return "right"
    for word in ("does not compile", "fails"):
        if word in found:
            return word
    if "process" in found or "end within" in found:
        return "crashes" if "process" in found else "never ends"
    return "wrong in fresh requests alone" if found.startswith(f"{wanted} (") else "wrong"


def table() -> Iterator[str]:
    """Each form, and what the plugin makes of it."""
    kept = json.loads(MEASURED.read_text(encoding="utf-8"))
    yield "| in an IR | more of it | on the GPU plugin |"
    yield "| --- | --- | --- |"
    for name, made in (FORMS | FAULTS).items():
        words = " ".join((made.__doc__ or "").split())
        yield f"| {name.replace('if ', 'If ').capitalize()} | {words} | {kept[name]} |"
