"""Each operator on tensors of open rank.

An operator that works element by element runs on the elements. An operator that broadcasts, or
whose axes all count from one end, runs on views. If it can take only one rank, it gets that rank.
Any other operator gets an If for each possible rank: one copy of the operator for each rank, and no
copies of later nodes.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import TensorType, broadcast
from bridge.operators import Refused
from bridge.operators.bodies import either
from bridge.passes.ranks import opens_rank
from bridge.passes.sequences.form import Form
from bridge.passes.sequences.open_shapes import on_shapes
from bridge.passes.sequences.rank_cases import (
    InputForms,
    RankCase,
    named_axes,
    place_of_axes,
    possible_cases,
    shapes_after,
    trial_of,
)
from bridge.passes.sequences.shape_vectors import Dims, joined, unsettled
from bridge.passes.sequences.tensors import Open, Plain, TensorForm, is_one, plain, tensor, unview
from bridge.vocabulary import has_trait


def has_open_rank(node: Node, forms: Sequence[Form | None]) -> bool:
    """Whether a node takes tensors of open rank, or gives one though it takes none."""
    if any(isinstance(form, Open) for form in forms):
        return True
    return opens_rank(node, [form.value if isinstance(form, Plain) else None for form in forms])


def lower_open(b: Builder, node: Node, inputs: Sequence[Form | None]) -> list[TensorForm]:
    """The output of such a node. Refused if its form cannot be known."""
    forms = [None if form is None else tensor(form) for form in inputs]
    output = on_shapes(b, node, forms)
    if output is not None:
        return [output]
    if has_trait(node.op, "by_element"):
        return _by_element(b, node, forms)
    if has_trait(node.op, "broadcasts"):
        return [_broadcast(b, node, forms)]
    cases = possible_cases(node, forms)
    if not cases:
        raise unsettled("its inputs differ in rank")
    if len(cases) == 1:
        return [Plain(value) for value in _in_case(b, node, forms, cases[0])]
    front = _end(node, forms)
    if front is not None:
        return _along_axes(b, node, forms, cases, front)
    if node.op == "MatMul" and all(s is None or len(s) > 1 for c in cases for s in c.shapes):
        return [_on_views(b, node, forms, shapes_after(cases, 0))]
    return _by_rank(b, node, forms, cases)


def _by_element(b: Builder, node: Node, forms: InputForms) -> list[TensorForm]:
    form = forms[0]
    if not isinstance(form, Open):
        raise unsettled("an input beside its first has no known rank")
    rest = [None if f is None else f.leaves()[0] for f in forms[1:]]
    copy = b.node(node.op, [form.data, *rest], len(node.outputs), dict(node.attributes))
    return [Open(v, form.shape, form.shapes) for v in copy.outputs]


def _broadcast(b: Builder, node: Node, forms: InputForms) -> TensorForm:
    present = [form for form in forms if form is not None]
    opens = [form for form in present if isinstance(form, Open)]
    least = min((len(s) for form in opens for s in form.shapes or ((),)), default=0)
    if len({form.shape for form in opens}) == 1 and all(
        isinstance(form, Open) or is_one(form.leaves()[0], least) for form in present
    ):
        inputs = [None if form is None else _flat(b, form) for form in forms]
        output = b.node(node.op, inputs, 1, dict(node.attributes)).outputs[0]
        return Open(output, opens[0].shape, opens[0].shapes)
    shapes: tuple[Dims, ...] = ((),)
    for form in present:
        pairs = (broadcast(one, other) for one, other in product(shapes, form.bounded()))
        shapes = joined(shape for shape in pairs if shape is not None)
    return _on_views(b, node, forms, shapes)


def _flat(b: Builder, form: TensorForm) -> Value:
    """The elements, or one of them that has no axis."""
    if isinstance(form, Plain) and form.value.rank in (0, 1):
        return form.value
    return form.elements(b)


def _on_views(b: Builder, node: Node, forms: InputForms, shapes: tuple[Dims, ...]) -> TensorForm:
    """An operator whose inputs count their axes from the end, on views. The output has the highest
    rank of the inputs."""
    inputs: list[Value | None] = []
    ranks: list[Value] = []
    fixed = 0
    for form in forms:
        if isinstance(form, Open):
            inputs.append(form.view(b, len(form.bounded()[-1]), front=False))
            ranks.append(form.rank(b))
        else:
            value = plain(form)
            inputs.append(value)
            fixed = max(fixed, 0 if value is None else value.rank or 0)
    if fixed:
        ranks.append(b.constant([fixed]))
    output = b.node(node.op, inputs, 1, dict(node.attributes)).outputs[0]
    rank = ranks[0] if len(ranks) == 1 else b.op("Max", *ranks)
    return unview(b, output, rank, False, shapes)


def _in_case(b: Builder, node: Node, forms: InputForms, case: RankCase) -> list[Value]:
    """The operator on tensors of the ranks of a case."""
    inputs = [
        None if form is None else form.at_rank(b, len(shape or ()))
        for form, shape in zip(forms, case.shapes, strict=True)
    ]
    return b.node(node.op, inputs, len(node.outputs), dict(node.attributes)).outputs


def _end(node: Node, forms: InputForms) -> bool | None:
    """Whether all axes of an operator count from the front (True) or from the end (False); None for
    an operator that cannot run on views."""
    if not has_trait(node.op, "along_axes"):
        return None
    data = len(forms) if has_trait(node.op, "one_rank") else 1
    if any(isinstance(form, Open) for form in forms[data:]):
        return None
    axes = named_axes(trial_of(node, forms, lambda form: TensorType(form.element)))
    if axes is None:
        place = place_of_axes(node.op)
        computed = place is not None and place < len(forms) and forms[place] is not None
        return None if computed or node.op == "Squeeze" else True
    signs = {axis >= 0 for axis in axes}
    return None if len(signs) > 1 else True in signs or not signs


def _along_axes(
    b: Builder, node: Node, forms: InputForms, cases: list[RankCase], front: bool
) -> list[TensorForm]:
    """The operator on views of one rank."""
    opens = [form for form in forms if isinstance(form, Open)]
    ranks = [len(s or ()) for case in cases for f, s in zip(forms, case.shapes, strict=True)
             if isinstance(f, Open)]  # fmt: skip
    rank = max(ranks)
    views = [None if form is None else form.view(b, rank, front) for form in forms]
    rank_before = opens[0].rank(b)
    copy = b.node(node.op, views, len(node.outputs), dict(node.attributes))
    results: list[TensorForm] = []
    for index, value in enumerate(copy.outputs):
        grown = (value.rank or 0) - rank
        true = rank_before + b.constant([grown]) if grown else rank_before
        if min(ranks) + grown < 0:  # a scalar, which stays one
            true = b.max(true, [0])
        results.append(unview(b, value, true, front, shapes_after(cases, index)))
    return results


def _by_rank(b: Builder, node: Node, forms: InputForms, cases: list[RankCase]) -> list[TensorForm]:
    """An If for each case but the last, each in the else branch of the one before."""
    targets: list[TensorForm] = []
    for index, output in enumerate(node.outputs):
        shapes, element = shapes_after(cases, index), cases[0].types[index].element
        if element is None:
            raise Refused("the element type of its output is not known")
        leaf = Value(TensorType(element, shapes[0]), list(output.names))
        targets.append(Plain(leaf) if len(shapes) == 1 else Open(leaf, leaf, shapes))
    values = iter(_nested(b, node, forms, cases, targets))
    return [target.with_leaves(values) for target in targets]


def _nested(
    b: Builder, node: Node, forms: InputForms, cases: list[RankCase], targets: list[TensorForm]
) -> list[Value]:
    """The leaves of a node's outputs in any of the cases."""
    case, *others = cases
    if not others:
        outputs = zip(_in_case(b, node, forms, case), targets, strict=True)
        held = [Plain(value).to_open(b) if isinstance(like, Open) else Plain(value)
                for value, like in outputs]  # fmt: skip
        return [leaf for form in held for leaf in form.leaves()]
    present = [form for form in forms if form is not None]
    outer = list(dict.fromkeys(leaf for form in present for leaf in form.leaves()))

    def branch(part: list[RankCase], inner: Builder, inside: list[Value]) -> list[Value]:
        held = dict(zip(outer, inside, strict=True))
        within = [form and form.with_leaves(held[leaf] for leaf in form.leaves()) for form in forms]
        return _nested(inner, node, within, part, targets)

    then, otherwise = partial(branch, [case]), partial(branch, others)
    return either(b, _is_case(b, forms, case), outer, then, otherwise, suffix=".inside")


def _is_case(b: Builder, forms: InputForms, case: RankCase) -> Value:
    """Whether the tensors of open rank have the ranks of a case, a scalar."""
    ranks: dict[Value, int] = {}
    for form, shape in zip(forms, case.shapes, strict=True):
        if isinstance(form, Open):
            ranks[form.shape] = len(shape or ())
    tests = [b.op("Size", shape).equal(rank) for shape, rank in ranks.items()]
    while len(tests) > 1:
        tests[:2] = [tests[0] & tests[1]]
    return tests[0]
