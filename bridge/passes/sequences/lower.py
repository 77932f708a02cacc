"""The walk through graphs and bodies that rewrites sequences, optionals and tensors of open rank on
their forms."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.ports import Sliced
from bridge.neutral.rewrite import Rewriter
from bridge.operators import Refused
from bridge.passes.sequences.branch_shapes import Branches
from bridge.passes.sequences.compound_loops import lower_loop
from bridge.passes.sequences.form import Form, is_compound
from bridge.passes.sequences.ifs import lower_if
from bridge.passes.sequences.maybe import content_for
from bridge.passes.sequences.open_operators import has_open_rank, lower_open
from bridge.passes.sequences.operators import LOWERED
from bridge.passes.sequences.ragged import Ragged
from bridge.passes.sequences.tensors import Open, Plain, tensor
from bridge.passes.sequences.uniform import Uniform


class Lowering:
    """Lowers one graph at the path `where`. `forms` holds the forms of its compound values, `parts`
    the values that its Loops slice. `movable` holds sequences whose elements its Loops read in any
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
        self.movable: dict[Value, Ragged | Uniform] = {}
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
            lower_if(self, node)
            return
        if node.op == "Loop":
            lower_loop(self, node)
            return
        lower = LOWERED.get(node.op)
        forms = [None if v is None else self.form(v) for v in node.inputs]
        if lower is not None and (node.op != "Identity" or is_compound(node.inputs[0])):
            lowered: Sequence[Form] = [lower(self.builder, node, forms)]
        elif has_open_rank(node, forms):
            lowered = lower_open(self.builder, node, forms)
        else:
            self._keep(node)
            return
        for value, form in zip(node.outputs, lowered, strict=False):
            self.bind(value, form)

    def _keep(self, node: Node) -> None:
        """A node that only takes plain tensors."""
        for value in node.operands:
            if value in self.forms:
                raise Refused(f"{node.op} takes the sequence or optional {value.name!r}")
        self.rewriter.apply(node)
        infer(node)
        self.nodes.append(node)

    def bind(self, value: Value, form: Form) -> None:
        """Sets the form of a value of the old graph."""
        form = self._settled(form)
        if isinstance(form, Plain):
            tensor = form.value
            if tensor in self.source.inputs:
                tensor = self.builder.op("Identity", tensor)
            tensor = self.own(tensor)
            known = tensor.type
            self.rewriter.replace(value, tensor)
            if is_compound(value):
                tensor.type = tensor.declared = known
        else:
            self.forms[value] = form

    def _settled(self, form: Form) -> Form:
        """A tensor of open rank as a plain one, if only one rank is possible."""
        if not isinstance(form, Open):
            return form
        with self.builder as b:
            return form.settled(b)

    def own(self, value: Value) -> Value:
        """The value, or a copy if it already has a name or a place."""
        if value.producer is None or value.names:
            return self.builder.op("Identity", value)
        return value

    def inside(self, node: Node, role: str, graph: Graph) -> Lowering:
        """What lowers the graph of a body of a node."""
        where = f"{self.where} / {node!r} / {role}"
        self.inner = Lowering(graph, self.target, where, self.branches)
        self.inner.builder.name = node.name
        return self.inner

    def head(self, node: Node, index: int) -> Value | None:
        """A condition or trip count, which has one element whatever its rank."""
        value = node.input(index)
        return None if value is None else tensor(self.form(value)).at_rank(self.builder, 0)

    def make(
        self, node: Node, inputs: list[Value | None], bodies: tuple[Body, ...], targets: list[Form]
    ) -> None:
        """Makes the lowered If or Loop, which gives the leaves of `targets`."""
        count = sum(len(target.leaves()) for target in targets)
        made = self.builder.node(node.op, inputs, count, {}, bodies, node.name, node.extras)
        self.bind_outputs(node, targets, made.outputs)

    def bind_outputs(self, node: Node, targets: list[Form], values: list[Value]) -> None:
        """Sets the forms of the outputs of a node: `targets` with these leaves."""
        parts = iter(values)
        for old, target in zip(node.outputs, targets, strict=True):
            form = self._settled(content_for(old, target.with_leaves(parts)))
            if isinstance(form, Plain):
                self.rewriter.replace(old, form.value)
            else:
                for leaf, part in zip(form.leaves(), form.leaf_names(), strict=True):
                    leaf.names = [f"{name}.{part}" for name in old.names]
                self.forms[old] = form
