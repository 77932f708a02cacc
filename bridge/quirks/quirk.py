"""The declaration of a quirk, and the pass for quirks that rewrite single nodes.

A decorator declares a quirk: `@quirk` over a function that writes a node in another way, `@barrier`
over one that says what is hidden from the engine, `@graph_quirk` over a pass of its own. The
function gives the quirk its name. Its docstring says why the graph means the same after the quirk;
that of a barrier says where it fires.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Required, TypedDict, TypeVar, Unpack

from bridge.neutral.builder import Builder, Target
from bridge.neutral.dataflow import Analysis, Fact, Facts
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.rewrite import Pattern, Rewriter
from bridge.neutral.types import BF16, F16, F32, STRING, Element, is_static, size_of
from bridge.operators import Refused, Result
from bridge.options import DeviceName, release_number
from bridge.passes.context import Context
from bridge.passes.legalize import Legalizer, remember
from bridge.passes.wayback.replay import GraphRewrite
from bridge.passes.wayback.undo import Guess, Undo
from bridge.quirks.magnitude import HELD
from bridge.quirks.opaque import SAFE, opaque, with_hidden
from bridge.report import Report

CPU, GPU = "openvino_cpu", "openvino_gpu"
BOTH = (CPU, GPU)

ENGINES = {CPU: "OpenVINO CPU", GPU: "OpenVINO GPU"}
"""The names of the engines."""

NEWEST = "2026.4"
"""The release in which a fault was seen unless its quirk says otherwise."""

RunQuirk = Callable[[Graph, Context], bool | None]
"""Changes a graph and all nested graphs in place. Returns whether it changed any of them; None
means perhaps."""

AnyUndo = TypeVar("AnyUndo", bound=Undo)
AnyGuess = TypeVar("AnyGuess", bound=Guess)


class EngineFault(TypedDict, total=False):
    """A fault of engines.

    `symptom` is a sentence about their behaviour, `cost` the additional work or memory of the
    quirk. `engines` have the fault, `releases` as far as it was seen. `until` is the last release
    with it, if newer releases of the CPU plugin mend it; then the quirk runs there only if the user
    asks for such a release. `issue` is the upstream issue.

    A fault is silent: numbers are wrong, without an error. One that is an error has a quirk only if
    it shows in a published model, `model`: a test of the ONNX standard, or an exporter's.

    The quirk runs after those in `after`, which make what it looks for.
    """

    symptom: Required[str]
    cost: Required[str]
    engines: tuple[str, ...]
    releases: str
    until: str
    issue: str
    model: str
    after: tuple[str, ...]


@dataclass(eq=False, kw_only=True)
class Quirk:
    """A fault of engines (see `EngineFault`), and the pass that avoids it.

    `declared` is the function that is declared as the quirk. `run` rewrites a graph and all nested
    graphs. It finds nothing in a graph without the operators `needs`, if there are any.

    On the way to ONNX, a record restores nodes of the operators `recorded`: it says what the quirk
    replaced, and counts if `run` makes the present nodes of that. For other quirks `undo` restores
    the original nodes, and `guess` makes candidates for them, which count in the same way. The keys
    of both are the operators of the last node that `run` writes.
    """

    declared: Callable[..., object]
    run: RunQuirk
    needs: frozenset[str]
    symptom: str
    cost: str
    engines: tuple[str, ...] = (CPU,)
    releases: str = NEWEST
    until: str = ""
    issue: str = ""
    model: str = ""
    after: tuple[str, ...] = ()
    hides: str = ""
    at: tuple[str, ...] = ()
    recorded: frozenset[str] = frozenset()
    undo: dict[str, Undo] = field(default_factory=dict)
    guess: dict[str, Guess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        QUIRKS[self.name] = self

    @property
    def name(self) -> str:
        """The name of the quirk."""
        return self.declared.__name__

    @property
    def place(self) -> tuple[str, int]:
        """The module of the quirk in this package, and its line there."""
        code = self.declared.__code__
        return self.declared.__module__.removeprefix(ROOT), code.co_firstlineno

    @property
    def file(self) -> str:
        """The file of the quirk, in `bridge/quirks/`."""
        return self.declared.__module__.removeprefix(ROOT).replace(".", "/") + ".py"

    @property
    def fires(self) -> str:
        """The nodes at which the quirk fires: its operators, or what a barrier says of them."""
        others = " and others" if len(self.at) > FEW else ""
        return self._said if self.hides else f"At {', '.join(self.at[:FEW])}{others}."

    @property
    def safe(self) -> str:
        """Why the graph keeps its meaning."""
        return SAFE[self.hides] if self.hides else self._said

    @property
    def engine(self) -> str:
        """The name of the first engine with the fault."""
        return ENGINES[self.engines[0]]

    @property
    def _said(self) -> str:
        return " ".join((self.declared.__doc__ or "").split())

    @property
    def rewrites(self) -> list[GraphRewrite]:
        """What the quirk makes of a graph, for each of its engines."""
        return [self._rewrite("GPU" if engine == GPU else "CPU") for engine in self.engines]

    def _rewrite(self, device: DeviceName) -> GraphRewrite:
        context = Context(Target("ir"), Report(), {"device": device})
        return lambda graph: self.run(graph, context)

    def undoes(self, *ops: str) -> Callable[[AnyUndo], AnyUndo]:
        """Declares an undo, by the operators of the last node that the quirk writes."""

        def declared(undo: AnyUndo) -> AnyUndo:
            self.undo.update(dict.fromkeys(ops, undo))
            return undo

        return declared

    def guesses(self, *ops: str) -> Callable[[AnyGuess], AnyGuess]:
        """Declares a guess, by the operators of the last node that the quirk writes."""

        def declared(guess: AnyGuess) -> AnyGuess:
            self.guess.update(dict.fromkeys(ops, guess))
            return guess

        return declared


QUIRKS: dict[str, Quirk] = {}
"""The quirks of the imported files, by name."""

ROOT = "bridge.quirks."
"""The package of the quirks."""

FEW = 9
"""The most operators that the documentation of a quirk lists."""


class Place(Rewriter):
    """The rewriter of the graph around a node, with the results of analyses."""

    def __init__(self, graph: Graph, *around: Any) -> None:
        super().__init__(graph, *around)
        self._facts: dict[type[Any], Facts[Any]] = {}
        self._outputs: tuple[int, frozenset[Value]] | None = None
        self.guards: bool = self.outer.guards if self.outer is not None else True
        """Whether a clause may guard a Loop.

        False if Ifs become selections. Also false for older releases, since a clause of their own
        guards each Loop that may not run.
        """
        self.fired: list[tuple[str, str]] = self.outer.fired if self.outer is not None else []
        """The name of each quirk that rewrote a node, with the path of the node."""
        self.ifs: bool = self.outer.ifs if self.outer is not None else True
        """Whether a quirk may write an If. False if Ifs become selections."""
        self.engine: str = self.outer.engine if self.outer is not None else CPU
        """The engine whose faults are avoided."""

    def is_output(self, value: Value) -> bool:
        """Whether a value is an output of the graph."""
        outputs = self.graph.outputs
        if self._outputs is None or self._outputs[0] != len(outputs):
            self._outputs = len(outputs), frozenset(outputs)
        return value in self._outputs[1]

    def outside(self, value: Value) -> Value:
        """The value in front of the node around; the same value if this graph makes it."""
        holder, body = self.holder, self.body
        return value if holder is None or body is None else holder.captures(body).get(value, value)

    def facts(self, analysis: type[Analysis[Fact]]) -> Facts[Fact]:
        """The results of an analysis in the outermost graph, at the time of the first call."""
        if self.outer is not None:
            return self.outer.facts(analysis)
        if analysis not in self._facts:
            self._facts[analysis] = Facts(analysis(), self.graph)
        return self._facts[analysis]


ARITHMETIC = ("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub")
"""Arithmetic that OpenVINO fuses into activations and normalizations."""

COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "NotEqual")

ELEMENTWISE = (
    *ARITHMETIC, "Abs", "Acos", "Acosh", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd",
    "BitwiseLeftShift", "BitwiseNot", "BitwiseOr", "BitwiseRightShift", "BitwiseXor", "Ceil",
    "Clip", "Cos", "Cosh", "Elu", "Equal", "Erf", "ErfInv", "Exp", "Floor", "Gelu", "Greater",
    "GreaterOrEqual", "HSigmoid", "HardSigmoid", "HardSwish", "IsFinite", "IsInf", "IsNaN", "Less",
    "LessOrEqual", "Log", "Mish", "Mod", "Neg", "Not", "NotEqual", "Or", "Relu", "Round", "Selu",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "SquaredDifference", "Swish",
    "Tan", "Tanh", "Where", "Xor", "ir::Mod",
)  # fmt: skip
"""The element-wise operators that IR has, with operands that are broadcast to one shape."""

PARTS = ("Gather", "Slice", "StridedSlice", "VariadicSplit", "ir::Split")
"""Operators whose result is a part of their first input."""

RESHAPES = ("Reshape", "Squeeze", "Unsqueeze")
"""Operators that give the same elements another shape."""

MOVES = ("Transpose", *RESHAPES)
"""Operators that give the same elements another shape or order."""

REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum",
)  # fmt: skip
"""The reductions that IR has."""

RECURRENT = (
    "GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence", "RNNCell", "RNNSequence",
)  # fmt: skip
"""The recurrent layers that IR has."""


def may_hold(value: Value, output: Value) -> bool:
    """Whether an output that is computed from a value may use the memory of this value."""
    held = HELD | {BF16: F32, F16: F32}  # Perhaps; it depends on the processor.
    one, other = (held.get(v.element, v.element) for v in (value, output))
    if is_static(value.shape) and is_static(output.shape):
        return one is other and size_of(value.shape) == size_of(output.shape)
    return one is other


def is_computed_in(element: Element) -> bool:
    """Whether the CPU plugin computes in this type. It only stores and converts the other types."""
    return (
        element.bits >= 8 and element is not STRING and (element.bits, element.kind) != (8, "float")
    )


GUARDED = "2026.3"
"""The last release for which the clause `states_without_iteration` guards every Loop that may not
run."""

Rewrite = Callable[[Builder, Node, Place], Result]
"""Returns the new outputs of a node, or None if the fault does not appear."""

Hidden = Callable[[Node, Place], Sequence[bool | str]]
"""Says for each input, or output, of a node whether it is hidden, or what of it is; empty if
nothing is."""

NodeTest = Callable[[Node], bool]


def quirk(
    *ops: str,
    needs: Sequence[str] = (),
    beside: NodeTest | None = None,
    where: NodeTest | None = None,
    uses: bool = False,
    recorded: bool = False,
    **fault: Unpack[EngineFault],
) -> Callable[[Rewrite], Quirk]:
    """Declares a quirk that rewrites nodes of these operators.

    It fires only in a model with an operator of `needs`, and with a node for which `beside` holds.
    For `where`, `uses` and `recorded` see `rewriting`.
    """

    def declared(by: Rewrite) -> Quirk:
        name = by.__name__
        run = rewriting(*ops, by=by, name=name, where=where, uses=uses, recorded=recorded)
        if beside is not None:
            run = _beside(beside, run)
        kept = frozenset(ops if recorded else ())
        wanted = frozenset(needs or ops)
        return Quirk(declared=by, run=run, needs=wanted, at=ops, recorded=kept, **fault)

    return declared


def _beside(holds: NodeTest, run: RunQuirk) -> RunQuirk:
    """A pass only for graphs with such a node."""
    return lambda graph, context: any(map(holds, graph.walk())) and run(graph, context)


def barrier(
    *ops: str,
    hides: str,
    outputs: bool = False,
    needs: Sequence[str] = (),
    beside: NodeTest | None = None,
    uses: bool = False,
    **fault: Unpack[EngineFault],
) -> Callable[[Hidden], Quirk]:
    """Declares a quirk that hides something of the inputs of these operators, or of their
    `outputs`, from the engine. The function says which."""

    def declared(hidden: Hidden) -> Quirk:
        def by(b: Builder, node: Node, place: Place) -> Result:
            wanted = hidden(node, place)
            if not outputs or not any(wanted):
                return with_hidden(b, node, hides, wanted)
            made = b.node(node.op, node.inputs, len(wanted), node.attributes, extras=node.extras)
            pairs = zip(made.outputs, wanted, strict=True)
            return [opaque(b, value, hides) if hide else value for value, hide in pairs]

        run = rewriting(*ops, by=by, name=hidden.__name__, uses=uses)
        if beside is not None:
            run = _beside(beside, run)
        wanted = frozenset(needs or ops)
        return Quirk(declared=hidden, run=run, needs=wanted, hides=hides, at=ops, **fault)

    return declared


def graph_quirk(
    *needs: str, hides: str = "", recorded: Sequence[str] = (), **fault: Unpack[EngineFault]
) -> Callable[[RunQuirk], Quirk]:
    """Declares a quirk that is a pass over the whole graph. It makes records of nodes of the
    operators `recorded`."""
    return lambda run: Quirk(
        declared=run,
        run=run,
        needs=frozenset(needs),
        hides=hides,
        at=needs,
        recorded=frozenset(recorded),
        **fault,
    )


def rewriting(
    *ops: str,
    by: Rewrite,
    name: str = "",
    uses: bool = False,
    where: NodeTest | None = None,
    recorded: bool = False,
) -> RunQuirk:
    """A pass that calls `by` for each node of these operators, innermost bodies first, and expands
    the new nodes.

    `uses` says that `by` needs the readers of a value. The report names each node that was
    rewritten, and the quirk. Without a name, `by` itself adds it to `Place.fired`. With `where`,
    only nodes for which it holds are rewritten, and a model without such a node is not searched
    further. `recorded` says that the new nodes have a record of the old one.
    """

    def run(graph: Graph, context: Context) -> bool:
        if where and not any(node.op in ops and where(node) for node in graph.walk()):
            return False
        legalizer = Legalizer(context.target, "neutral")

        def rewritten(b: Builder, node: Node, place: Place) -> Result:
            if where and not where(node):
                return None
            try:
                result = by(b, node, place)
            except Refused as refused:
                legalizer.report(node, place, str(refused))
                return None
            if result is None:
                return None
            if name:
                place.fired.append((name, place.path(node)))
            results = [result] if isinstance(result, Value) else list(result)
            legalizer.expand(b, node, place)
            made = [result and place.of(result) for result in results]
            used = partial(legalizer.used_in, place.graph) if recorded else lambda: node.outputs
            remember(node, made, b.nodes, used, recorded)
            return results

        place = Place(graph)
        options = context.options
        asked = options.get("openvino")
        old = asked is not None and release_number(asked) <= release_number(GUARDED)
        place.engine = engine_of(context)
        place.ifs = options.get("ifs", "keep") == "keep"
        place.guards = place.ifs and not old
        changed = place.run(Pattern(rewritten, frozenset(ops), context.target, uses=uses))
        legalizer.finish()
        context.report.quirks += place.fired
        return changed

    return run


def engine_of(context: Context) -> str:
    """The engine that the file is for."""
    return f"openvino_{context.options.get('device') or 'CPU'}".lower()


def replace_outputs(
    graph: Graph, context: Context, by: Callable[[Builder, Value], Value | None]
) -> bool:
    """Gives the result of `by` in place of each output of the model, unless it is None. The names
    go with the outputs. Returns whether any output changed."""
    changed = False
    for index, value in enumerate(graph.outputs):
        with Builder(graph.nodes, value.name, context.target) as b:
            made = by(b, value)
        if made is None:
            continue
        made.names, value.names = list(value.names), []
        made.declared = value.declared
        graph.outputs[index] = made
        changed = True
    return changed


def nearest(value: Value | None, op: str, most: int = 12) -> Node | None:
    """The nearest node of an operator among the producers of a value; at most `most` values are
    searched."""
    todo = [value]
    for value in todo:
        made = value.producer if value is not None else None
        if made is not None and made.op == op:
            return made
        if made is not None and len(todo) < most:
            todo += made.inputs
    return None
