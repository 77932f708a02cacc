"""Operators of IR with constants and attributes that no valid file has.

Nobody checks an IR before Bridge reads it. The cases are the tables of tests. Each is written with
every input but the first as a constant; then one constant or one attribute at a time becomes odd.

    python -m tests.operators.odd_constants [-k PART] [--every N] [--from N]

prints each exception other than BridgeError. Without `--every`, about 60,000 files are converted.
"""

from __future__ import annotations

import argparse
import resource
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from lxml import etree

import bridge
from tests.operators import test_ir_elementwise, test_ir_matmul, test_ir_nn, test_ir_shape

LEAST, MOST = -(1 << 63), (1 << 63) - 1

NUMBERS: dict[str, tuple[Any, ...]] = {
    "i": (-1, 0, 1, 2, -7, 99, 1 << 33, MOST, LEAST),
    "u": (0, 1, 2, 99, 1 << 33, MOST),
    "b": (False, True),
    "f": (-1.5, 0.0, 0.5, 2.5, 3e38, float("nan"), float("inf"), float("-inf")),
}
"""Odd numbers by the kind of the element type. A shorter type keeps their low bits."""

SHAPES = ("", "0", "1", "3", "1,1", "2,2,2", "0,2", "1,1,1,1,1,1,1")

TEXTS = (
    "-1", "0", "1", "99", str(MOST), str(LEAST), str(1 << 70), "nan", "inf", "-1.5", "", "x",
    "0,0", "-1,-1", "1,2,3,4,5,6,7", f"{MOST},{MOST}",
)  # fmt: skip

Edit = tuple[int, str, Any]
"""One change: the layer's index; "numbers", "shape" or the name of an attribute; its new
content."""


@dataclass(frozen=True)
class Ir:
    """The `.xml` and `.bin` of a case."""

    text: bytes
    weights: bytes


@cache
def cases() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """The cases of all tables of operators of IR."""
    return {
        f"{module.__name__.rpartition('_')[2]} {name}": (case[0], case[1])
        for module in (test_ir_elementwise, test_ir_matmul, test_ir_nn, test_ir_shape)
        for name, case in module.CASES.items()
    }


@cache
def of_constants(name: str) -> Ir | None:
    """A case with all inputs but the first as constants; the case as it is if OpenVINO refuses
    that."""
    make, arguments = cases()[name]
    for all_constant in (True, False):
        nodes, parameters = [], []
        for place, argument in enumerate(arguments):
            array = np.asarray(getattr(argument, "value", argument))
            if not isinstance(argument, np.ndarray) or (all_constant and place):
                nodes.append(ov.op.Constant(ov.Tensor(np.array(array, order="C"))))
            else:
                parameters.append(ov.op.Parameter(ov.Type(array.dtype), ov.Shape(array.shape)))
                nodes.append(parameters[-1])
        try:
            outputs = make(*(node.output(0) for node in nodes)).outputs()
            model = ov.Model([ov.op.Result(output) for output in outputs], parameters)
        except (RuntimeError, TypeError, AttributeError):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.xml"
            ov.serialize(model, path)
            return Ir(path.read_bytes(), path.with_suffix(".bin").read_bytes())
    return None


def _dtype(element: str) -> np.dtype[Any]:
    """The type of a Const's numbers; bytes for types that numpy lacks."""
    names = {"boolean": "?", **{f"f{8 * n}": f"f{n}" for n in (2, 4, 8)}}
    names |= {f"{kind}{8 * n}": f"{kind}{n}" for kind in "iu" for n in (1, 2, 4, 8)}
    return np.dtype(names.get(element, "u1"))


def edits(ir: Ir) -> Iterator[Edit]:
    """All changes of one place."""
    for index, layer in enumerate(etree.fromstring(ir.text).iter("layer")):
        data = layer.find("data")
        if data is None or layer.get("type") in ("Parameter", "Result"):
            continue
        if layer.get("type") == "Const":
            for number in NUMBERS[_dtype(data.get("element_type")).kind]:
                yield index, "numbers", number
            for shape in SHAPES:
                yield index, "shape", shape
            continue
        for name in data.attrib:
            for text in (*TEXTS, None):
                yield index, name, text


def edited(ir: Ir, edit: Edit) -> tuple[bytes, bytes]:
    """The files with one change; an attribute of None is removed."""
    index, what, to = edit
    root, weights = etree.fromstring(ir.text), ir.weights
    data = list(root.iter("layer"))[index].find("data")
    if what in ("numbers", "shape") and data.get("offset") is not None:
        dtype = _dtype(data.get("element_type"))
        start, size = int(data.get("offset")), int(data.get("size"))
        array = np.frombuffer(weights, dtype, size // dtype.itemsize, start)
        if what == "numbers":
            with np.errstate(all="ignore"):
                array = np.full(array.size, to).astype(dtype)
        else:
            data.set("shape", to)
            count = np.prod([int(n) for n in to.split(",") if n], dtype=int)
            array = np.resize(array if array.size else np.zeros(1, dtype), count)
        data.set("offset", str(len(weights)))
        data.set("size", str(array.nbytes))
        weights += array.tobytes()
    elif to is None:
        del data.attrib[what]
    else:
        data.set(what, to)
    return etree.tostring(root), weights


@contextmanager
def little_time(seconds: int) -> Iterator[None]:
    """Raises TimeoutError if the block takes longer."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"takes more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fault(ir: Ir, edit: Edit) -> str | None:
    """The fault in reading the files, if any: an exception of another kind, and its place."""
    try:
        with little_time(5):
            bridge.to_onnx(edited(ir, edit))
    except bridge.BridgeError as error:
        return str(error) if "did not foresee" in str(error) else None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/bridge/" in frame.filename][-1]
        place = f"{own.filename.rpartition('/bridge/')[2]}:{own.lineno}"
        return f"{type(error).__name__}: {error} ({place})"
    return None


def main() -> None:
    """Prints each fault once, with the first file that has it and the number of files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="the cases with this text in their names")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    found: Counter[str] = Counter()
    tried = 0
    for name in cases():
        ir = of_constants(name) if arguments.k in name else None
        for edit in edits(ir) if ir is not None else ():
            tried += 1
            if tried % arguments.every != arguments.first % arguments.every:
                continue
            wrong = fault(ir, edit)
            if wrong is None:
                continue
            key = wrong.rpartition("(")[2]
            if not found[key]:
                print(f"{name} {edit}: {wrong}", flush=True)
            found[key] += 1
    print(f"{tried} files; {sum(found.values())} faults at {len(found)} places")
    for key, count in found.most_common():
        print(f"{count:6} {key.rstrip(')')}")


if __name__ == "__main__":
    main()
