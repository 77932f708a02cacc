"""ONNX Loops: every way to count, to continue, to carry and to stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.control_flow.program import Invalid, Program, body
from tests.control_flow.results import CONSUMERS, READ, Result, consume

Head = Callable[[Program], str]


def _computed_trips(p: Program) -> str:
    p.input("n", "int64", 0, 1, 3)
    p.constant("none_more", "int64", 0)
    p.node("m = Max (n, none_more)")
    return "m"


def _trips_of_size(p: Program) -> str:
    p.input("v", "float[k]", [], [1], [1, 2, 3])
    p.node("m = Shape (v)")
    return "m"


TRIPS: dict[str, Head] = {
    "absent": lambda p: '""',
    "0": lambda p: p.constant("most", "int64", 0),
    "1": lambda p: p.constant("most", "int64", 1),
    "3": lambda p: p.constant("most", "int64", 3),
    "3 of rank 1": lambda p: p.constant("most", "int64[1]", 3),
    "input": lambda p: p.input("n", "int64", 0, 1, 3),
    "input of rank 1": lambda p: p.input("n", "int64[1]", [0], [1], [3]),
    "computed": _computed_trips,
    "by size": _trips_of_size,
}


def _computed_first(p: Program) -> str:
    p.input("t", "bool", False, True)
    p.node("first = Not (t)")
    return "first"


FIRSTS: dict[str, Head] = {
    "absent": lambda p: '""',
    "true": lambda p: p.constant("first", "bool", 1),
    "false": lambda p: p.constant("first", "bool", 0),
    "input": lambda p: p.input("t", "bool", False, True),
    "input of rank 1": lambda p: p.input("t", "bool[1]", [False], [True]),
    "computed": _computed_first,
}


@dataclass(frozen=True)
class State:
    """A state of a Loop: its type outside and in the body, its initial value, and its nodes.

    The nodes make the next state `{o}` from the state before, `{a}`. `number` makes from `{a}` the
    f32 scalar `total`, which the body may use in its condition.
    """

    type: str
    initial: str
    nodes: tuple[str, ...]
    number: tuple[str, ...] = ("total = ReduceSum <keepdims = 0> ({a})",)


def _x(p: Program) -> str:
    return p.input("x", "float[2]", [1, 2])


def _open(p: Program) -> str:
    return p.input("w", "float[k]", [1, 2], [3])


def _several(p: Program) -> list[State]:
    p.constant("count", "int64", 5)
    p.constant("flag", "bool", 1)
    p.constant("wide", "double[1]", 0.5)
    return [
        State("float[2]", _x(p), ("{o} = Add ({a}, {a})",)),
        State("int64", "count", ("{o} = Add ({a}, i)",)),
        State("bool", "flag", ("{o} = Not ({a})",)),
        State("double[1]", "wide", ("{o} = Mul ({a}, {a})",)),
    ]


def _sequence(p: Program) -> list[State]:
    p.node("q = SequenceConstruct (x)")
    _x(p)
    number = ("len = SequenceLength ({a})", "total = Cast <to = 1> (len)")
    return [State("seq(float[2])", "q", ("{o} = SequenceInsert ({a}, x)",), number)]


def _optional(p: Program) -> list[State]:
    p.node(f"maybe = Optional ({_x(p)})")
    nodes = (
        "inside_{a} = OptionalGetElement ({a})",
        "twice_{a} = Add (inside_{a}, inside_{a})",
        "{o} = Optional (twice_{a})",
    )
    return [State("optional(float[2])", "maybe", nodes, ())]


def _string(p: Program) -> list[State]:
    p.input("text", "string[1]", ["a"], ["b c"])
    return [State("string[1]", "text", ("{o} = Identity ({a})",), ())]


def _bytes(p: Program) -> list[State]:
    p.constant("scale", "float", 0.5)
    p.constant("point", "int8", 1)
    p.node(f"b = QuantizeLinear ({_x(p)}, scale, point)")
    nodes = (
        "wide_{a} = DequantizeLinear ({a}, scale, point)",
        "twice_{a} = Sub (wide_{a}, x)",
        "{o} = QuantizeLinear (twice_{a}, scale, point)",
    )
    number = ("plain = Cast <to = 1> ({a})", "total = ReduceSum <keepdims = 0> (plain)")
    return [State("int8[2]", "b", nodes, number)]


def _shrinking(p: Program) -> list[State]:
    p.input("w", "float[k]", [1, 2], [3])
    p.constant("second", "int64[1]", 1)
    p.constant("far", "int64[1]", 9)
    return [State("float[l]", "w", ("{o} = Slice ({a}, second, far)",))]


def _growing_rank(p: Program) -> list[State]:
    _x(p)
    p.constant("front", "int64[1]", 0)
    return [State("float[]", "x", ("{o} = Unsqueeze ({a}, front)",))]


def _replaced(p: Program) -> list[State]:
    _x(p)
    p.constant("before", "float[2]", 5, -1)
    return [State("float[2]", "before", ("{o} = Mul (x, x)",))]


def _sliced_for_nobody(p: Program) -> list[State]:
    _x(p)
    p.constant("before", "float[2]", 5, -1)
    squares = "squares (float e, float unread) => (float square) {{ square = Mul (e, e) }}"
    node = f"{{o}} = Scan (x, {{a}}) <num_scan_inputs = 2, body = {squares}>"
    return [State("float[2]", "before", (node,))]


def _exchanged(p: Program) -> list[State]:
    p.constant("other", "float[2]", 5, -1)
    return [
        State("float[2]", _x(p), ("{o} = Identity (a1)",)),
        State("float[2]", "other", ("{o} = Identity (a0)",)),
    ]


def _exchanged_sizes(p: Program) -> list[State]:
    p.input("w", "float[k]", [1, 2], [3])
    p.input("u", "float[k1]", [4, 5, 6])
    p.constant("more", "float", 1)
    return [
        State("float[l0]", "w", ("{o} = Add (a1, more)",)),
        State("float[l1]", "u", ("{o} = Identity (a0)",)),
    ]


def _in_a_row(p: Program) -> list[State]:
    p.input("u", "float[k1]", [4, 5, 6])
    return [
        State("float[l0]", _x(p), ("{o} = Sub (a1, a0)",)),
        State("float[l1]", "x", ("{o} = Neg (a2)",)),
        State("float[l2]", "x", ("{o} = Identity (a3)",)),
        State("float[l3]", "x", ("{o} = Identity (u)",)),
    ]


def _of_one_start(p: Program) -> list[State]:
    p.input("w", "float[k]", [1, 2], [3, 4, 5, 6])
    p.constant("second", "int64[1]", 1)
    p.constant("far", "int64[1]", 9)
    p.constant("seven", "float[1]", 7)
    shrinks = "rest = Slice ({a}, second, far)"
    asks = ("size = Shape ({a})", "sevens = Expand (seven, size)")
    return [
        State("float[l0]", "w", ("{o} = Concat <axis = 0> ({a}, w)",)),
        State("float[l1]", "w", (shrinks, *asks, "{o} = Mul (rest, rest)")),
        State("float[l2]", "w", ("{o} = Concat <axis = 0> ({a}, sevens)",)),
    ]


def _constant(p: Program) -> list[State]:
    p.constant("fixed", "float[3]", 1, -2, 4)
    p.input("u", "float[k1]", [4, 5, 6])
    return [
        State("float[l0]", p.input("w", "float[k]", [1, 2], [3]), ("{o} = Identity (fixed)",)),
        State("float[l1]", "fixed", ("{o} = Identity (a0)",)),
        State("float[l2]", "w", ("{o} = Identity (u)",)),
    ]


def _through_a_loop(p: Program) -> list[State]:
    p.input("w", "float[k]", [1, 2], [3])
    p.input("u", "float[k1]", [4, 5, 6])
    p.input("within", "int64", 0, 2)
    doubling = (
        "doubling (int64 j, bool e, float[m0] p0, float[m1] p1) => "
        "(bool f, float[m2] q0, float[m3] q1) {{ f = Identity (e) "
        "q0 = Concat <axis = 0> (p0, p0) q1 = Neg (p1) }}"
    )
    inner = f'r0, r1 = Loop (within, "", {{a}}, a1) <body = {doubling}>'
    asks = ("size = Shape (r1)", "number = Cast <to = 1> (size)")
    return [
        State("float[l0]", "w", (inner, *asks, "{o} = Add (r1, number)")),
        State("float[l1]", "u", ("{o} = Identity (r0)",)),
    ]


STATES: dict[str, Callable[[Program], list[State]]] = {
    "none": lambda p: [],
    "unchanged": lambda p: [State("float[2]", _x(p), ("{o} = Identity ({a})",))],
    "doubled": lambda p: [State("float[2]", _x(p), ("{o} = Add ({a}, {a})",))],
    "of open size": lambda p: [State("float[k]", _open(p), ("{o} = Add ({a}, {a})",))],
    "growing": lambda p: [State("float[l]", _x(p), ("{o} = Concat <axis = 0> ({a}, x)",))],
    "growing from nothing": lambda p: [
        State(
            "float[l]",
            p.constant("none", "float[0]"),
            (f"{{o}} = Concat <axis = 0> ({{a}}, {_x(p)})",),
        )
    ],
    "shrinking": _shrinking,
    "growing rank": _growing_rank,
    "exchanged": _exchanged,
    "exchanged, of open sizes": _exchanged_sizes,
    "exchanged behind a Loop of none": _through_a_loop,
    "in a row": _in_a_row,
    "of one start": _of_one_start,
    "constant": _constant,
    "replaced": _replaced,
    "sliced for nobody": _sliced_for_nobody,
    "several types": _several,
    "sequence": _sequence,
    "optional": _optional,
    "bytes": _bytes,
    "string": _string,
}

Again = Callable[[Program, Sequence[State]], list[str]]


def _by_state(p: Program, states: Sequence[State]) -> list[str]:
    if not states or not states[0].number:
        raise Invalid
    p.constant("limit", "float", 7)
    return [*(text.format(a="a0") for text in states[0].number), "d = Less (total, limit)"]


def _by_iteration(p: Program, states: Sequence[State]) -> list[str]:
    p.constant("last", "int64", 1)
    return ["d = Less (i, last)"]


def _captured(p: Program, states: Sequence[State]) -> list[str]:
    p.input("go", "bool", False, True)
    return ["d = Identity (go)"]


AGAINS: dict[str, Again] = {
    "true": lambda p, states: ["d = Constant <value = bool {1}> ()"],
    "false": lambda p, states: ["d = Constant <value = bool {0}> ()"],
    "passed on": lambda p, states: ["d = Identity (c)"],
    "negated": lambda p, states: ["d = Not (c)"],
    "by iteration": _by_iteration,
    "by state": _by_state,
    "captured": _captured,
}
"""Nodes that make the next condition `d` from the condition before, `c`."""

Stack = Callable[[Program, Sequence[State]], tuple[str, list[str]]]


def _stacked_state(p: Program, states: Sequence[State]) -> tuple[str, list[str]]:
    if not states or states[0].type not in ("float[2]", "float[k]"):
        raise Invalid
    return states[0].type, ["s = Identity (a0)"]


def _stacked_open(p: Program, states: Sequence[State]) -> tuple[str, list[str]]:
    return "float[k]", [f"s = Neg ({_open(p)})"]


STACKS: dict[str, Stack | None] = {
    "none": None,
    "number": lambda p, states: ("float", ["s = Cast <to = 1> (i)"]),
    "state": _stacked_state,
    "open size": _stacked_open,
    "constant": lambda p, states: ("float[2]", ["s = Constant <value = float[2] {3, 4}> ()"]),
    "truth": lambda p, states: ("bool", ["s = Constant <value = bool {1}> ()"]),
    "bytes": lambda p, states: ("int8", ["s = Cast <to = 3> (i)"]),
    "nothing": lambda p, states: ("float[0]", ["s = Constant <value = float[0] {}> ()"]),
}
"""The type of one part of the stack, and the nodes that make the part, `s`."""

AXES: Mapping[str, Sequence[str]] = {
    "trips": tuple(TRIPS),
    "first": tuple(FIRSTS),
    "again": tuple(AGAINS),
    "states": tuple(STATES),
    "stack": tuple(STACKS),
    "read": tuple(READ),
    "consumer": tuple(CONSUMERS),
}


NEVER = (
    "unchanged", "exchanged", "exchanged, of open sizes", "exchanged behind a Loop of none",
    "in a row", "constant", "replaced", "sliced for nobody", "growing rank", "shrinking", "bytes",
)  # fmt: skip
"""States whose sum may stay below every limit."""


def ends(trips: str, first: str, again: str, states: str, **_: str) -> bool:
    """Whether the Loop surely ends; without a trip count its conditions must end it."""
    if trips != "absent" or again in ("false", "negated", "by iteration"):
        return True
    return again == "by state" and states not in NEVER


def build(
    trips: str, first: str, again: str, states: str, stack: str, read: str, consumer: str
) -> Program:
    """The Loop of these levels. Raises Invalid if they exclude each other."""
    if not ends(trips, first, again, states) or states == stack == "none":
        raise Invalid
    p = Program()
    heads = TRIPS[trips](p), FIRSTS[first](p)
    carried = STATES[states](p)
    nodes = AGAINS[again](p, carried)
    # The checker wants all shapes of a condition to be equal if one is known.
    shape = "[]" if first == "input of rank 1" else ""
    inputs, outputs = ["int64 i", f"bool{shape} c"], [f"bool{shape} d"]
    results: list[Result] = []
    for index, state in enumerate(carried):
        a, o = f"a{index}", f"o{index}"
        nodes += [text.format(a=a, o=o) for text in state.nodes]
        inputs.append(f"{state.type} {a}")
        outputs.append(f"{state.type} {o}")
        results.append(Result(f"y{index}", state.type))
    make = STACKS[stack]
    if make is not None:
        type, made = make(p, carried)
        nodes += made
        outputs.append(f"{type} s")
        results.append(Result("stack", _stacked(type)))
    loop = body("body", inputs, outputs, nodes)
    names = ", ".join(result.name for result in results)
    operands = ", ".join((*heads, *(state.initial for state in carried)))
    p.node(f"{names} = Loop ({operands}) <body = {loop}>")
    consume(p, results, read, consumer)
    return p


def _stacked(type: str) -> str:
    """The type of a stack of values."""
    element, _, dims = type.rstrip("]").partition("[")
    return f"{element}[{', '.join(filter(None, ('z', dims)))}]"
