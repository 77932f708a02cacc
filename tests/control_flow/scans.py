"""ONNX Scans: every way to slice, to carry and to stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.control_flow.program import Invalid, Program, body
from tests.control_flow.results import CONSUMERS, READ, Result, consume

LENGTHS = {"3": "3", "1": "1", "open": "n"}
"""Lengths of the sliced axis. An open one runs with 3 and 1; onnxruntime crashes with 0."""

SLICED = {
    "first axis": (0, 0), "first axis, backwards": (0, 1), "last axis": (1, 0),
    "last axis from the end": (-1, 0), "last axis, backwards": (1, 1),
}  # fmt: skip
"""Axis and direction of the sliced input."""

STACKED = {
    "none": None, "first axis": (0, 0), "first axis, backwards": (0, 1), "last axis": (1, 0),
    "from the end, backwards": (-1, 1),
}  # fmt: skip
"""Axis and direction of the stack; None for no stack."""

STATES: dict[str, Sequence[tuple[str, str]]] = {
    "none": (),
    "unchanged": (("float[2]", "{o} = Identity ({a})"),),
    "summed": (("float[2]", "{o} = Add ({a}, part)"),),
    "exchanged": (("float[2]", "{o} = Identity (a1)"), ("float[2]", "{o} = Identity (a0)")),
    "bytes": (
        (
            "int8[2]",
            "{o}_w = Cast <to = 1> ({a})  {o}_s = Sub (part, {o}_w)  "
            "{o} = QuantizeLinear ({o}_s, scale, point)",
        ),
    ),
    "two types": (("float[2]", "{o} = Sub (part, {a})"), ("int64", "{o} = Add ({a}, one)")),
}

PARTS: dict[str, Sequence[str]] = {
    "part": ("s = Neg (part)",),
    "state": ("s = Mul (part, a0)",),
    "nothing": ("s = Constant <value = float[0] {}> ()",),
    "constant": ("s = Constant <value = float[2] {3, 4}> ()",),
    "captured": ("s = Add (part, w)",),
    "part and size": ("p_n = Shape (part)", "p_f = Cast <to = 1> (p_n)", "s = Add (part, p_f)"),
}
"""Nodes that make a part of the stack, `s`, from the slice `part`."""

AXES: Mapping[str, Sequence[str]] = {
    "length": tuple(LENGTHS),
    "sliced": tuple(SLICED),
    "inputs": ("one", "two"),
    "states": tuple(STATES),
    "stack": tuple(STACKED),
    "part": tuple(PARTS),
    "read": tuple(READ),
    "consumer": tuple(CONSUMERS),
}


def build(
    length: str,
    sliced: str,
    inputs: str,
    states: str,
    stack: str,
    part: str,
    read: str,
    consumer: str,
) -> Program:
    """The Scan of these levels. Raises Invalid if they exclude each other."""
    carried = STATES[states]
    if (not carried and STACKED[stack] is None) or (
        part == "state" and (not carried or states == "bytes")
    ):
        raise Invalid
    if part == "nothing" and stack != "first axis":
        raise Invalid  # onnxruntime divides by zero, and crashes.
    p = Program()
    axis, backwards = SLICED[sliced]
    p.input("x", _type(LENGTHS[length], axis), *_values(LENGTHS[length], axis))
    operands, declared, given = [], [], []
    results: list[Result] = []
    nodes: list[str] = []
    p.constant("one", "int64", 1)
    initial = {
        "float[2]": p.constant("zero", "float[2]", 0, 1),
        "int8[2]": p.constant("zero_bytes", "int8[2]", 0, 1),
        "int64": "one",
    }
    if states == "bytes":
        p.constant("scale", "float", 0.5)
        p.constant("point", "int8", 1)
    for index, (type, text) in enumerate(carried):
        a, o = f"a{index}", f"o{index}"
        operands.append(initial[type])
        declared.append(f"{type} {a}")
        given.append(f"{type} {o}")
        nodes.append(text.format(a=a, o=o))
        results.append(Result(f"y{index}", type))
    operands.append("x")
    directions, axes = [backwards], [axis]
    if inputs == "two":
        # The second goes forwards along its first axis, whatever the first does.
        along = "x" if axis == 0 else "turned"
        if axis != 0:
            p.node("turned = Transpose (x)")
        operands.append(along)
        declared_parts = ["float[2] given", "float[2] further"]
        nodes.insert(0, "part = Sub (given, further)")
        directions, axes = [*directions, 0], [*axes, 0]
    else:
        declared_parts = ["float[2] given"]
        nodes.insert(0, "part = Identity (given)")
    attributes = [
        f"num_scan_inputs = {len(axes)}",
        f"scan_input_axes = {axes}",
        f"scan_input_directions = {directions}",
    ]
    if STACKED[stack] is not None:
        if part == "captured":
            p.input("w", "float[2]", [1, -1])
        along, back = STACKED[stack]
        nodes += PARTS[part]
        given.append("float[0] s" if part == "nothing" else "float[2] s")
        attributes += [f"scan_output_axes = [{along}]", f"scan_output_directions = [{back}]"]
        results.append(Result("stack", "float[e, f]"))
    elif part != "part":
        raise Invalid
    names = ", ".join(result.name for result in results)
    loop = body("body", [*declared, *declared_parts], given, nodes)
    p.node(f"{names} = Scan ({', '.join(operands)}) <body = {loop}, {', '.join(attributes)}>")
    consume(p, results, read, consumer)
    return p


def _type(length: str, axis: int) -> str:
    return f"float[{length}, 2]" if axis == 0 else f"float[2, {length}]"


def _values(length: str, axis: int) -> list[list[list[float]]]:
    sizes = (3, 1) if length == "n" else (int(length),)
    rows = [[[1, 2], [3, -4], [5, 6]][:size] for size in sizes]
    if axis == 0:
        return rows
    return [[[pair[0] for pair in row], [pair[1] for pair in row]] for row in rows]
