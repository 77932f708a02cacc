"""Preprocessing as layers: type, order of channels, mean, scale and layout of inputs.

Behind an input stand a Cast, a Gather of its channels, a Sub and a Div along them, and a Transpose
into the layout of the model. OpenVINO's PrePostProcessor makes the same. The model's record has the
steps. An IR also has the layout of the input in the rt_info of its port, where OpenVINO looks for
it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bridge.errors import UsageError, amount
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value, names_of_outputs
from bridge.neutral.inference import infer_graph
from bridge.neutral.types import Element, TensorType
from bridge.passes.inputs import inputs_by_name, is_converted
from bridge.records.preprocessing import PREPROCESSED, Preprocessing
from bridge.vocabulary.elements import BY_IR

_LAYOUT = r'<attribute name="layout"[^<>]*/>'
"""The element of a layout in the rt_info of a port."""


def asked_for(model: Model, options: Mapping[str, Any]) -> list[Preprocessing]:
    """The preprocessing that options ask for, by input. UsageError for wrong values."""
    steps: dict[str, Preprocessing] = {}
    by_name = inputs_by_name(model)
    for name, type in (options.get("input_types") or {}).items():
        if is_converted(by_name(name), type):
            steps[name] = Preprocessing(name, element=type)
    for name in options.get("reverse_channels") or ():
        steps.setdefault(name, Preprocessing(name)).reverse = True
    for option in ("mean", "scale", "layout"):
        given = options.get(option)
        if not isinstance(given or {}, Mapping):
            raise UsageError(f"`{option}` maps names of inputs to values; it is {given!r}")
        for name, value in (given or {}).items():
            step = steps.setdefault(name, Preprocessing(name))
            if option == "layout":
                step.model, step.tensor = _layouts(name, value)
            else:
                setattr(step, option, _numbers(option, name, value))
    return list(steps.values())


def _numbers(option: str, name: str, given: Any) -> list[float]:
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        array = np.full((1, 1), np.nan)
    if array.ndim > 1 or not array.size or not np.isfinite(array).all():
        raise UsageError(f'the `{option}` of "{name}" is a number or a list of them, not {given!r}')
    numbers: list[float] = array.reshape(-1).tolist()
    if option == "scale" and 0 in numbers:
        raise UsageError(f'the `scale` of "{name}" has a 0, by which nothing can be divided')
    return numbers


def _layouts(name: str, layout: Any) -> tuple[str, str]:
    """The layouts of the model and of the tensor, from a text like `NCHW` or `NHWC->NCHW`."""
    parts = [re.sub(r"[][,\s]", "", part).upper() for part in str(layout).split("->")]
    fits = all(re.fullmatch(r"[A-Z?]+", part) for part in parts) and len(parts) <= 2
    letters = [sorted(part.replace("?", "")) for part in parts]
    if not fits or any(len(set(of_one)) < len(of_one) for of_one in letters):
        tensor, colon, model = str(layout).partition(":")
        other = f'; where the tensor stands first, as for OVMS, it is "{model}->{tensor}" here'
        raise UsageError(
            f'the `layout` of "{name}" is {layout!r}; it has a letter for each axis, ? for any: '
            f"NCHW, or NHWC->NCHW for a model of NHWC that is fed NCHW{other * bool(colon)}"
        )
    if len(parts) == 2 and (sorted(parts[0]) != sorted(parts[1]) or parts[0].count("?") > 1):
        raise UsageError(f'the `layout` of "{name}" is {layout!r}; both need the same letters')
    return parts[0], parts[-1]


def preprocess(model: Model, steps: Sequence[Preprocessing]) -> None:
    """Puts preprocessing behind inputs, in place, and writes it into the record. UsageError for an
    unknown input, a wrong number of values, and an input whose channels are not known."""
    if not steps:
        return
    by_name = inputs_by_name(model)
    for step in steps:
        value = by_name(step.input)
        _require_tensor(model, value, step)
        _insert(model, value, step)
    infer_graph(model.graph)
    PREPROCESSED.write(model.metadata, [*(PREPROCESSED.read(model.metadata) or []), *steps])


def further_steps(original: Model, other: Model) -> list[Preprocessing]:
    """The preprocessing that the other model has, without the steps of its original. A record
    counts if the model has the layers that it tells of."""
    own = PREPROCESSED.read(original.metadata) or []
    steps = PREPROCESSED.read(other.metadata) or []
    names = {name for value in original.graph.inputs for name in value.names}
    further = steps[len(own) :] if steps[: len(own)] == own else []
    ends: dict[str, Value | None] = {name: v for v in other.graph.inputs for name in v.names}
    found = []
    for step in reversed(further):  # A later step stands before the earlier ones.
        ends[step.input] = end = _behind(other, ends.get(step.input), step)
        found += [step] if end is not None and step.input in names else []
    return found[::-1]


def _behind(model: Model, value: Value | None, step: Preprocessing) -> Value | None:
    """The value behind the layers of a step that stand behind a value, None if they do not."""
    layers: list[tuple[str, list[float]]] = [("Cast", [])] if step.element else []
    layers += [("Gather", [2, 1, 0])] if step.reverse else []
    layers += [("Sub", step.mean)] if step.mean else []
    layers += [("Div", step.scale)] if step.scale else []
    if step.tensor != step.model:
        layers.append(("Transpose", [step.tensor.index(letter) for letter in step.model]))
    for op, numbers in layers:
        readers = [node for node in model.graph.nodes if value in node.inputs]
        if len(readers) != 1 or readers[0].op != op or readers[0].inputs[0] is not value:
            return None
        value = readers[0].outputs[0]
        if not numbers:
            continue
        other = readers[0].inputs[1]
        tensor = other.constant if other is not None else None
        if tensor is None or tensor.size != len(numbers):
            return None
        expected = np.array(numbers).astype(tensor.element.dtype)
        if not np.array_equal(tensor.array().reshape(-1), expected):
            return None
    return value


def _require_tensor(model: Model, value: Value, step: Preprocessing) -> None:
    """Raises UsageError for an input that cannot be preprocessed so."""
    type, name = value.type, step.input
    if not isinstance(type, TensorType) or type.rank is None:
        raise UsageError(
            f'the input "{name}" is {type}: only a tensor of known rank is preprocessed'
        )
    if (step.mean or step.scale) and (type.element is None or type.element.kind != "float"):
        raise UsageError(
            f'the input "{name}" is {type}: `mean` and `scale` are for inputs of floats'
        )
    if step.model and len(step.model) != type.rank:
        raise UsageError(
            f'the input "{name}" is {type}: its `layout` {step.model} is of '
            f"{amount(len(step.model), 'axis', 'axes')}"
        )
    if value in model.defaults:
        raise UsageError(f'the input "{name}" has a default value, which is not preprocessed')


def _insert(model: Model, value: Value, step: Preprocessing) -> None:
    """Makes the nodes behind an input. What read the input reads their result."""
    graph, whole = model.graph, value.tensor
    dims = value.dims
    known = step.model or _layout_of(model, value)
    element = whole.element
    if step.element:
        whole = value.type = value.declared = TensorType(BY_IR[step.element], dims)
    order = [step.model.index(letter) for letter in step.tensor]
    if step.tensor != step.model:
        value.type = value.declared = TensorType(whole.element, tuple(dims[axis] for axis in order))
        known = step.tensor
    made: list[Node] = []
    with Builder(made, f"{step.input}/preprocessing") as b:
        result = _preprocessed(b, value, step, known, element)
    _keep_layout(model, value, known)
    if result is value:
        return
    if value in graph.outputs:
        graph.output_names = names_of_outputs(graph)
        _forget(model, value)
    for node in graph.nodes:
        node.inputs = [result if used is value else used for used in node.inputs]
    graph.outputs = [result if output is value else output for output in graph.outputs]
    graph.prepend(made)


def _forget(model: Model, value: Value) -> None:
    """Drops what the file said of an output that has this name no more."""
    said = model.extras.get("onnx")
    if said is not None:
        notes = {name: note for name, note in said.get("notes", {}).items() if name != value.name}
        model.extras = {**model.extras, "onnx": {**said, "notes": notes}}


def _preprocessed(
    b: Builder, value: Value, step: Preprocessing, layout: str, element: Element | None
) -> Value:
    """An input of this layout as the model takes it, of the model's type."""
    result = b.cast(value, element) if step.element else value
    if step.reverse:
        result = b.op("Gather", result, [2, 1, 0], _channels(value, step.input, layout, 3))
    for op, numbers in (("Sub", step.mean), ("Div", step.scale)):
        if numbers:
            axis = _channels(value, step.input, layout, len(numbers))
            shape = [len(numbers) if at == axis else 1 for at in range(len(value.dims))]
            constant = np.array(numbers, result.known_element.dtype)
            result = b.op(op, result, constant.reshape(shape if len(numbers) > 1 else ()))
    if step.tensor == step.model:
        return result
    return b.transpose(result, *(step.tensor.index(letter) for letter in step.model))


def _channels(value: Value, name: str, layout: str, count: int) -> int | None:
    """The axis of the channels of an input: the layout's C, or without a layout the only axis of
    this size. None for a single number. UsageError where it is not known, or of another size."""
    if count == 1:
        return None
    dims = value.dims
    axis = layout.find("C") if layout else -1
    if not layout:
        fits = [at for at, dim in enumerate(dims) if dim == count]
        axis = fits[0] if len(fits) == 1 else -1
    if axis < 0:
        raise UsageError(
            f'the input "{name}" is {value.type}: which axis has the {count} channels is not '
            f'known; say it with a C in `layout={{"{name}": "NCHW"}}`'
        )
    if isinstance(size := dims[axis], int) and size != count:
        raise UsageError(
            f'the input "{name}" has {amount(size, "channel")}, and was given '
            f"{amount(count, 'value')}"
        )
    return axis


def _layout_of(model: Model, value: Value) -> str:
    """The layout that an IR says of an input; "" if it says none."""
    extras = model.extras.get("ir", {}).get("parameters", {}).get(value, {})
    element = re.search(_LAYOUT, extras.get("port_rt_info", {}).get(("output", 0), ""))
    found = element and re.search(r'\blayout="([^"]*)"', element[0])
    layout = re.sub(r"[][,\s]", "", found[1]).upper() if found else ""
    return layout if len(layout) == len(value.dims) and layout.isalpha() else ""


def _keep_layout(model: Model, value: Value, layout: str) -> None:
    """Keeps the layout of an input in the rt_info of its port, where OpenVINO looks for it."""
    if not layout:
        return
    own = model.extras.setdefault("ir", {}).setdefault("parameters", {})
    extras = own.setdefault(value, {})
    before = extras.get("port_rt_info", {})
    rest = re.sub(_LAYOUT, "", before.get(("output", 0), ""))
    attribute = f'<attribute name="layout" version="0" layout="[{",".join(layout)}]" />'
    extras["port_rt_info"] = {**before, ("output", 0): rest + attribute}
