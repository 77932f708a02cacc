"""Each operator on tensors of open rank.

What works element by element runs on the elements. What broadcasts, or has axes that all count from
one end, runs on views. What has one rank that it can take gets that rank. Anything else has an If
for each rank that may be there: one copy of the operator for each, and none of what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.dims import length_of, shape_in
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.types import (
    ANY,
    I64,
    I64_MAX,
    Dim,
    Shape,
    TensorType,
    broadcast,
    is_static,
    low,
    size_of,
)
from bridge.operators import Refused
from bridge.operators.validity import contradiction
from bridge.passes.ranks import demands, opens_rank, relations
from bridge.passes.sequences.forms import (
    Form,
    Open,
    elements,
    joined,
    leaves,
    rebuilt,
    shapes_of,
    to_open,
)
from bridge.passes.sequences.open_rank import (
    as_long_as,
    rank_of,
    reshaped,
    shapes_as_long_as,
    shapes_of_open,
    to_rank,
    unview,
    view,
    wide,
)
from bridge.vocabulary import operators

BY_ELEMENT = {
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitwiseNot", "Cast",
    "Ceil", "Celu", "Clip", "Cos", "Cosh", "Dropout", "Elu", "Erf", "ErfInv", "Exp", "Floor",
    "Gelu", "HSigmoid", "HardSigmoid", "HardSwish", "Identity", "IsFinite", "IsInf", "IsNaN",
    "LeakyRelu", "Log", "Mish", "Neg", "Not", "RandomNormalLike", "RandomUniformLike",
    "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "ir::Convert",
}  # fmt: skip
"""Operators of which every output has the shape of input 0, and element by element what it says of
those of input 0."""

BROADCASTING = {
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseLeftShift", "BitwiseOr", "BitwiseRightShift",
    "BitwiseXor", "Div", "Equal", "FakeQuantize", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "NotEqual", "Or", "PRelu", "Pow",
    "SquaredDifference", "Sub", "Sum", "Where", "Xor", "ir::Mod",
}  # fmt: skip
"""Operators whose inputs are broadcast together, as numpy does."""

ALONG_AXES = {
    "ArgMax", "ArgMin", "Concat", "CumProd", "CumSum", "Flatten", "Gather", "GatherElements",
    "Hardmax", "LogSoftmax", "LpNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "ScatterElements", "Slice",
    "Softmax", "Split", "Squeeze", "TopK", "Unsqueeze",
}  # fmt: skip
"""Operators that further axes of size 1 do not concern, if all their axes count from the other
end."""

MOST_CASES = 64
"""Combinations of ranks that one node may meet."""

Forms = Sequence[Form | None]


def has_open_rank(node: Node, forms: Forms) -> bool:
    """Whether a node takes tensors of open rank, or gives one though it takes none."""
    if any(isinstance(form, Open) for form in forms):
        return True
    return opens_rank(node, [form if isinstance(form, Value) else None for form in forms])


def lower_open(b: Builder, node: Node, forms: Forms) -> list[Form]:
    """What such a node gives. Refused where it cannot be said."""
    special = _reduce if node.op.startswith("Reduce") else _SPECIAL.get(node.op)
    made = None if special is None else special(b, node, forms)
    if made is not None:
        return [made]
    if node.op in BY_ELEMENT:
        return _by_element(b, node, forms)
    if node.op in BROADCASTING:
        return [_broadcast(b, node, forms)]
    cases = _cases(node, forms)
    if not cases:
        raise Refused("its inputs differ in rank")
    if len(cases) == 1:
        return [*_in_case(b, node, forms, cases[0])]
    front = _end(node, forms)
    if front is not None:
        return _along_axes(b, node, forms, cases, front)
    if node.op == "MatMul" and all(s is None or len(s) > 1 for c in cases for s in c.shapes):
        return [_on_views(b, node, forms, _shapes_after(cases, 0))]
    return _by_rank(b, node, forms, cases)


# ------------------------------------------------------------------------------------------------
# Element by element, and broadcasting


def _by_element(b: Builder, node: Node, forms: Forms) -> list[Form]:
    form = forms[0]
    if not isinstance(form, Open):
        raise Refused("an input beside its first has no known rank")
    rest = [elements(b, f) if isinstance(f, Open) else _value(f) for f in forms[1:]]
    made = b.node(node.op, [form.data, *rest], len(node.outputs), dict(node.attributes))
    return [Open(v, form.shape, form.shapes) for v in made.outputs]


def _broadcast(b: Builder, node: Node, forms: Forms) -> Form:
    given = [form for form in forms if form is not None]
    opens = [form for form in given if isinstance(form, Open)]
    least = min((len(s) for form in opens for s in form.shapes or ((),)), default=0)
    if len({form.shape for form in opens}) == 1 and all(
        isinstance(form, Open) or _is_one(form, least) for form in given
    ):
        like = opens[0]
        inputs = [_flat(b, form) for form in forms]
        made = b.node(node.op, inputs, 1, dict(node.attributes)).outputs[0]
        return Open(made, like.shape, like.shapes)
    shapes: tuple[tuple[Dim, ...], ...] = ((),)
    for form in given:
        own = shapes_of_open(form) if isinstance(form, Open) else shapes_of(_tensor(form))
        if own is None:
            raise Refused("the rank of one of its inputs is not known")
        pairs = (broadcast(one, other) for one, other in product(shapes, own))
        shapes = joined(shape for shape in pairs if shape is not None)
    return _on_views(b, node, forms, shapes)


def _is_one(form: Form, rank: int) -> bool:
    """Whether a tensor has one element, and at most this rank."""
    shape = form.shape if isinstance(form, Value) else None
    return is_static(shape) and size_of(shape) == 1 and len(shape) <= rank


def _flat(b: Builder, form: Form | None) -> Value | None:
    if isinstance(form, Open):
        return form.data
    value = _value(form)
    return value if value is None or value.rank in (0, 1) else elements(b, value)


def _on_views(
    b: Builder, node: Node, forms: Forms, shapes: tuple[tuple[Dim, ...], ...]
) -> Value | Open:
    """An operator whose inputs count their axes from the end, on views; the highest rank that an
    input has is that of the output."""
    inputs: list[Value | None] = []
    ranks: list[Value] = []
    fixed = 0
    for form in forms:
        if isinstance(form, Open):
            inputs.append(view(b, form, len(shapes_of_open(form)[-1]), front=False))
            ranks.append(rank_of(b, form))
        else:
            value = _value(form)
            inputs.append(value)
            fixed = max(fixed, 0 if value is None else value.rank or 0)
    if fixed:
        ranks.append(b.constant([fixed]))
    made = b.node(node.op, inputs, 1, dict(node.attributes)).outputs[0]
    rank = ranks[0] if len(ranks) == 1 else b.op("Max", *ranks)
    return unview(b, made, rank, False, shapes)


# ------------------------------------------------------------------------------------------------
# Ranks that an operator may meet


@dataclass(frozen=True)
class Case:
    """One combination of ranks: the shape of each input (None where it is absent or not known), the
    types of the outputs, and whether the operator can run."""

    shapes: tuple[Shape, ...]
    types: tuple[TensorType, ...]
    runs: bool


def _cases(node: Node, forms: Forms) -> list[Case]:
    """The combinations of ranks with which an operator can run."""
    wanted = _demanded(node, forms)
    # Tensors of one shape vector have one rank.
    choices: dict[Value, list[Shape]] = {}
    for place, form in enumerate(forms):
        if isinstance(form, Open):
            choices[form.shape] = [*_fitting(form, wanted.get(place))]
    found = [
        _case(node, forms, dict(zip(choices, chosen, strict=True)))
        for chosen in _combinations(node, list(choices.values()))
    ]
    cases = [case for case in found if case.runs]
    # Where inference tells the ranks of the outputs in some cases alone, the others fail.
    told = [case for case in cases if all(type.rank is not None for type in case.types)]
    # What fails whenever it runs is for the pass to tell that looks for what is impossible.
    return told or cases or found[:1]


def _fitting(form: Open, rank: int | None) -> Iterator[Shape]:
    """The shapes of a tensor that have the wanted rank."""
    if rank is None:
        yield from shapes_of_open(form)
    else:
        yield next((s for s in form.shapes or () if len(s) == rank), (ANY,) * rank)


def _combinations(node: Node, choices: list[list[Shape]]) -> Iterator[tuple[Shape, ...]]:
    if node.op == "Concat":
        for shape in choices[0]:
            same = [[s for s in own if s is not None and len(s) == len(shape or ())]
                    for own in choices]  # fmt: skip
            yield from product(*same)
        return
    count = size_of([len(own) for own in choices])
    if count > MOST_CASES:
        raise Refused(f"its inputs may have {count} combinations of ranks")
    yield from product(*choices)


def _trial(node: Node, forms: Forms, types: Callable[[Open], TensorType]) -> Node:
    """The node on values of these types in the place of tensors of open rank."""
    made: dict[Open, Value] = {}
    inputs: list[Value | None] = []
    for form in forms:
        if isinstance(form, Open):
            inputs.append(made.setdefault(form, Value(types(form))))
        else:
            inputs.append(_value(form))
    outputs = [Value() for _ in node.outputs]
    return Node(node.op, inputs, outputs, dict(node.attributes), (), node.name)


def _demanded(node: Node, forms: Forms) -> dict[int, int]:
    """The ranks that tensors of open rank must have, by their place among the inputs: those that
    the operator takes, or that go with its other inputs."""
    trial = _trial(node, forms, lambda form: TensorType(form.element))
    known = {v: v.rank for v in trial.inputs if v is not None and v.rank is not None}
    known.update(demands(trial))
    for _ in range(2):
        for a, b, k in relations(trial):
            if a in known:
                known.setdefault(b, known[a] - k)
            elif b in known:
                known[a] = known[b] + k
    return {place: known[v] for place, v in enumerate(trial.inputs) if v in known and v}


def _case(node: Node, forms: Forms, shapes: dict[Value, Shape]) -> Case:
    """The node on tensors of these shapes, by their shape vectors."""
    trial = _trial(node, forms, lambda form: TensorType(form.element, shapes[form.shape]))
    infer(trial)
    runs = not contradiction(trial) and _has_axes(trial)
    given = tuple(None if value is None else value.shape for value in trial.inputs)
    return Case(given, tuple(value.tensor for value in trial.outputs), runs)


def _has_axes(node: Node) -> bool:
    """Whether the first input has the axes that a node names, or the output those that are new."""
    value = node.outputs[0] if node.op in ("Unsqueeze", "OneHot") else node.inputs[0]
    axes = _axes(node)
    if value is None or value.rank is None or axes is None:
        return True
    last = value.rank + (node.op == "Flatten")  # which may cut behind the last axis
    return all(-value.rank <= axis < last for axis in axes)


def _axes(node: Node) -> tuple[int, ...] | None:
    """The axes that a node names, None where it names none or they are not known."""
    axis = node.attributes.get("axis", node.attributes.get("axes"))
    if axis is not None:
        return (axis,) if isinstance(axis, int) else tuple(axis)
    operator = operators().get(node.op)
    for index, name in enumerate(operator.inputs if operator is not None else ()):
        if name.rstrip("?") in ("axis", "axes"):
            return integers(node.input(index))
    return None


def _shapes_after(cases: list[Case], index: int) -> tuple[tuple[Dim, ...], ...]:
    """The shapes that output `index` may have. Refused where its rank is not known."""
    found: list[tuple[Dim, ...]] = []
    for case in cases:
        shape = case.types[index].shape
        if shape is None:
            raise Refused("the rank of its output is not known")
        found.append(shape)
    return joined(found)


# ------------------------------------------------------------------------------------------------
# One rank, views, and an If for each rank


def _in_case(b: Builder, node: Node, forms: Forms, case: Case) -> list[Value]:
    """The operator on tensors of the ranks of a case."""
    inputs = [
        to_rank(b, form, len(shape or ())) if isinstance(form, Open) else _value(form)
        for form, shape in zip(forms, case.shapes, strict=True)
    ]
    return b.node(node.op, inputs, len(node.outputs), dict(node.attributes)).outputs


def _end(node: Node, forms: Forms) -> bool | None:
    """Whether the axes of an operator all count from the front (True) or all from the end (False);
    None for an operator that cannot have views."""
    if node.op not in ALONG_AXES:
        return None
    data = 1 if node.op not in ("Concat", "GatherElements", "ScatterElements") else len(forms)
    if any(isinstance(form, Open) for form in forms[data:]):
        return None
    axes = _axes(_trial(node, forms, lambda form: TensorType(form.element)))
    if axes is None:
        operator = operators()[node.op]
        given = [f for f, name in zip(forms, operator.inputs, strict=False) if name == "axes?"]
        return None if any(f is not None for f in given) or node.op == "Squeeze" else True
    signs = {axis >= 0 for axis in axes}
    return None if len(signs) > 1 else True in signs or not signs


def _along_axes(b: Builder, node: Node, forms: Forms, cases: list[Case], front: bool) -> list[Form]:
    """The operator on views of one rank."""
    opens = [form for form in forms if isinstance(form, Open)]
    rank = max(len(s or ()) for case in cases for f, s in zip(forms, case.shapes, strict=True)
               if isinstance(f, Open))  # fmt: skip
    views = [view(b, f, rank, front) if isinstance(f, Open) else _value(f) for f in forms]
    own = rank_of(b, opens[0])
    made = b.node(node.op, views, len(node.outputs), dict(node.attributes))
    results: list[Form] = []
    for index, value in enumerate(made.outputs):
        grown = (value.rank or 0) - rank
        true = b.op("Add", own, b.constant([grown])) if grown else own
        results.append(unview(b, value, true, front, _shapes_after(cases, index)))
    return results


def _by_rank(b: Builder, node: Node, forms: Forms, cases: list[Case]) -> list[Form]:
    """An If for each case but the last, each in the else branch of the one before."""
    targets: list[Value | Open] = []
    for index, output in enumerate(node.outputs):
        shapes, element = _shapes_after(cases, index), cases[0].types[index].element
        if element is None:
            raise Refused("the element type of its output is not known")
        leaf = Value(TensorType(element, shapes[0]), list(output.names))
        targets.append(leaf if len(shapes) == 1 else Open(leaf, leaf, shapes))
    values = iter(_nested(b, node, forms, cases, targets))
    return [rebuilt(target, values) for target in targets]


def _nested(
    b: Builder, node: Node, forms: Forms, cases: list[Case], targets: list[Value | Open]
) -> list[Value]:
    """The leaves of what a node gives in any of the cases."""
    case, *others = cases
    if not others:
        made = zip(_in_case(b, node, forms, case), targets, strict=True)
        held = [to_open(b, value) if isinstance(like, Open) else value for value, like in made]
        return [leaf for form in held for leaf in leaves(form)]
    outer = list(dict.fromkeys(leaf for form in forms for leaf in leaves(form)))
    branches: list[Body] = []
    for part in ([case], others):
        inner = {leaf: _captured(leaf) for leaf in outer}
        graph = Graph(list(inner.values()))
        within = [form and rebuilt(form, iter([inner[leaf] for leaf in leaves(form)]))
                  for form in forms]  # fmt: skip
        builder = Builder(graph.nodes, b.name, b.target)
        graph.outputs = _nested(builder, node, within, part, targets)
        body = Body(graph, [Invariant(i + 1) for i in range(len(outer))])
        body.outputs = [Yield(i) for i in range(len(graph.outputs))]
        branches.append(body)
    inputs = [_is_case(b, forms, case), *outer]
    return b.node("If", inputs, len(branches[0].outputs), {}, tuple(branches)).outputs


def _captured(outer: Value) -> Value:
    inner = Value(outer.type, [f"{name}.inside" for name in outer.names])
    inner.content = outer.content
    return inner


def _is_case(b: Builder, forms: Forms, case: Case) -> Value:
    """Whether the tensors of open rank have the ranks of a case, a scalar."""
    ranks: dict[Value, int] = {}
    for form, shape in zip(forms, case.shapes, strict=True):
        if isinstance(form, Open):
            ranks[form.shape] = len(shape or ())
    tests = [b.op("Equal", b.op("Size", shape), b.constant(rank)) for shape, rank in ranks.items()]
    while len(tests) > 1:
        tests[:2] = [b.op("And", tests[0], tests[1])]
    return tests[0]


# ------------------------------------------------------------------------------------------------
# Shapes


def _value(form: Form | None) -> Value | None:
    if form is None or isinstance(form, Value):
        return form
    raise Refused("its input is no tensor")


def _tensor(form: Form | None) -> Value | Open:
    if isinstance(form, Value | Open):
        return form
    raise Refused("its input is no tensor")


def _vector(form: Form | None, b: Builder) -> Value:
    """A shape that a node takes, i64 1-D."""
    value = to_rank(b, form, 1) if isinstance(form, Open) else _value(form)
    assert value is not None
    return value if value.element is I64 else b.op("Cast", value, to=I64)


def _shape(b: Builder, node: Node, forms: Forms) -> Form | None:
    form = forms[0]
    if not isinstance(form, Open):
        return None
    start, end = node.attributes["start"], node.attributes["end"]
    shape = form.shape
    if start or end is not None:
        last = b.constant([I64_MAX if end is None else end])
        shape = b.op("Slice", shape, b.constant([start]), last, b.constant([0]))
    wanted = node.attributes["output_type"]
    return shape if wanted in (None, I64) else b.op("Cast", shape, to=wanted)


def _size(b: Builder, node: Node, forms: Forms) -> Form | None:
    form = forms[0]
    return b.op("Size", form.data) if isinstance(form, Open) else None


def _reshape(b: Builder, node: Node, forms: Forms) -> Form | None:
    """The elements stay; 0s are sizes of the first axes, which a view has in front."""
    form, target = forms[0], _vector(forms[1], b)
    allowzero = node.attributes["allowzero"]
    length = length_of(target)
    known = integers(target)
    copies = not allowzero and (known is None or 0 in known)
    if length is not None and not isinstance(form, Open):
        return b.op("Reshape", _value(form), target, allowzero=allowzero)
    if length is not None and isinstance(form, Open):
        if not copies:
            return b.op("Reshape", form.data, target, allowzero=allowzero)
        rank = max(length, *(len(shape) for shape in shapes_of_open(form)))
        return b.op("Reshape", view(b, form, rank, True), target, allowzero=False)
    pair = to_open(b, _tensor(form))
    return reshaped(b, pair, target, allowzero)


def _expand(b: Builder, node: Node, forms: Forms) -> Form | None:
    """Both the tensor and the shape get 1s in front, up to the highest rank of either."""
    form, target = _tensor(forms[0]), _vector(forms[1], b)
    own = shapes_of(form)
    lengths = None if target.shape is None else shapes_as_long_as(target.shape[0])
    if own is None or lengths is None:
        raise Refused("nothing bounds the rank of its output")
    known = shape_in(target)
    shapes: list[tuple[Dim, ...]] = []
    for one, other in product(own, lengths if known is None else (known,)):
        shape = broadcast(one, other)
        assert shape is not None
        shapes.append(shape)
    longest = len(lengths[-1])
    data = view(b, form, len(own[-1]), False) if isinstance(form, Open) else form
    made = b.op("Expand", data, target if length_of(target) else wide(b, target, longest))
    rank = rank_of(b, form) if isinstance(form, Open) else b.constant([form.rank])
    return unview(b, made, b.op("Max", rank, b.op("Shape", target)), False, shapes)


def _reduce(b: Builder, node: Node, forms: Forms) -> Form | None:
    """Over all axes."""
    form, axes = forms[0], forms[1] if len(forms) > 1 else None
    everything = axes is None or (isinstance(axes, Value) and integers(axes) == ())
    if not isinstance(form, Open) or not everything or node.attributes["noop_with_empty_axes"]:
        return None
    made = b.op(node.op, form.data, b.constant([0]), **node.attributes)
    if not node.attributes["keepdims"]:
        return made
    ones = b.op("Expand", b.constant(1), rank_of(b, form))
    shapes = None if form.shapes is None else tuple((1,) * len(s) for s in form.shapes)
    return Open(made, as_long_as(ones, shapes), shapes)


def _quantize(b: Builder, node: Node, forms: Forms) -> Form | None:
    """With one scale for all elements, which then have no axis."""
    form, rest = forms[0], [_value(f) for f in forms[1:]]
    if not isinstance(form, Open) or not all(v is None or _is_one(v, 1) for v in rest):
        return None
    made = b.op(node.op, form.data, *rest, **{**node.attributes, "axis": 0})
    return Open(made, form.shape, form.shapes)


def _squeeze(b: Builder, node: Node, forms: Forms) -> Form | None:
    """Without axes, what is not 1 of the shape is left."""
    form = _tensor(forms[0])
    if len(forms) > 1 and forms[1] is not None:
        return None
    pair = to_open(b, form)
    kept = b.op("Not", b.op("Equal", pair.shape, b.constant(1)))
    left = b.op("Compress", pair.shape, kept, axis=0)
    shapes = None if pair.shapes is None else joined(
        rest for shape in pair.shapes for rest in _without_ones(shape)
    )  # fmt: skip
    return Open(pair.data, as_long_as(left, shapes), shapes)


def _without_ones(shape: tuple[Dim, ...]) -> Iterator[tuple[Dim, ...]]:
    """What may be left of a shape without its 1s."""
    kept = tuple(dim for dim in shape if dim != 1)
    sure = sum(dim == 0 or low(dim) > 1 for dim in kept)
    yield kept
    for rank in range(sure, len(kept)):
        yield (ANY,) * rank


def _constant_of_shape(b: Builder, node: Node, forms: Forms) -> Form | None:
    target = _vector(forms[0], b)
    assert target.shape is not None
    count = b.op("ReduceProd", target, b.constant([0]), keepdims=True)
    data = b.op("ConstantOfShape", count, **node.attributes)
    return Open(data, target, shapes_as_long_as(target.shape[0]))


def _cast_like(b: Builder, node: Node, forms: Forms) -> Form | None:
    form, like = forms[0], forms[1]
    one = like.data if isinstance(like, Open) else _value(like)
    if not isinstance(form, Open):
        return b.op("CastLike", _value(form), one, **node.attributes)
    return replace(form, data=b.op("CastLike", form.data, one, **node.attributes))


_SPECIAL: dict[str, Callable[[Builder, Node, Forms], Form | None]] = {
    "CastLike": _cast_like,
    "ConstantOfShape": _constant_of_shape,
    "DequantizeLinear": _quantize,
    "Expand": _expand,
    "QuantizeLinear": _quantize,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Squeeze": _squeeze,
}
"""Operators on shapes; None where what goes for others goes for them."""
