"""The walk through graphs and bodies that rewrites sequences, optionals and tensors of open rank on
their forms."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder, Target
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, Sliced, Stacked, Yield
from bridge.neutral.rewrite import Rewriter
from bridge.neutral.types import OptionalType
from bridge.operators import Refused
from bridge.operators.control.idle import never_runs, surely_runs, what_went_in
from bridge.passes.fold import FOLD
from bridge.passes.sequences.bodies import NodeInputs, OpenBody, is_compound, same_form
from bridge.passes.sequences.branches import Branches
from bridge.passes.sequences.form import Fails, Form
from bridge.passes.sequences.join import common
from bridge.passes.sequences.maybe import Maybe, held
from bridge.passes.sequences.open_operators import has_open_rank, lower_open
from bridge.passes.sequences.operators import LOWERED
from bridge.passes.sequences.ragged import Ragged
from bridge.passes.sequences.tensors import Open, Plain, tensor
from bridge.passes.sequences.uniform import Uniform

MOST_ROUNDS = 6
"""Times that a Loop's body is tried until its state keeps its structure."""

ROUNDS_OF_RANKS = 3
"""The rounds in which a state may get further ranks; if it still does later, it has no bound."""


class Lowering:
    """Lowers one graph at the path `where`. `forms` holds the forms of its compound values, `parts`
    the values that its Loops slice. `moved` holds sequences whose elements its Loops read in any
    order. `branches` holds facts about the Ifs of the whole model. `pruned` notes each branch and
    body that is left out because it would fail.

    It is no pattern of the rewriter, for two reasons. It changes the form of a value, so a node
    cannot stay beside a lowered one. And it tries the body of a Loop several times. A Rewriter
    replaces values and inlines branches."""

    def __init__(
        self,
        graph: Graph,
        target: Target,
        where: str = "graph",
        branches: Branches | None = None,
    ) -> None:
        self.source = graph
        self.nodes: list[Node] = []
        self.target = target
        self.where = where
        self.builder = Builder(self.nodes, target=target)
        self.forms: dict[Value, Form] = {}
        self.parts: dict[tuple[Value, Sliced], Open] = {}
        self.moved: dict[Value, Ragged | Uniform] = {}
        self.branches = Branches() if branches is None else branches
        self.pruned: list[str] = []
        self.rewriter = Rewriter(graph)
        self.current: Node | None = None
        self.inner: Lowering | None = None

    def place(self) -> tuple[str, str]:
        """The current operator of the walk, and the path to it."""
        path = ["graph"]
        lowering: Lowering | None = self
        op = "graph input"
        while lowering is not None and lowering.current is not None:
            op = lowering.current.op
            path.append(repr(lowering.current))
            lowering = lowering.inner
        return op, " / ".join(path)

    def run(self) -> None:
        """Lowers the nodes; the outputs are for the caller to take by `form`."""
        with self.builder:
            for node in self.source.nodes:
                self.current, self.inner = node, None
                self._node(node)
        self.current = None

    def form(self, value: Value) -> Form:
        """The form of a value of the graph as it was."""
        known = self.forms.get(value)
        return Plain(self.rewriter.of(value)) if known is None else known

    def _node(self, node: Node) -> None:
        self.builder.name = node.name
        if node.op == "Constant":
            self.nodes.append(node)
            return
        if node.op == "If":
            self._if(node)
            return
        if node.op == "Loop":
            self._loop(node)
            return
        lower = LOWERED.get(node.op)
        forms = [None if v is None else self.form(v) for v in node.inputs]
        if lower is not None and (node.op != "Identity" or is_compound(node.inputs[0])):
            made: Sequence[Form] = [lower(self.builder, node, forms)]
        elif has_open_rank(node, forms):
            made = lower_open(self.builder, node, forms)
        else:
            self._keep(node)
            return
        for value, form in zip(node.outputs, made, strict=False):
            self.bind(value, form)

    def _keep(self, node: Node) -> None:
        """A node that only takes plain tensors."""
        for value in node.inputs:
            if value is not None and value in self.forms:
                raise Refused(f"{node.op} takes the sequence or optional {value.name!r}")
        self.rewriter.apply(node)
        infer(node)
        self.nodes.append(node)

    def bind(self, value: Value, form: Form) -> None:
        """Sets the form of a value of the old graph."""
        form = self._settled(form)
        if isinstance(form, Plain):
            made = form.value
            if made in self.source.inputs:
                made = self.builder.op("Identity", made)
            made = self._own(made)
            known = made.type
            self.rewriter.replace(value, made)
            if is_compound(value):
                made.type = made.declared = known
        else:
            self.forms[value] = form

    def _settled(self, form: Form) -> Form:
        """A tensor of open rank as a plain one, if only one rank is possible."""
        if not isinstance(form, Open):
            return form
        with self.builder as b:
            return form.settled(b)

    def _own(self, value: Value) -> Value:
        """The value, or a copy if it already has a name or a place."""
        if value.producer is None or value.names:
            return self.builder.op("Identity", value)
        return value

    def _open(self, node: Node, role: str, index: int, copy: bool = False) -> OpenBody:
        """A body of a node, to be lowered."""
        body = clone_body(node.bodies[index]) if copy else node.bodies[index]
        where = f"{self.where} / {node!r} / {role}"
        inner = Lowering(body.graph, self.target, where, self.branches)
        inner.builder.name = node.name
        self.inner = inner
        return OpenBody(self, inner, node, body, role)

    def _if(self, node: Node) -> None:
        condition = known_of(self._head(node, 0)).ints
        branches: list[OpenBody] = []
        failed: list[tuple[str, OpenBody, Fails]] = []
        for index, (role, _) in enumerate(node.roles()):
            if condition is not None and bool(condition[0]) != (index == 0):
                continue
            branch = self._open(node, role, index)
            branch.enter([None] * len(branch.body.inputs))
            try:
                branch.lowering.run()
                branches.append(branch)
            except Fails as failure:
                failed.append((role, branch, failure))
        if not branches:
            # So this graph fails wherever it runs.
            _, first, why = failed[0]
            self.inner = first.lowering
            raise why
        for role, _, why in failed:
            self.pruned.append(f"{self.where} / {node!r}: its {role} fails, {why}")
        for branch in branches:
            self.pruned += branch.lowering.pruned
        if len(branches) == 1:
            self._inline(node, branches[0])
        else:
            self._merge(node, branches)

    def _inline(self, node: Node, branch: OpenBody) -> None:
        """Puts a branch in the place of its If."""
        targets = [branch.output(index) for index in range(len(node.outputs))]
        inputs = NodeInputs([None])
        body = branch.finish_if(targets, inputs)
        outputs = [Value() for target in targets for _ in target.leaves()]
        made = Node("If", inputs.values, outputs, bodies=(body,))
        results = self.rewriter.inline(self.builder, made, body, FOLD)
        self._bind_outputs(
            node, targets, [self._own(self.rewriter.of(v)) for v in results if v is not None]
        )

    def _merge(self, node: Node, branches: list[OpenBody]) -> None:
        """An If whose branches give forms of one structure."""
        self.branches.leave(node, [branch.results() for branch in branches])
        targets: list[Form] = []
        for index, value in enumerate(node.outputs):
            forms = [branch.output(index) for branch in branches]
            target: Form | None = forms[0]
            for form in forms[1:]:
                target = common(target, form, value.name)
            assert target is not None
            targets.append(target)
        inputs = NodeInputs([self._head(node, 0)])
        bodies = tuple(branch.finish_if(targets, inputs) for branch in branches)
        count = sum(len(target.leaves()) for target in targets)
        made = self.builder.node("If", inputs.values, count, {}, bodies, node.name, node.extras)
        self._bind_outputs(node, targets, made.outputs)

    def _head(self, node: Node, index: int) -> Value | None:
        """A condition or trip count, which has one element whatever its rank."""
        value = node.input(index)
        return None if value is None else tensor(self.form(value)).at_rank(self.builder, 0)

    def _bind_outputs(self, node: Node, targets: list[Form], values: list[Value]) -> None:
        parts = iter(values)
        for old, target in zip(node.outputs, targets, strict=True):
            form = self._settled(_payload(target.with_leaves(parts), old))
            if isinstance(form, Plain):
                self.rewriter.replace(old, form.value)
            else:
                for leaf, part in zip(form.leaves(), form.leaf_names(), strict=True):
                    leaf.names = [f"{name}.{part}" for name in old.names]
                self.forms[old] = form

    def _loop(self, node: Node) -> None:
        heads = [self._head(node, index) for index in (0, 1)]
        if never_runs(heads):
            results = self._without_iteration(node)
            if results is not None:
                self._bind_all(node, results)
                return
        _part_condition(self.builder, node)
        starts = (
            node.inputs[port.input] if isinstance(port, Carried) and port.input else None
            for port in node.body.inputs
        )
        states = [None if start is None else self.form(start) for start in starts]
        try:
            attempt = self._attempt(node, states)
        except Fails as failure:
            results = self._without_iteration(node)
            if results is None or surely_runs(node, heads):
                raise
            self.pruned.append(f"{self.where} / {node!r}: its body fails, {failure}")
            self._bind_all(node, results)
            return
        self.pruned += attempt.lowering.pruned
        inputs = NodeInputs(heads)
        body, targets = attempt.finish_loop(inputs)
        count = sum(len(target.leaves()) for target in targets)
        made = self.builder.node("Loop", inputs.values, count, {}, (body,), node.name, node.extras)
        self._bind_outputs(node, targets, made.outputs)
        for port in node.body.outputs:
            form = self.forms.get(node.outputs[port.output]) if isinstance(port, Stacked) else None
            if isinstance(port, Stacked) and isinstance(form, Open):
                self.forms[node.outputs[port.output]] = form.stacked(self.builder)

    def _attempt(self, node: Node, states: list[Form | None]) -> OpenBody:
        """A Loop's body, lowered with states in forms that they keep."""
        for round in range(MOST_ROUNDS):
            attempt = self._open(node, "body", 0, copy=True)
            attempt.enter(states)
            attempt.lowering.run()
            again = attempt.next_states(bounded=round < ROUNDS_OF_RANKS)
            if all(same_form(a, b) for a, b in zip(states, again, strict=True)):
                return attempt
            states = again
        raise Refused("the structure of a sequence in its state never settles")

    def _without_iteration(self, node: Node) -> list[Form] | None:
        """The outputs of a Loop that does not run: its initial states, and empty stacks; None if
        these are not known."""
        results = what_went_in(self.builder, node)
        return None if results is None else [self.form(value) for value in results]

    def _bind_all(self, node: Node, results: list[Form]) -> None:
        for value, form in zip(node.outputs, results, strict=True):
            self.bind(value, _payload(form, value))


def _payload(form: Form, value: Value) -> Form:
    """The content of a form if the value is no optional. (A state may enter a Loop as an optional
    and leave as its content.)"""
    if isinstance(form, Maybe) and not isinstance(value.type, OptionalType):
        return held(form) or form
    return form


def _part_condition(b: Builder, node: Node) -> None:
    """Makes a separate state, in place, of a condition that the body takes in several ranks,
    because the condition of a Loop is a scalar. An absent first condition is true."""
    body = node.body
    for index, (value, port) in enumerate(body.entries()):
        if isinstance(port, Carried) and value.rank is None:
            again, exit = body.exit_of(port)
            if isinstance(exit, Condition):
                place, first = body.add_exit(again, Yield(None)), port.input
                if first is None:
                    first = len(node.inputs)
                    node.inputs.append(b.constant(True))
                body.inputs[index] = Carried(first, place)
