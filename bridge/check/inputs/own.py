"""A user's own inputs: reads them from files, holds them to a model, and saves those that ran.

A file is an `.npz` with an array for each input, an `.npy` or a picture for the only one, or a
folder in the layout of ONNX's backend tests: `test_data_set_0/input_0.pb`, `output_0.pb`. Of a
sequence `s` an `.npz` has `s.0`, `s.1` and so on; an optional that is absent is left out.
"""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bridge.check.inputs.recipe import Recipe
from bridge.check.inputs.sizes import free_dimensions
from bridge.errors import UsageError, amount
from bridge.files import opened
from bridge.neutral.graph import Model, Value, names_of_outputs
from bridge.neutral.types import Dim, OptionalType, SequenceType, Type, high, innermost, low
from bridge.options import OwnInputs
from bridge.suggestions import unknown

_TAKEN = "an .npz, .npy or picture, or a folder of these, of input_*.pb or of test_data_set_*"
_PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_SUFFIXES = (".npz", ".npy", *_PICTURES)
_DATA_SET = "test_data_set_*"

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's modes by the number of channels."""


@dataclass(frozen=True, eq=False)
class InputSet:
    """Values of a model's inputs by name, and of its outputs where they are given. `where` says
    where they come from."""

    where: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any] = field(default_factory=dict)


GivenInputs = Path | Mapping[str, Any]
"""Where a set of inputs is: a file, a data set's folder, or the mapping itself."""


def require_inputs(recipe: Recipe, model: Model) -> None:
    """Raises UsageError for a size whose key is no open dimension of an input, and for a range
    without any number of the input's type."""
    free = free_dimensions(model)
    for key in recipe.sizes:
        name, _, axis = key.rpartition(".")
        if key not in free and not (axis.isdecimal() and f"{name}.*" in free):
            open = f"open are {', '.join(free)}" if free else "all of them are fixed"
            raise UsageError(f'"{key}" is no open dimension of the inputs; {open}')
    known = {value.name: innermost(value.type).element for value in model.graph.inputs}
    for name, (lowest, highest) in recipe.ranges.items():
        if name not in known:
            raise UsageError(unknown("input", name, known))
        element = known[name]
        if element is None or element.kind not in ("bool", "int", "uint", "float"):
            raise UsageError(f'a range is for numbers; the input "{name}" is of {element}')
        if not element.is_float:
            lowest, highest = math.ceil(lowest), math.floor(highest)
        if not lowest <= highest:
            raise UsageError(f'the range of "{name}" has no number of {element} in it')


def places_of(given: OwnInputs | None) -> list[GivenInputs]:
    """The files, data sets and mappings of a user's inputs. UsageError for any other path."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [given]
    if not isinstance(given, str | os.PathLike):
        return [place for one in given for place in places_of(one)]
    path = Path(given)
    if path.suffix.lower() in _SUFFIXES and path.is_file():
        return [path]
    found = [path] if any(path.glob("input_*.pb")) else []
    for pattern in ("*.npz", "*.npy", *(f"*{suffix}" for suffix in _PICTURES), _DATA_SET):
        found = found or sorted(path.glob(pattern), key=_by_number)
    if not found:
        what = "holds no inputs" if path.exists() else "there is no such file or folder"
        raise UsageError(f"{path}: {what}; inputs are {_TAKEN}")
    return [*found]


def files_of(given: OwnInputs | None) -> list[Path]:
    """The files that inputs are read from."""
    places = [place for place in places_of(given) if isinstance(place, Path)]
    return [file for at in places for file in (at.iterdir() if at.is_dir() else [at])]


def _by_number(path: Path) -> tuple[tuple[str, int], ...]:
    """The key to sort names by that end in numbers."""
    return tuple((text, int(digits or 0)) for text, digits in re.findall(r"(\D+)(\d*)", path.name))


def read_inputs(
    places: Sequence[GivenInputs],
    model: Model,
    fixed: Mapping[str, np.ndarray],
    states: Sequence[Value] = (),
) -> list[InputSet]:
    """The sets of inputs at these places, checked against a model. The inputs in `fixed` are not
    given, the `states` may be given. Raises UsageError if a set does not fit."""
    wanted = [v for v in model.graph.inputs if v not in model.defaults and v.name not in fixed]
    read = (_read(place, number, model, wanted) for number, place in enumerate(places))
    return [_held(one, model, fixed, states) for one in read]


def _read(place: GivenInputs, number: int, model: Model, wanted: Sequence[Value]) -> InputSet:
    if isinstance(place, Mapping):
        return InputSet(f"given input {number}", place)
    if place.is_dir():
        graph = model.graph
        results = [
            Value(value.type, [name])
            for name, value in zip(names_of_outputs(graph), graph.outputs, strict=True)
        ]
        given = _messages(place, "input", graph.inputs), _messages(place, "output", results)
        return InputSet(str(place), *map(dict, given))
    suffix = place.suffix.lower()
    if suffix != ".npz" and len(wanted) != 1:
        names = ", ".join(value.name for value in wanted) or "nothing"
        raise UsageError(f"{place}: is one array, and the model takes {names}; give an .npz")
    if suffix in _PICTURES:
        return InputSet(str(place), {wanted[0].name: _picture(place, wanted[0])})
    try:
        with opened(place) as file:
            read = np.load(file, allow_pickle=False)
            return InputSet(str(place), {wanted[0].name: read} if suffix == ".npy" else dict(read))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{place}: is no {suffix} that can be read: {error}") from None


def _picture(path: Path, value: Value) -> np.ndarray:
    """The numbers of a picture, from 0 to 255, in the type and the layout of an input, which tells
    the channels by an axis of size 1, 3 or 4. A picture gets the height and width that are known.
    UsageError if the input takes no picture, or the file is none."""
    shape, element = innermost(value.type).shape, innermost(value.type).element
    axes = None if shape is None else shape[1:] if len(shape) == 4 else shape
    if axes is None or len(axes) != 3 or not {axes[0], axes[2]} & _MODES.keys():
        raise UsageError(f'{path}: "{value.name}" of {value.type} takes no picture; give an .npz')
    first = axes[0] in _MODES
    channels, height, width = axes if first else (axes[2], *axes[:2])
    try:
        from PIL import Image

        with opened(path) as file, Image.open(file) as image:
            drawn = image.convert(_MODES[channels])  # type: ignore[index]
    except ImportError:
        raise UsageError(f"{path}: a picture is read by Pillow: pip install pillow") from None
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path}: is no picture that can be read: {error}") from None
    known = (width, height) if isinstance(width, int) and isinstance(height, int) else drawn.size
    array = np.asarray(drawn if drawn.size == known else drawn.resize(known))
    array = array.reshape(*array.shape[:2], -1)
    array = array.transpose(2, 0, 1) if first else array
    array = array[None] if len(shape or ()) == 4 else array
    return array.astype(np.uint8 if element is None else element.dtype)


def _messages(folder: Path, role: str, ports: Sequence[Value]) -> Iterator[tuple[str, Any]]:
    """What the files of a data set hold, by name. A file without a known name counts by place."""
    from google.protobuf.message import DecodeError
    from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

    readers: dict[type, tuple[Any, Any]] = {
        SequenceType: (SequenceProto, numpy_helper.to_list),
        OptionalType: (OptionalProto, numpy_helper.to_optional),
    }
    types = {port.name: port.type for port in ports}
    for path in sorted(folder.glob(f"{role}_*.pb"), key=_by_number):
        place = int(path.stem.rpartition("_")[2]) if path.stem[-1].isdecimal() else len(ports)
        if place >= len(ports):
            raise UsageError(f"{path}: the model has {len(ports)} {role}s, counted from 0")
        kind, read = readers.get(type(ports[place].type), (TensorProto, numpy_helper.to_array))
        try:
            with opened(path) as file:
                message = kind.FromString(file.read())
            name = message.name
            if type(types.get(name)) is not type(ports[place].type):
                name = ports[place].name
            yield name, read(message)
        except (OSError, ValueError, TypeError, DecodeError) as error:
            raise UsageError(f"{path}: is no {kind.__name__} that can be read: {error}") from None


def _held(
    given: InputSet, model: Model, fixed: Mapping[str, np.ndarray], states: Sequence[Value]
) -> InputSet:
    """The set with the fixed inputs, if the model takes it."""
    left = dict(given.inputs)
    inputs: dict[str, Any] = {}
    for value in states:
        if found := _taken(left, value):
            inputs[value.name] = _value(value, found, given.where)
    for value in model.graph.inputs:
        found = _taken(left, value)
        if value in model.defaults:
            if found:
                raise UsageError(
                    f'{given.where}: "{value.name}" has a default value, which the conversion '
                    "makes a constant; name it in --input-shape, and it stays an input"
                )
            continue
        if value.name in fixed:
            inputs[value.name] = fixed[value.name]
            if found and not np.array_equal(found[value.name], fixed[value.name]):
                raise UsageError(f'{given.where}: "{value.name}" is fixed to another value')
            continue
        inputs[value.name] = _value(value, found, given.where)
    for name in left:
        known = [value.name for value in model.graph.inputs]
        raise UsageError(f"{given.where}: {unknown('input', name, known)}")
    return InputSet(given.where, inputs, given.outputs)


def _taken(left: dict[str, Any], value: Value) -> dict[str, Any]:
    """Takes the given value of an input, by its names, out of `left`."""
    names = [value.name]
    if isinstance(value.type, SequenceType | OptionalType):
        names += [name for name in left if re.fullmatch(re.escape(value.name) + r"\.\d+", name)]
    return {name: left.pop(name) for name in names if name in left}


def _value(value: Value, found: Mapping[str, Any], where: str) -> Any:
    """The value of one input; UsageError where it does not fit."""
    type, typed = value.type, partial(_typed, value, where)
    if value.name in found:
        return typed(type, found[value.name])
    parts = [found[name] for name in sorted(found, key=lambda name: int(name.rpartition(".")[2]))]
    if isinstance(type, OptionalType):
        return typed(type.item, parts) if parts else None
    if isinstance(type, SequenceType):
        return typed(type, parts)
    raise UsageError(f'{where}: has no value for the input "{value.name}"')


def _typed(value: Value, where: str, type: Type, given: Any) -> Any:
    """A value of an input as the engines take it."""
    if isinstance(type, OptionalType):
        return None if given is None else _typed(value, where, type.item, given)
    if isinstance(type, SequenceType):
        if not isinstance(given, list | tuple):
            raise UsageError(f'{where}: "{value.name}" is a sequence, a list of arrays')
        return [_typed(value, where, type.item, item) for item in given]
    array = _array(value, where, given)
    wanted = innermost(type).shape
    if wanted is None:
        return array
    shown = f'{where}: "{value.name}" has the shape {list(array.shape)}, and the model takes {type}'
    if array.ndim != len(wanted):
        raise UsageError(f"{shown}: {amount(len(wanted), 'dimension')}, not {array.ndim}")
    for axis, (size, dim) in enumerate(zip(array.shape, wanted, strict=True)):
        if not _suits(size, dim):
            raise UsageError(f"{shown}: axis {axis} is {size}, not {dim}")
    return array


def _array(value: Value, where: str, given: Any) -> np.ndarray:
    """The array, if it has the type of the input. Numbers and lists get it."""
    element = innermost(value.type).element
    dtype = None if element is None else np.dtype(element.dtype)
    try:
        numbers = isinstance(given, bool | int | float | list | tuple)
        array = np.asarray(given, dtype if numbers else None)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f'{where}: "{value.name}" is no array of {dtype}: {error}') from None
    if dtype is not None and dtype.kind == "O" and array.dtype.kind in "SU":
        array = array.astype(str).astype(object)
    if dtype is not None and array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # a type that numpy lacks, as it comes out of a file
    if dtype is not None and array.dtype != dtype:
        raise UsageError(
            f'{where}: "{value.name}" is {array.dtype}, and the model takes {dtype}; '
            f'astype("{dtype}") makes it so'
        )
    return array


def _suits(size: int, dim: Dim) -> bool:
    most = high(dim)
    return low(dim) <= size and (most is None or size <= most)


def require_free(folder: Path) -> None:
    """Raises UsageError for a path that is no folder, or a folder with inputs of another check."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is no folder to save inputs in")
    if any(folder.glob("input-*.npz")):
        raise UsageError(f"{folder}: holds inputs of another check; give a new folder")


def save_feeds(
    folder: Path, feeds: Sequence[Mapping[str, Any]], bad: Mapping[int, str]
) -> list[Path]:
    """Writes each input that ran as `input-N.npz`. What is `bad` of one ends its name."""
    folder.mkdir(parents=True, exist_ok=True)
    saved = []
    for number, feed in enumerate(feeds):
        what = f"-{bad[number]}" if number in bad else ""
        saved.append(folder / f"input-{number}{what}.npz")
        save_feed(saved[-1], feed)
    return saved


def save_feed(path: Path, feed: Mapping[str, Any]) -> None:
    """Writes one input as a new `.npz`."""
    with zipfile.ZipFile(path, "x") as file:
        for name, array in _arrays(feed):
            with file.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def _arrays(feed: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    for name, value in feed.items():
        if isinstance(value, list):
            yield from ((f"{name}.{place}", _plain(item)) for place, item in enumerate(value))
        elif value is not None:
            yield name, _plain(value)


def _plain(value: Any) -> np.ndarray:
    """An array that an `.npz` can hold."""
    array = np.asarray(value)
    return array.astype(str) if array.dtype.kind == "O" else array
