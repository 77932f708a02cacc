"""ONNX Ifs: every form of condition, and every pair of outputs of branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.control_flow.program import Invalid, Program
from tests.control_flow.results import CONSUMERS, Result


def _computed(p: Program) -> str:
    p.constant("zero", "float", 0)
    p.node("t_sum = ReduceSum <keepdims = 0> (x)")
    p.node("asked = Greater (t_sum, zero)")
    return "asked"


def _computed_in_a_row(p: Program) -> str:
    p.constant("zero", "float[1]", 0)
    p.constant("whole", "int64[1]", 0)
    p.node("t_sum = ReduceSum (x, whole)")
    p.node("asked = Greater (t_sum, zero)")
    return "asked"


def _by_size(p: Program) -> str:
    p.constant("front", "int64[1]", 0)
    p.constant("end", "int64[1]", 1)
    p.constant("two", "int64[1]", 2)
    p.node("x_shape = Shape (x)")
    p.node("x_first = Slice (x_shape, front, end)")
    p.node("asked = Equal (x_first, two)")
    return "asked"


def _by_rank(p: Program) -> str:
    p.constant("one", "int64", 1)
    p.node("x_shape = Shape (x)")
    p.node("x_rank = Size (x_shape)")
    p.node("asked = Equal (x_rank, one)")
    return "asked"


def _negated(p: Program) -> str:
    p.input("t", "bool", False, True)
    p.node("asked = Not (t)")
    return "asked"


CONDITIONS: dict[str, Callable[[Program], str]] = {
    "true": lambda p: p.constant("asked", "bool", 1),
    "false": lambda p: p.constant("asked", "bool", 0),
    "input": lambda p: p.input("t", "bool", False, True),
    "input of rank 1": lambda p: p.input("t", "bool[1]", [False], [True]),
    "negated": _negated,
    "computed": _computed,
    "computed of rank 1": _computed_in_a_row,
    "by size": _by_size,
    "by rank": _by_rank,
}


@dataclass(frozen=True)
class Given:
    """The output of a branch: the nodes that make `{o}`, and its type."""

    type: str
    nodes: tuple[str, ...]


GIVEN: dict[str, Given] = {
    "same": Given("float[]", ("{o} = Add (x, x)",)),
    "longer": Given("float[]", ("{o} = Concat <axis = 0> (x, x)",)),
    "other rank": Given("float[]", ("{o} = Unsqueeze (x, place)",)),
    "scalar": Given("float[]", ("{o} = ReduceMax <keepdims = 0> (x)",)),
    "captured": Given("float[]", ("{o} = Identity (x)",)),
    "constant": Given("float[]", ("{o} = Constant <value = float[2] {{7, 8}}> ()",)),
    "open": Given(
        "float[]", ("{o}_p = Greater (x, small)", "{o} = Compress <axis = 0> (x, {o}_p)")
    ),
    "nothing": Given("float[]", ("{o} = Constant <value = float[0] {{}}> ()",)),
    "integers": Given("float[]", ("{o}_i = Cast <to = 7> (x)", "{o} = Cast <to = 1> ({o}_i)")),
    "in a Loop": Given(
        "float[]",
        (
            '{o} = Loop (twice, "", x) <body = around_{o} (int64 i_{o}, bool c_{o}, float[] a_{o}) '
            "=> (bool d_{o}, float[] b_{o}) {{ d_{o} = Identity (c_{o}) b_{o} = Add (a_{o}, x) }}>",
        ),
    ),
    "initializer": Given("float[]", ("{o} = Identity (other)",)),
    "truths": Given("bool[]", ("{o} = Greater (x, small)",)),
    "one truth": Given("bool[]", ("{o} = Constant <value = bool {{1}}> ()",)),
    "text": Given("string[]", ('{o} = Constant <value = string[1] {{"a"}}> ()',)),
    "texts": Given("string[]", ('{o} = Constant <value = string[2] {{"b", "c"}}> ()',)),
    "sequence": Given("seq(float[])", ("{o} = SequenceConstruct (x, x)",)),
    "longer sequence": Given("seq(float[])", ("{o} = SequenceConstruct (x, other, x)",)),
    "empty sequence": Given("seq(float[])", ("{o} = SequenceEmpty <dtype = 1> ()",)),
    "optional": Given("optional(float[])", ("{o} = Optional (x)",)),
    "nothing optional": Given(
        "optional(float[])", ("{o} = Optional <type = optional(float[])> ()",)
    ),
}

X = {"float[2]": [[1, 2], [-3, 1]], "float[k]": [[1, 2], [3, -4, 5], [-1]]}

AXES: Mapping[str, Sequence[str]] = {
    "condition": tuple(CONDITIONS),
    "then": tuple(GIVEN),
    "otherwise": tuple(GIVEN),
    "data": tuple(X),
    "consumer": tuple(CONSUMERS),
}


def build(condition: str, then: str, otherwise: str, data: str, consumer: str) -> Program:
    """The If of these levels. Raises Invalid if they exclude each other."""
    branches = GIVEN[then], GIVEN[otherwise]
    if branches[0].type != branches[1].type or "nothing optional" in (then, otherwise):
        raise Invalid
    p = Program()
    p.input("x", data, *X[data])
    p.constant("place", "int64[1]", 0)
    p.constant("small", "float", 1)
    p.constant("other", "float[1]", 9)
    p.constant("twice", "int64", 2)
    asked = CONDITIONS[condition](p)
    then_text, else_text = (
        f"{name} () => ({given.type} {name}_o) "
        f"{{ {' '.join(text.format(o=f'{name}_o') for text in given.nodes)} }}"
        for name, given in zip(("th", "el"), branches, strict=True)
    )
    p.node(f"y = If ({asked}) <then_branch = {then_text}, else_branch = {else_text}>")
    CONSUMERS[consumer](p, Result("y", branches[0].type))
    return p
