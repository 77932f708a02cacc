"""The pass: an If becomes both its branches, and a Where for each output.

The result is the same if both branches can run on any data and their outputs have one shape: a
selection never broadcasts. Where picks elements, so a NaN of the other branch has no effect.
"""

from collections.abc import Iterator, Mapping

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.builder import Builder
from bridge.neutral.cost import costs
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import ANY, STRING, Shape, TensorType, format_shape
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.select.named_sizes import NamedSizes, same_shape
from bridge.passes.select.pick import pick, wider
from bridge.passes.select.safe import steps_of, take_steps


def select_branches(model: Model, context: Context) -> None:
    """Replaces Ifs by selections, in place, innermost first. UnsupportedError with all that cannot
    be; with the option "select-some" these stay, and are notes."""
    with NamedSizes(model.graph) as sizes:
        selection = _Selection(context, sizes)
        Rewriter(model.graph).run(Pattern(selection.ask, frozenset({"If"}), context.target))
    remove_dead_nodes(model.graph)
    if selection.refused and context.options.get("ifs") == "select":
        raise UnsupportedError(f"{context.target} without Ifs", selection.refused)
    notes = context.report.notes
    kept = [f"{one.where} stays an If: {one.why}" for one in selection.refused]
    notes += [note for note in kept if note not in notes]


MOST_REASONS = 3
"""The most reasons that are reported for an If that stays."""

_NOTHING = Pattern(lambda b, node, rewriter: None, frozenset())


class _Selection:
    def __init__(self, context: Context, sizes: NamedSizes) -> None:
        self.context = context
        self.sizes = sizes
        self.refused: list[Unsupported] = []
        self.made: set[Node] = set()

    def ask(self, b: Builder, node: Node, rewriter: Rewriter) -> Result:
        """Both branches and the selections; None if the If stays."""
        where = rewriter.path(node)
        condition = node.inputs[0]
        assert condition is not None
        counts = b.op("Reshape", condition, []) if condition.rank != 0 else condition
        found = list(self._unequal(node))
        branches = []
        others = (counts, ~counts)
        for (role, body), own in zip(node.roles(), others, strict=True):
            safe, why = steps_of(body.graph.nodes, own, b, self.made)
            found += [f"in its {role}, {each}" for each in why]
            branches.append(safe)
        if found:
            rest = len(found) - MOST_REASONS
            more = [f"and {rest} more"] if rest > 0 else []
            self.refused.append(Unsupported("If", where, "; ".join([*found[:MOST_REASONS], *more])))
            b.nodes.clear()
            return None
        self.context.report.selected.append(f"{where}: {_cost(node)}")
        results = []
        for body, own, safe in zip(node.bodies, others, branches, strict=True):
            take_steps(body.graph, safe, own, self.made)
            first = len(b.nodes)
            results.append(rewriter.inline(b, node, body, _NOTHING))
            if any(made.op == "Loop" for made in b.nodes[first:]):
                # Its sizes are as declared only if the branch is taken; else it does not run.
                self.sizes.forget(b.nodes[first:])
        made, inlined = [], len(b.nodes)
        for output, *pair in zip(node.outputs, *results, strict=True):
            one, other = (rewriter.of(value) for value in pair if value is not None)
            made.append(self._selected(b, counts, one, other))
            self.sizes.declare(made[-1], output)
        self.made.update(b.nodes[inlined:])
        return made

    def _selected(self, b: Builder, counts: Value, one: Value, other: Value) -> Value:
        """One value if the condition is true, else the other. Both are padded to the larger size of
        each axis, a constant if both have bounds; the result is cut to the size of the picked."""
        if one is other:
            return b.op("Identity", one)
        if same_shape(one, other):
            return pick(b, counts, one, other)
        most = self.sizes.largest(one.shape, other.shape)
        assert most is not None
        element, wide = one.element, wider(one.element)
        one, other = b.cast(one, wide), b.cast(other, wide)
        sizes = [b.sizes(value, *most) for value in (one, other)]
        bounds = [size for size in most.values() if size is not None]
        larger = b.constant(bounds) if len(bounds) == len(most) else b.op("Max", *sizes)
        padded = [_padded(b, *pair, most, larger) for pair in zip((one, other), sizes, strict=True)]
        ends = b.where(counts, *sizes)
        axes = b.constant(list(most))
        start = b.constant([0] * len(most))
        return b.cast(b.op("Slice", pick(b, counts, *padded), start, ends, axes), element)

    def _unequal(self, node: Node) -> Iterator[str]:
        """Why outputs cannot be selected."""
        for index, output in enumerate(node.outputs):
            one, other = (body.given(index) for body in node.bodies)
            name = output.name or f"output {index}"
            if not all(isinstance(value.type, TensorType) for value in (one, other)):
                yield f'its "{name}" is {output.type}, and only tensors can be selected'
            elif one.element is not other.element or one.element is None:
                yield f'its "{name}" is of another element type in each branch'
            elif not same_shape(one, other) and not self.sizes.largest(one.shape, other.shape):
                shapes = " and ".join(_shown(value.shape) for value in (one, other))
                yield f'its "{name}" may have other ranks in each branch: {shapes}'
            elif one.element is STRING and not same_shape(one, other):
                yield f'its "{name}" may have other sizes in each branch: strings are not padded'


def _padded(
    b: Builder, value: Value, sizes: Value, most: Mapping[int, int | None], larger: Value
) -> Value:
    """A value with zeros at the ends of axes, up to the larger sizes; `most` has the known ones."""
    assert value.element is not None
    if all(value.dims[axis] == size for axis, size in most.items()):
        return value
    more = larger - sizes
    zero = b.constant([0] * len(value.dims))
    pads = b.concat(0, zero, b.op("ScatterElements", zero, list(most), more, 0))
    return b.op("Pad", value, pads, b.like(0, value), mode="constant")


def _shown(shape: Shape) -> str:
    """A shape for people. Made-up names of unknown sizes are left out, because they say nothing."""
    dims = (ANY if isinstance(dim, str) and dim.startswith("#") else dim for dim in shape or ())
    return format_shape(None if shape is None else tuple(dims))


def _cost(node: Node) -> str:
    """The cost of both branches against the larger one."""
    each = [costs(body.graph)[0].cost.multiplications for body in node.bodies]
    return f"a selection, with {sum(each):,} multiplications instead of at most {max(each):,}"
