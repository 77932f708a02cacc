"""How a program reads the outputs of control flow: the axis `consumer` of Loop, Scan and If."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.control_flow.program import Invalid, Program


@dataclass(frozen=True)
class Result:
    """An output of a Loop, a Scan or an If, and its type in ONNX's text syntax."""

    name: str
    type: str

    @property
    def is_tensor_of_numbers(self) -> bool:
        return not self.type.startswith(("seq", "optional", "string"))


def as_output(p: Program, result: Result) -> None:
    p.output(result.name, result.type)


def size(p: Program, result: Result) -> None:
    name = f"{result.name}_size"
    if result.type.startswith("optional"):
        p.node(f"{name} = OptionalHasElement ({result.name})")
        p.output(name, "bool")
    elif result.type.startswith("seq"):
        p.node(f"{name} = SequenceLength ({result.name})")
        p.output(name, "int64")
    else:
        p.node(f"{name} = Shape ({result.name})")
        p.output(name, "int64[d]")


def total(p: Program, result: Result) -> None:
    if not result.is_tensor_of_numbers:
        raise Invalid
    name = result.name
    p.node(f"{name}_f = Cast <to = 1> ({name})")
    p.node(f"{name}_sum = ReduceSum <keepdims = 0> ({name}_f)")
    p.output(f"{name}_sum", "float")


def in_a_row(p: Program, result: Result) -> None:
    """Its elements in a row, with one more number."""
    if not result.is_tensor_of_numbers:
        raise Invalid
    name = result.name
    p.constant("line", "int64[1]", -1)
    p.constant("seven", "float[1]", 7)
    p.node(f"{name}_f = Cast <to = 1> ({name})")
    p.node(f"{name}_l = Reshape ({name}_f, line)")
    p.node(f"{name}_row = Concat <axis = 0> ({name}_l, seven)")
    p.output(f"{name}_row", f"float[row_{name}]")


def asked(p: Program, result: Result) -> None:
    """An If whose condition is the number of elements; its branches capture the value."""
    if not result.is_tensor_of_numbers:
        raise Invalid
    name = result.name
    p.constant("two", "int64", 2)
    p.node(f"{name}_n = Size ({name})")
    p.node(f"{name}_many = Greater ({name}_n, two)")
    p.node(f"{name}_f = Cast <to = 1> ({name})")
    p.node(
        f"{name}_if = If ({name}_many) <"
        f"then_branch = more () => (float[] neg_{name}) {{ neg_{name} = Neg ({name}_f) }}, "
        f"else_branch = less () => (float[] abs_{name}) {{ abs_{name} = Abs ({name}_f) }}>"
    )
    p.node(f"{name}_sum = ReduceSum <keepdims = 0> ({name}_if)")
    p.output(f"{name}_sum", "float")


def product(p: Program, result: Result) -> None:
    """The product of its elements as a row and as a column, as a scalar."""
    if not result.is_tensor_of_numbers:
        raise Invalid
    name = result.name
    p.constant("scalar", "int64[0]")
    p.node(f"{name}_f = Cast <to = 1> ({name})")
    p.node(f"{name}_r = Flatten <axis = 0> ({name}_f)")
    p.node(f"{name}_c = Transpose ({name}_r)")
    p.node(f"{name}_p = MatMul ({name}_r, {name}_c)")
    p.node(f"{name}_dot = Reshape ({name}_p, scalar)")
    p.output(f"{name}_dot", "float")


def compared(p: Program, result: Result) -> None:
    """A comparison with an empty tensor. The result is empty, and its sizes are the output."""
    if not result.is_tensor_of_numbers:
        raise Invalid
    name = result.name
    p.constant("nothing", "float[0, 1]")
    p.node(f"{name}_f = Cast <to = 1> ({name})")
    p.node(f"{name}_r = Flatten <axis = 0> ({name}_f)")
    p.node(f"{name}_less = Less ({name}_r, nothing)")
    p.output(f"{name}_less", f"bool[0, less_{name}]")


def again(p: Program, result: Result) -> None:
    """A Loop adds it up twice."""
    if not result.is_tensor_of_numbers:
        raise Invalid
    name = result.name
    p.constant("two_more", "int64", 2)
    p.constant("start", "float", 0)
    p.node(f"{name}_f = Cast <to = 1> ({name})")
    p.node(
        f'{name}_twice = Loop (two_more, "", start) <body = adding_{name} '
        f"(int64 turn_{name}, bool on_{name}, float before_{name}) => "
        f"(bool still_{name}, float after_{name}) {{ still_{name} = Identity (on_{name}) "
        f"whole_{name} = ReduceSum <keepdims = 0> ({name}_f) "
        f"after_{name} = Sub (whole_{name}, before_{name}) }}>"
    )
    p.output(f"{name}_twice", "float")


CONSUMERS: dict[str, Callable[[Program, Result], None]] = {
    "output": as_output,
    "size": size,
    "sum": total,
    "row": in_a_row,
    "asked": asked,
    "product": product,
    "compared": compared,
    "again": again,
}

READ: Mapping[str, slice] = {"all": slice(None), "first": slice(1), "last": slice(-1, None)}
"""The outputs that a program reads: the axis `read` of Loop and Scan."""


def consume(p: Program, results: Sequence[Result], read: str, consumer: str) -> None:
    """Reads outputs. Raises Invalid if one output would be all of them."""
    if read != "all" and len(results) == 1:
        raise Invalid
    for result in results[READ[read]]:
        CONSUMERS[consumer](p, result)
