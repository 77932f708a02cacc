"""The possible ranks of the inputs of an operator on tensors of open rank, and the output types."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.constraints import contradiction, rank_constraints
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, Shape, TensorType, size_of
from bridge.passes.sequences.shape_vectors import Dims, joined, unsettled
from bridge.passes.sequences.tensors import Open, Plain, TensorForm
from bridge.vocabulary import operator

InputForms = Sequence[TensorForm | None]
"""The inputs of a node."""

MOST_CASES = 64
"""Combinations of ranks that one node may meet."""


@dataclass(frozen=True)
class RankCase:
    """One combination of ranks: the shape of each input (None if it is absent or not known), the
    types of the outputs, and whether the operator can run."""

    shapes: tuple[Shape, ...]
    types: tuple[TensorType, ...]
    runs: bool


def possible_cases(node: Node, forms: InputForms) -> list[RankCase]:
    """The combinations of input ranks with which an operator can run."""
    wanted = _demanded(node, forms)
    # Tensors of one shape vector have one rank.
    choices: dict[Value, list[Shape]] = {}
    for place, form in enumerate(forms):
        if isinstance(form, Open):
            choices[form.shape] = [*_fitting(form, wanted.get(place))]
    combinations = [
        _case(node, forms, dict(zip(choices, chosen, strict=True)))
        for chosen in _combinations(node, list(choices.values()))
    ]
    cases = [case for case in combinations if case.runs]
    # If inference only tells the ranks of the outputs in some cases, the other cases fail.
    ranked = [case for case in cases if all(type.rank is not None for type in case.types)]
    # An operator that always fails is reported by the pass for impossible nodes.
    return ranked or cases or combinations[:1]


def _fitting(form: Open, rank: int | None) -> Iterator[Shape]:
    """The shapes of a tensor that have the wanted rank."""
    if rank is None:
        yield from form.bounded()
    else:
        yield next((s for s in form.shapes or () if len(s) == rank), (ANY,) * rank)


def _combinations(node: Node, choices: list[list[Shape]]) -> Iterator[tuple[Shape, ...]]:
    if node.op == "Concat":
        for shape in choices[0]:
            same = [[s for s in shapes if s is not None and len(s) == len(shape or ())]
                    for shapes in choices]  # fmt: skip
            yield from product(*same)
        return
    count = size_of([len(shapes) for shapes in choices])
    if count > MOST_CASES:
        raise unsettled(f"its inputs may have {count} combinations of ranks")
    yield from product(*choices)


def trial_of(node: Node, forms: InputForms, types: Callable[[Open], TensorType]) -> Node:
    """The node on values of these types in the place of tensors of open rank."""
    trials: dict[Open, Value] = {}
    inputs: list[Value | None] = []
    for form in forms:
        if isinstance(form, Open):
            inputs.append(trials.setdefault(form, Value(types(form))))
        else:
            inputs.append(form.value if isinstance(form, Plain) else None)
    outputs = [Value() for _ in node.outputs]
    return Node(node.op, inputs, outputs, dict(node.attributes), (), node.name)


def _demanded(node: Node, forms: InputForms) -> dict[int, int]:
    """The required ranks of tensors of open rank, by their place among the inputs. They follow from
    the operator and from its other inputs."""
    trial = trial_of(node, forms, lambda form: TensorType(form.element))
    known = {v: v.rank for v in trial.operands if v.rank is not None}
    relations, demands = rank_constraints(trial)
    known.update(demands)
    for _ in range(2):
        for a, b, k, scalars in relations:
            if a in known and (known[a] or not scalars):
                known.setdefault(b, known[a] - k)
            elif b in known and a not in known:
                known[a] = known[b] + k if known[b] or not scalars else 0
    return {place: known[v] for place, v in enumerate(trial.inputs) if v in known}


def _case(node: Node, forms: InputForms, shapes: dict[Value, Shape]) -> RankCase:
    """The node on tensors of these shapes, by their shape vectors."""
    trial = trial_of(node, forms, lambda form: TensorType(form.element, shapes[form.shape]))
    infer(trial)
    runs = not contradiction(trial) and _has_axes(trial)
    given = tuple(None if value is None else value.shape for value in trial.inputs)
    return RankCase(given, tuple(value.tensor for value in trial.outputs), runs)


def _has_axes(node: Node) -> bool:
    """Whether the named axes of a node exist: in the first input, or in the output for new axes."""
    value = node.outputs[0] if node.op in ("Unsqueeze", "OneHot") else node.inputs[0]
    axes = named_axes(node)
    if value is None or value.rank is None or axes is None:
        return True
    # A scalar is reduced along its axis 0; Flatten may cut behind the last axis.
    rank = max(value.rank, 1) if node.op.startswith(("Reduce", "ArgM")) else value.rank
    return all(-rank <= axis < rank + (node.op == "Flatten") for axis in axes)


def named_axes(node: Node) -> tuple[int, ...] | None:
    """The axes that a node names, None if it names none or they are not known."""
    axis = node.attributes.get("axis", node.attributes.get("axes"))
    if axis is not None:
        return (axis,) if isinstance(axis, int) else tuple(axis)
    place = place_of_axes(node.op)
    return None if place is None else known_of(node.input(place)).ints


def place_of_axes(op: str) -> int | None:
    """The input that holds the axes of an operator."""
    row = operator(op)
    places = {} if row is None else row.places
    return next((places[name] for name in ("axis", "axes") if name in places), None)


def shapes_after(cases: list[RankCase], index: int) -> tuple[Dims, ...]:
    """The shapes that output `index` may have. Refused if its rank is not known."""
    shapes: list[Dims] = []
    for case in cases:
        shape = case.types[index].shape
        if shape is None:
            raise unsettled("the rank of its output is not known")
        shapes.append(shape)
    return joined(shapes)
