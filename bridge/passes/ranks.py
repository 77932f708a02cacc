"""Ifs whose branches differ in rank, if a consumer takes only one rank.

In IR, a value of unknown rank becomes two tensors, so this pass finds ranks. Every value gets the
set of ranks that it can have. The demands of operators narrow the sets, forwards and backwards
through the ports of Ifs. If no rank is left for a value in a branch, the model would fail whenever
this branch runs, in ONNX too. The branch is pruned and the other one replaces the If.
"""

from collections.abc import Sequence

from bridge.errors import UsageError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import (
    BRANCHES,
    Body,
    Graph,
    Model,
    Node,
    Value,
    names_of_outputs,
    producer_of,
)
from bridge.neutral.inference import infer_graph
from bridge.neutral.inference.constraints import RankDemand, RankRelation, rank_constraints
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import ANY, TensorType
from bridge.passes.assumptions import note_pruned
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.declared_ranks import (
    TARGETS,
    changes_rank,
    forget_ranks_of_data,
    open_target,
)
from bridge.passes.dummies import settle_dummies
from bridge.passes.fold import FOLD, infer_and_fold
from bridge.report import PrunedBranch, Report
from bridge.suggestions import unknown
from bridge.vocabulary import has_trait

MOST_SWEEPS = 50

PossibleRanks = frozenset[int] | None
"""The ranks that a value may have; None for any."""


class _Impossible(Exception):
    """A value has no rank left."""


def settle_ranks(model: Model, context: Context) -> bool:
    """Prunes, in place, branches that no consumer could take; notes each in the report. Returns
    whether there was any value of several ranks.

    Declared ranks decide only if the operators leave a choice and the condition depends on shapes
    alone. Declared ranks are forgotten if data decide them (`Context.disbelieved`). Raises
    UsageError for `output_ranks` of no output, or that no output has.
    """
    graph = model.graph
    names = names_of_outputs(graph)
    for name in context.output_ranks:
        if name not in names:
            raise UsageError(unknown("output", name, names))
    _override(graph, names, context)
    if not context.ask(has_open_rank, graph) and not any(map(open_target, graph.walk())):
        require_output_ranks(graph, context)
        return False
    remove_dead_nodes(graph)
    infer_and_fold(graph)
    if settle_dummies(graph):
        infer_and_fold(graph)
    declared = [value.shape for value in graph.outputs]
    forget_ranks_of_data(graph)
    constraints: RankConstraints = {}
    for trust in () if context.options.get("keep_branches") else (False, True):
        # The declared ranks decide between the ranks that a value may have.
        while (not trust or has_open_rank(graph)) and _prune_once(
            graph, context, trust, constraints
        ):
            infer_and_fold(graph)
            constraints.clear()
    for value, name, shape in zip(graph.outputs, names, declared, strict=True):
        if shape is not None and value.rank is None:
            context.disbelieved[name] = shape
    return True


def _override(graph: Graph, names: Sequence[str], context: Context) -> None:
    """Gives outputs whose rank the file alone declares the rank that the user gives."""
    for value, name in zip(graph.outputs, names, strict=True):
        rank = context.output_ranks.get(name, value.rank)
        if value.believed and rank is not None and rank != value.rank:
            value.declared = TensorType(value.element, (ANY,) * rank)
            infer_graph(graph)


def has_open_rank(graph: Graph) -> bool:
    """Whether some value may have several ranks."""
    return any(map(_may_differ, graph.walk()))


def _may_differ(node: Node) -> bool:
    if node.bodies:
        return _differs(node) if node.op == "If" else has_state_of_open_rank(node)
    return opens_rank(node, node.inputs)


def opens_rank(node: Node, inputs: Sequence[Value | None]) -> bool:
    """Whether the rank of a node's output depends on the elements of these inputs."""
    if not node.outputs or node.outputs[0].rank is not None:
        return False
    if node.op == "Squeeze":
        (data, *axes) = inputs
        return not any(axes) and data is not None and data.shape is not None
    place = TARGETS.get(node.op)
    shape = None if place is None else inputs[place]
    return shape is not None and shape.rank == 1 and known_of(shape).length is None


def require_output_ranks(graph: Graph, context: Context) -> None:
    """Raises UsageError for `output_ranks` that the outputs do not have."""
    for value, name in zip(graph.outputs, names_of_outputs(graph), strict=True):
        rank = context.output_ranks.get(name, value.rank)
        if value.rank not in (None, rank):
            raise UsageError(f'the output "{name}" has rank {value.rank}, not {rank}')


def has_state_of_open_rank(loop: Node) -> bool:
    """Whether a state of a Loop changes its rank."""
    return any(
        isinstance(port, Carried)
        and not isinstance(loop.body.exit_of(port)[1], Condition)
        and changes_rank(loop, value, port)
        for value, port in loop.body.entries()
    )


def _differs(node: Node) -> bool:
    ranks: dict[int, int | None] = {}
    for body in node.bodies:
        for value, output in body.results():
            if not isinstance(value.type, TensorType):
                continue
            if ranks.setdefault(output, value.rank) != value.rank or value.rank is None:
                return True
    return False


RankConstraints = dict[Node, tuple[list[RankRelation], list[RankDemand]]]
"""How ranks go together at each node, as found so far."""


def _prune_once(graph: Graph, context: Context, trust: bool, constraints: RankConstraints) -> bool:
    named = zip(graph.outputs, names_of_outputs(graph), strict=True)
    wanted = {v: context.output_ranks[name] for v, name in named if name in context.output_ranks}
    solver = _Solver(wanted, _declared(graph) if trust else set(), constraints)
    try:
        solver.solve(graph)
    except _Impossible:
        # The model fails for any input; this pass must not hide that.
        return False
    if not solver.dead:
        return False
    why = "that no consumer of {} takes"
    if wanted:
        why += ", or that is not the one asked for"
    if trust:
        why = "other than {} is declared with, and its condition depends on shapes alone"
    _inline(graph, solver.dead, context.report, why)
    return True


def _declared(graph: Graph) -> set[Value]:
    """The outputs of a graph whose rank the file declares."""
    bodies = (body.graph for node in graph.walk() for body in node.bodies)
    return {value for each in (graph, *bodies) for value in each.outputs if value.rank is not None}


def _inline(graph: Graph, dead: set[tuple[Node, int]], report: Report, why: str) -> None:
    """Replaces Ifs by their remaining branches. `why` the others went is a text about the outputs
    of an If."""

    def inlined(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        branches = [i for i in range(len(node.bodies)) if (node, i) not in dead]
        for index in branches:
            rewriter.inside(node, node.bodies[index]).run(pattern)
        if node.op != "If" or len(branches) == 2:
            return None
        gone = BRANCHES[1 - branches[0]]
        names = ", ".join(value.name for value in node.outputs)
        line = PrunedBranch(rewriter.path(node), gone, f"gives a rank {why.format(names)}")
        report.causes[line] = f"gives a rank {why.format('the If')}"
        note_pruned(rewriter, node, 1 - branches[0], line, report)
        return rewriter.inline(b, node, node.bodies[branches[0]], FOLD)

    pattern = Pattern(inlined, frozenset({"If", "Loop"}), bodies=False)
    Rewriter(graph).run(pattern)


class _Solver:
    """Narrows the sets of possible ranks until nothing changes. No entry means any rank. `wanted`
    are ranks that a user gives, `believed` the outputs of Ifs whose declared rank is believed."""

    def __init__(
        self, wanted: dict[Value, int], believed: set[Value], constraints: RankConstraints
    ) -> None:
        self.wanted = wanted
        self.believed = believed
        self.sets: dict[Value, frozenset[int]] = {}
        self.dead: set[tuple[Node, int]] = set()
        self.changed = False
        # Nodes whose ranks are all known and consistent: they cannot change any more.
        self._settled: set[Node] = set()
        self._constraints = constraints

    def solve(self, graph: Graph) -> None:
        for _ in range(MOST_SWEEPS):
            self.changed = False
            for value, rank in self.wanted.items():
                self.narrow(value, frozenset((rank,)))
            self.sweep(graph, backwards=False)
            self.sweep(graph, backwards=True)
            if not self.changed:
                return

    def of(self, value: Value) -> PossibleRanks:
        known = self.sets.get(value)
        if known is not None:
            return known
        rank = value.rank
        if rank is None or (producer_of(value, "If") and value not in self.believed):
            return None
        return frozenset((rank,))

    def narrow(self, value: Value, to: PossibleRanks) -> None:
        if to is None:
            return
        known = self.of(value)
        new = to if known is None else known & to
        if not new:
            raise _Impossible
        if self.sets.get(value) != new:
            self.sets[value] = new
            self.changed = True

    def sweep(self, graph: Graph, backwards: bool) -> None:
        for node in reversed(graph.nodes) if backwards else graph.nodes:
            if node.bodies:
                self._bodies(node, backwards)
            else:
                self._relate(node)

    def _relate(self, node: Node) -> None:
        if not node.inputs or node in self._settled:
            return
        if node not in self._constraints:
            self._constraints[node] = rank_constraints(node)
        relations, demands = self._constraints[node]
        for a, b, k, scalars in relations:
            below, above = self.of(b), self.of(a)
            if k and below is not None:
                below = frozenset(r + k if r or not scalars else 0 for r in below)
            # (Ranks below 0 come from a squeeze of too many axes.)
            if above is not None and (k or min(above) < 0):
                zero = above & {0} if scalars else frozenset()
                above = frozenset(r - k for r in above if r >= k) | zero
            self.narrow(a, below)
            self.narrow(b, above)
        for value, rank in demands:
            self.narrow(value, frozenset((rank,)))
        if has_trait(node.op, "broadcasts"):
            self._broadcast(node.operands, node.outputs[0])
        known = (self.of(value) for value in (*node.inputs, *node.outputs) if value is not None)
        if all(ranks is not None and len(ranks) == 1 for ranks in known):
            self._settled.add(node)

    def _broadcast(self, inputs: Sequence[Value], out: Value) -> None:
        """The result has the largest rank of the inputs."""
        known = [self.of(value) for value in inputs]
        ranks = [each for each in known if each is not None]
        if ranks and len(ranks) == len(known):
            least = max(map(min, ranks))
            self.narrow(out, frozenset(r for each in ranks for r in each if r >= least))
        above = self.of(out)
        if above is not None:
            for value in inputs:
                self.narrow(value, frozenset(range(max(above) + 1)))

    def _live(self, node: Node) -> list[Body]:
        return [body for i, body in enumerate(node.bodies) if (node, i) not in self.dead]

    def _bodies(self, node: Node, backwards: bool) -> None:
        for index, body in enumerate(node.bodies):
            if (node, index) in self.dead:
                continue
            try:
                self._ports(node, body, backwards)
                self.sweep(body.graph, backwards)
            except _Impossible:
                if node.op == "If":
                    self.dead.add((node, index))
                    self.changed = True
                    if not self._live(node):
                        raise
        # A Loop may run no iteration, so demands inside its body do not hold outside.
        if node.op == "If" and backwards:
            self._demand_captures(node)
        elif node.op == "If":
            for position, value in enumerate(node.outputs):
                values = [body.given(position) for body in self._live(node)]
                self.narrow(value, _any_of([*map(self.of, values)]))

    def _ports(self, node: Node, body: Body, backwards: bool) -> None:
        """Inputs or outputs of a body have the ranks that they have outside."""
        if not backwards:
            for value, outer in node.captures(body).items():
                self.narrow(value, self.of(outer))
        elif node.op == "If":
            for value, output in body.results():
                self.narrow(value, self.of(node.outputs[output]))

    def _demand_captures(self, node: Node) -> None:
        """A captured value must suit one of the remaining branches."""
        first, *others = (
            {outer: self.of(value) for value, outer in node.captures(body).items()}
            for body in self._live(node)
        )
        for outer, ranks in first.items():
            self.narrow(outer, _any_of([ranks, *(demanded.get(outer) for demanded in others)]))


def _any_of(ranks: Sequence[PossibleRanks]) -> PossibleRanks:
    """The union of several sets of ranks: any, if one of them is any."""
    known = [each for each in ranks if each is not None]
    return frozenset().union(*known) if len(known) == len(ranks) else None
