"""Random programs that keep states: called several times, reset, and called again.

`python -m tests.programs.state_programs -n 300 --seed 7` prints the programs that are wrong,
refused or do not run. Each is converted with its states as variables. It runs in one request, in
another one, and in the first again after a reset. onnxruntime computes the expected outputs: each
call gets the states that the call before returned. The way back has the inputs and outputs of the
original, and the same numbers.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import onnx
import openvino
from onnx import TensorProto

import bridge
from bridge.check.isolation import LostProcessError, isolated
from bridge.records.state import FIRST_CALLS, FirstCall
from tests.support.running import EXACT, OnnxRuntime, run_request

ELEMENTS = (
    "float", "float", "float16", "double", "int64", "int64", "int32", "int16", "int8", "uint8",
    "uint32", "bool",
)  # fmt: skip
COMPUTED_IN = {
    "float16": "float", "int16": "int32", "int8": "int32", "uint8": "int32", "uint32": "int64",
}  # fmt: skip
"""Types without arithmetic in onnxruntime, and the types to compute in instead."""

SHAPES = ("2", "2,3", "", "1", "b", "b,2", "g,2", "g", "2,g", "o", "o,2")
"""Shapes of states. A number is a known size, b the size of an input, and g a size that grows. An
open size o is the size of an input after the first call."""


@dataclass
class State:
    """A state, and whether its initial value is other than zeros."""

    name: str
    element: str
    shape: str
    started: bool = False

    @property
    def grows(self) -> bool:
        """Whether a call may change its size."""
        return "g" in self.shape

    @property
    def input(self) -> str:
        """The input with which the state is combined."""
        return f"x_{self.element}_{self.shape.replace(',', '_')}"

    def type(self, symbol: str) -> str:
        """The state's type in ONNX's text syntax; `symbol` names a size that no other value has."""
        own = {"g": symbol, "o": f"o{symbol}"}
        dims = [own.get(d, d) for d in self.shape.split(",") if d]
        return f"{self.element}[{','.join(dims)}]" if dims else self.element


@dataclass
class Program:
    """A graph in text syntax. Each state is a pair of an input and an output."""

    text: str
    pairs: Mapping[str, str]

    def model(self) -> onnx.ModelProto:
        """The model."""
        model = onnx.parser.parse_model(self.text)
        onnx.checker.check_model(model)
        return model


@dataclass
class Drawing:
    """The parts of a program drawn so far."""

    rng: Random
    states: list[State]
    nodes: list[str] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"t{self.count}"

    def add(self, text: str) -> str:
        """Adds a node; returns its result."""
        name = self.fresh()
        self.nodes.append(f"{name} = {text}")
        return name

    def flag(self) -> str:
        """A boolean input."""
        self.inputs["f"] = "bool f"
        return "f"

    def input(self, state: State) -> str:
        """The input of the same type as the state."""
        dims = [{"g": "n", "o": "b"}.get(d, d) for d in state.shape.split(",") if d]
        type = f"{state.element}[{','.join(dims)}]" if dims else state.element
        self.inputs[state.input] = f"{type} {state.input}"
        return state.input

    def axis(self, state: State) -> int:
        """The axis along which a state grows."""
        return state.shape.split(",").index("g")

    def computed(self, element: str, op: str, *given: str) -> str:
        """A node of arithmetic, in a type that onnxruntime supports."""
        other = COMPUTED_IN.get(element)
        if other is None:
            return self.add(f"{op} ({', '.join(given)})")
        to = getattr(TensorProto, other.upper())
        inner = [self.add(f"Cast <to = {to}> ({one})") for one in given]
        made = self.add(f"{op} ({', '.join(inner)})")
        return self.add(f"Cast <to = {getattr(TensorProto, element.upper())}> ({made})")

    def with_other(self, element: str, one: str, other: str) -> str:
        """A node on two values of one shape."""
        ops = ("And", "Or", "Xor") if element == "bool" else ("Add", "Max", "Min", "Add")
        return self.computed(element, self.rng.choice(ops), one, other)

    def alone(self, element: str, value: str) -> str:
        """A node on one value."""
        if element == "bool":
            return self.add(f"Not ({value})")
        if element.startswith("uint"):
            return self.computed(element, "Max", value, value)
        return self.computed(element, self.rng.choice(("Neg", "Abs")), value)

    def view(self, state: State, value: str) -> str:
        """The same value, by another node."""
        kind = self.rng.choice(("Identity", "Reshape", "Slice", "Split", "Unsqueeze"))
        if kind == "Identity" or not state.shape:
            return self.add(f"Identity ({value})")
        if kind == "Reshape":
            sizes = self.add(f"Shape ({value})")
            return self.add(f"Reshape <allowzero = 1> ({value}, {sizes})")
        if kind == "Slice":
            return self.add(f"Slice ({value}, zero, big)")
        if kind == "Split" and state.shape.startswith("2"):
            parts = self.fresh(), self.fresh()
            self.nodes.append(f"{', '.join(parts)} = Split <num_outputs = 2, axis = 0> ({value})")
            return self.add(f"Concat <axis = 0> ({parts[self.rng.randrange(2)]}, {parts[1]})")
        raised = self.add(f"Unsqueeze ({value}, zero)")
        return self.add(f"Squeeze ({raised}, zero)")

    def kin(self, state: State) -> list[State]:
        """States of the same type."""
        key = state.element, state.shape
        return [one for one in self.states if (one.element, one.shape) == key]

    def simple(self, state: State) -> str:
        """A next state that no node with a body makes."""
        rng, x, other = self.rng, self.input(state), self.rng.choice(self.kin(state)).name
        form = rng.choice(("step", "step", "delay", "delay", "view", "swap", "keep", "constant"))
        if form == "view":
            return self.view(state, x)
        if form == "delay":
            return rng.choice((x, self.alone(state.element, x)))
        if form == "constant" and state.shape in ("2", "1", ""):
            name = f"c_{state.element}_{state.shape}"
            numbers = ", ".join(("1", "0")[: int(state.shape or 1)])
            self.constants[name] = f"{state.type('')} {name} = {{{numbers}}}"
            return name
        if form == "swap" and "o" not in state.shape:
            return other
        if form == "keep" and "o" not in state.shape:
            return state.name
        if not state.grows:
            return self.with_other(state.element, state.name, x)
        axis = self.axis(state)
        joined = self.add(f"Concat <axis = {axis}> ({other}, {x})")
        if rng.random() < 0.6:
            return joined
        name = f"axis{axis}"
        self.constants[name] = f"int64[1] {name} = {{{axis}}}"
        return self.add(f"Slice ({joined}, last, big, {name})")

    def guarded(self, state: State) -> str:
        """A next state that an If gives; each branch makes it in another simple way."""
        outer, given = self.nodes, []
        for _ in range(2):
            self.nodes = []
            given.append((self.simple(state), self.nodes))
        self.nodes = outer
        branches = []
        for place, (value, nodes) in enumerate(given):
            out = self.fresh()
            lines = " ".join([*nodes, f"{out} = Identity ({value})"])
            branches.append(
                f"{('then', 'else')[place]}_branch = b{out} () => ({state.type('o' + out)} {out}) "
                f"{{ {lines} }}"
            )
        return self.add(f"If ({self.flag()}) < {', '.join(branches)} >")

    def repeated(self, state: State) -> str:
        """A next state that a Loop gives; the Loop may run no iteration."""
        self.inputs["trips"] = "int64 trips"
        x, kind = self.input(state), state.type("l" + self.fresh())
        i, go, s, went, t = (self.fresh() for _ in range(5))
        outer, self.nodes = self.nodes, []
        if state.grows:
            made = self.add(f"Concat <axis = {self.axis(state)}> ({s}, {x})")
        else:
            made = self.with_other(state.element, s, x)
        inner, self.nodes = self.nodes, outer
        lines = " ".join([f"{went} = Identity ({go})", *inner, f"{t} = Identity ({made})"])
        return self.add(
            f"Loop (trips, , {state.name}) <body = b{t} (int64 {i}, bool {go}, {kind} {s}) => "
            f"(bool {went}, {kind} {t}) {{ {lines} }}>"
        )

    def read(self, state: State) -> None:
        """A reader of the state: an output, dead code only, or no reader."""
        rng = self.rng
        form = rng.choice(("itself", "alone", "alone", "with", "with", "dead", "not"))
        if form == "itself":
            made = self.add(f"Identity ({state.name})")
        elif form == "with" and not state.grows:
            made = self.with_other(state.element, state.name, self.input(state))
        elif form == "not":
            return
        else:
            made = self.alone(state.element, state.name)
        if form != "dead":
            name = f"y_{state.name}"
            self.nodes.append(f"{name} = Identity ({made})")
            self.outputs[name] = f"{state.type('m_' + name)} {name}"


def draw(seed: str) -> Program:
    """The program of a seed."""
    rng = Random(seed)
    groups = [(rng.choice(ELEMENTS), rng.choice(SHAPES)) for _ in range(rng.choice((1, 1, 2)))]
    states = [
        State(f"s{place}{number}", element, shape, rng.random() < 0.2)
        for place, (element, shape) in enumerate(groups)
        for number in range(rng.choice((1, 1, 2)))
    ]
    drawing = Drawing(rng, states)
    pairs = {}
    for state in states:
        if rng.random() < 0.5:
            drawing.read(state)
    for state in states:
        forms = (drawing.simple,) * 3 + (drawing.guarded, drawing.repeated)
        made = rng.choice(forms if "o" not in state.shape else forms[:1])(state)
        after = f"{state.name}_next"
        drawing.nodes.append(f"{after} = Identity ({made})")
        drawing.outputs[after] = f"{state.type('a_' + state.name)} {after}"
        pairs[state.name] = after
        if rng.random() < 0.2:
            drawing.outputs[f"again_{state.name}"] = (
                f"{state.type('e_' + state.name)} again_{state.name}"
            )
            drawing.nodes.append(f"again_{state.name} = Identity ({after})")
    for state in states:
        if f"y_{state.name}" not in drawing.outputs:
            drawing.read(state)
    drawing.inputs["z"] = "float[2] z"
    drawing.outputs["last"] = "float[2] last"
    drawing.nodes.append("last = Neg (z)")
    return Program(_text(drawing), pairs)


def _text(drawing: Drawing) -> str:
    """The program in text syntax."""
    befores = [f"{state.type('p_' + state.name)} {state.name}" for state in drawing.states]
    started = [
        f"{state.type('')} {state.name} = {{{', '.join('10'[: int(state.shape or 1)])}}}"
        for state in drawing.states
        if state.started and state.shape in ("2", "1", "")
    ]
    constants = [
        "int64[1] zero = {0}", "int64[1] last_two = {-2}", "int64[1] big = {9223372036854775807}",
        *drawing.constants.values(), *started,
    ]  # fmt: skip
    nodes = " ".join(drawing.nodes).replace(", last, big", ", last_two, big")
    return (
        '<ir_version: 10, opset_import: ["" : 19]>\n'
        f"g ({', '.join([*befores, *drawing.inputs.values()])}) => "
        f"({', '.join(drawing.outputs.values())})\n<{', '.join(constants)}>\n{{ {nodes} }}"
    )


Feed = dict[str, np.ndarray]


def calls(model: onnx.ModelProto, states: Mapping[str, str], seed: int) -> Iterator[Feed]:
    """Inputs of calls in a row, without the states."""
    rng = np.random.default_rng(seed)
    batch = int(rng.integers(1, 4))
    while True:
        sizes = {"b": batch, "n": int(rng.integers(0, 4))}
        feed = {}
        for value in model.graph.input:
            if value.name in states:
                continue
            tensor = value.type.tensor_type
            shape = [d.dim_value or sizes.get(d.dim_param, 0) for d in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            top = 2 if dtype.kind == "b" else 6
            feed[value.name] = rng.integers(0, top, shape).astype(dtype)
        yield feed


def first(
    model: onnx.ModelProto, states: Mapping[str, str], feed: Feed, empty: Set[str] = frozenset()
) -> Feed:
    """The initial values of states; states of open sizes may be `empty`."""
    started = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    batches = {
        d.dim_param: size
        for value in model.graph.input
        if value.name in feed
        for d, size in zip(value.type.tensor_type.shape.dim, feed[value.name].shape, strict=True)
    }
    found = {}
    for value in model.graph.input:
        if value.name not in states:
            continue
        tensor = value.type.tensor_type
        own = {**batches, "b": 0} if value.name in empty else batches
        shape = [d.dim_value or _size(d.dim_param, own) for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        found[value.name] = started.get(value.name, np.zeros(shape, dtype))
    return found


def _starts(model: onnx.ModelProto, states: Mapping[str, str]) -> Iterator[Set[str]]:
    """The sets of states of open sizes that are empty at first: such a state may have any size."""
    open = [
        value.name
        for value in model.graph.input
        if value.name in states
        if any(d.dim_param.startswith("o") for d in value.type.tensor_type.shape.dim)
    ]
    for kept in product((True, False), repeat=len(open)):
        yield {name for name, is_kept in zip(open, kept, strict=True) if not is_kept}


def _size(symbol: str, sizes: Mapping[str, int]) -> int:
    """The number for a symbol; an open size is the size of its input."""
    return sizes["b"] if symbol.startswith("o") else sizes.get(symbol, 0)


def fault_of(program: Program, folder: Path) -> str:
    """The fault of a program: "" if there is none, "refused: …" if it is not converted."""
    model, path = program.model(), folder / "a.xml"
    try:
        bridge.convert(model, path, stateful=dict(program.pairs))
    except bridge.BridgeError as error:
        return f"refused: {' '.join(str(error).split())}"
    original, said = OnnxRuntime(model), FIRST_CALLS.read(bridge.load(path).metadata) or []
    try:
        compiled = openvino.Core().compile_model(path, "CPU", {**EXACT, "INFERENCE_NUM_THREADS": 1})
    except RuntimeError as error:
        return f"does not compile: {' '.join(str(error).split())[-200:]}"
    used, fresh = compiled.create_infer_request(), compiled.create_infer_request()
    for number, request in enumerate((used, fresh, used)):
        fault = min(
            _fault_of_row(request, original, model, program.pairs, number, said, empty)
            for empty in _starts(model, program.pairs)
        )
        if fault:
            return f"{('used', 'fresh', 'reset')[number]} request, {fault}"
    gone = {one.flag for one in said}
    return _fault_of_way_back(model, original, path, program.pairs, gone)


def _fault_of_row(
    request: openvino.InferRequest,
    original: OnnxRuntime,
    model: onnx.ModelProto,
    pairs: Mapping[str, str],
    seed: int,
    said: Sequence[FirstCall] = (),
    empty: Set[str] = frozenset(),
) -> str:
    request.reset_state()
    names = [value.name for value in model.graph.output]
    held = {state.name for state in request.query_state()}
    taken = {value.name for value in model.graph.input}
    ports = [next(iter(taken & port.get_names())) for port in request.model_inputs]
    gone = {after for before, after in pairs.items() if before + after in held}
    kept = [name for name in names if name not in gone]
    states: Feed = {}
    for call, feed in zip(range(4), calls(model, pairs, seed), strict=False):
        given = feed | (states or first(model, pairs, feed, empty))
        given |= {one.flag: np.array((given[one.state].size > 0) is one.later) for one in said}
        try:
            wanted = dict(zip(names, original.run(given), strict=True))
        except Exception as error:  # the original does not accept such a state
            return f"the original fails: {error}"
        try:
            found = dict(
                zip(
                    kept,
                    run_request(request, [given[n].astype(given[n].dtype.name) for n in ports]),
                    strict=True,
                )
            )
        except RuntimeError as error:
            return f"call {call}: {' '.join(str(error).split())[-200:]}"
        for name, value in found.items():
            if value.shape != wanted[name].shape or not np.array_equal(value, wanted[name]):
                return f"call {call}: wrong {name}: {value.tolist()} is not {wanted[name].tolist()}"
        states = {name: wanted[after] for name, after in pairs.items()}
    return ""


def _fault_of_way_back(
    model: onnx.ModelProto,
    original: OnnxRuntime,
    path: Path,
    pairs: Mapping[str, str],
    gone: Set[str],
) -> str:
    back = bridge.to_onnx(path)
    for kind in ("input", "output"):
        before, after = (
            [
                (v.name, v.type.tensor_type.elem_type)
                for v in getattr(one.graph, kind)
                if v.name not in gone
            ]
            for one in (model, back)
        )
        if before != after:
            return f"way back, {kind}s: {after} is not {before}"
    if gone & {value.name for value in model.graph.input} - pairs.keys():
        return ""  # The way back has no such input: only the states have that size.
    feed = next(calls(model, pairs, 9))
    given, again = feed | first(model, pairs, feed), OnnxRuntime(back)
    taken = {value.name for value in back.graph.input}
    kept = {name: value for name, value in given.items() if name in taken}
    for value, wanted in zip(again.run(kept), original.run(given), strict=True):
        if value.dtype != wanted.dtype or not np.array_equal(value, wanted):
            return f"way back: {value.tolist()} is not {wanted.tolist()}"
    return ""


def checked(seed: str) -> str:
    """The fault of the program of a seed; see `fault_of`."""
    with tempfile.TemporaryDirectory() as folder:
        return fault_of(draw(seed), Path(folder))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws programs and prints the faulty ones."""
    from tests.programs import state_programs  # Another process finds it by its name.

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--isolated", action="store_true", help="a process for each program")
    asked = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    for number in range(asked.n):
        seed = f"{asked.seed}.{number}"
        program = draw(seed)
        try:
            apart = partial(isolated, state_programs.checked, seconds=100)
            fault = (apart if asked.isolated else checked)(seed)
        except LostProcessError as error:
            fault = f"ends the process: {error}"
        except Exception as error:  # a fault of Bridge or of the generator
            fault = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        counts["refused" if fault.startswith("refused") else "wrong" if fault else "right"] += 1
        if fault:
            print(f"-- {seed}: {fault}\n{program.text}\n", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
