"""Ifs whose branches give sequences, optionals or tensors of open rank."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bridge.neutral.captures import Captures
from bridge.neutral.graph import BRANCHES, Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Invariant, Yield
from bridge.passes.fold import FOLD
from bridge.passes.sequences.bodies import BodyLowering
from bridge.passes.sequences.branch_shapes import Exit
from bridge.passes.sequences.form import Fails, Form
from bridge.passes.sequences.join import common
from bridge.passes.sequences.tensors import Open, TensorForm
from bridge.report import PrunedBranch

if TYPE_CHECKING:
    from bridge.passes.sequences.lower import Lowering


class BranchBody(BodyLowering):
    """Lowers a branch of an If. After `run`, `given` has its form for each output of the If."""

    def run(self) -> None:
        """Gives the branch its captures, and lowers its nodes."""
        for value, port in self.body.entries():
            assert isinstance(port, Invariant)
            self.capture(value, port)
        self.inner.run()
        self.values = [self.body.given(index) for index in range(len(self.node.outputs))]
        self.given = [self.inner.form(value) for value in self.values]

    def narrowed(self, form: Open, source: Value) -> Open:
        """A captured tensor with only the shapes that it can have in this branch."""
        truth = self.role == BRANCHES[0]
        shapes = self.outer.branches.shapes_where(source, self.node.operand(0), truth)
        return form if shapes is None else replace(form, shapes=shapes)

    def exits(self) -> list[Exit]:
        """The value for each output of the If, with the possible shapes of a tensor."""
        return [
            (value, form.known_shapes() if isinstance(form, TensorForm) else None)
            for value, form in zip(self.values, self.given, strict=True)
        ]

    def finish(self, targets: list[Form]) -> Body:
        """The lowered branch, with outputs in the structure of `targets`."""
        leaves: list[Value] = []
        with self.inner.builder as b:
            for target, form, output in zip(targets, self.given, self.node.outputs, strict=True):
                leaves += target.hold(b, form, output.name).leaves()
        return self.close((leaf, Yield(number)) for number, leaf in enumerate(leaves))


def lower_if(lowering: Lowering, node: Node) -> None:
    """Lowers an If. If a branch fails whenever it runs, or does not run, the other one takes the
    place of the If."""
    condition = lowering.head(node, 0)
    captures, known = Captures([condition]), known_of(condition).ints
    branches: list[BranchBody] = []
    failed: list[tuple[BranchBody, Fails]] = []
    for role, body in node.roles():
        if known is not None and bool(known[0]) != (role == BRANCHES[0]):
            continue
        branch = BranchBody(lowering, node, role, body, captures)
        try:
            branch.run()
        except Fails as failure:
            failed.append((branch, failure))
        else:
            branches.append(branch)
    if not branches:  # This graph fails wherever it runs.
        branch, why = failed[0]
        lowering.inner = branch.inner
        raise why
    for branch, why in failed:
        where = f"{lowering.where} / {node!r}"
        lowering.pruned.append(PrunedBranch(where, branch.role, f"fails, {why}"))
    for branch in branches:
        lowering.pruned += branch.inner.pruned
    if len(branches) == 1:
        _inline(lowering, node, branches[0])
    else:
        _merge(lowering, node, branches)


def _inline(lowering: Lowering, node: Node, branch: BranchBody) -> None:
    """Puts a branch in the place of its If."""
    targets = branch.given
    body = branch.finish(targets)
    lowered = Node("If", branch.captures.inputs, [Value() for _ in body.outputs], bodies=(body,))
    results = lowering.rewriter.inline(lowering.builder, lowered, body, FOLD)
    leaves = [lowering.own(lowering.rewriter.of(v)) for v in results if v is not None]
    lowering.bind_outputs(node, targets, leaves)


def _merge(lowering: Lowering, node: Node, branches: list[BranchBody]) -> None:
    """Makes an If whose branches give forms of one structure."""
    lowering.branches.leave(node, [branch.exits() for branch in branches])
    one, other = (branch.given for branch in branches)
    names = [value.name for value in node.outputs]
    targets = [common(*forms) for forms in zip(one, other, names, strict=True)]
    bodies = tuple(branch.finish(targets) for branch in branches)
    lowering.make(node, branches[0].captures.inputs, bodies, targets)
