"""The kinds of sources: a file, the bytes of a model, or an object of this or another library.

The module of its type tells whose object it is, so nothing is imported that is not there already.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bridge.errors import UsageError
from bridge.files import source_format
from bridge.files.atomic_write import scratch_folder

if TYPE_CHECKING:
    import onnx

    from bridge.neutral.graph import Model

KINDS = (
    "a path, the bytes of an ONNX model or a binary file with them, an onnx.ModelProto, a pair of "
    "the bytes of .xml and .bin, an openvino.Model, a torch.onnx.ONNXProgram, an onnx_ir.Model, a "
    "function of onnxscript, or a Model that bridge.load gave"
)


SourceKind = Literal["file", "onnx", "pair", "openvino", "model"]


@dataclass(eq=False)
class ClassifiedSource:
    """A source, classified. `held` is, by its `kind`:

    file      the Path of an ONNX model or an IR
    onnx      the bytes of an ONNX model, or an onnx.ModelProto
    pair      the bytes of an IR: its `.xml` and its `.bin`
    openvino  an openvino.Model
    model     a Model
    """

    kind: SourceKind
    held: Any

    @property
    def name(self) -> str:
        """Its name in messages."""
        return str(self.held) if self.kind == "file" else "the model"

    @property
    def format(self) -> str:
        """ "onnx" or "ir"; UsageError for a file of another suffix."""
        if self.kind == "file":
            return source_format(self.held)
        if self.kind == "model":
            return str(self.held.format)
        return "onnx" if self.kind == "onnx" else "ir"

    def written(self, folder: Path) -> Path:
        """Writes a pair or an openvino.Model into a folder; returns the path of the `.xml`."""
        path = folder / "model.xml"
        if self.kind == "pair":
            xml, weights = self.held
            path.write_bytes(xml)
            path.with_suffix(".bin").write_bytes(weights or b"")
        else:
            sys.modules["openvino"].serialize(self.held, str(path))
        return path

    def read_ir(self) -> Model:
        """The Model of a pair or an openvino.Model, with its constants in memory."""
        with scratch_folder() as folder:
            return _kept(self.written(folder))


def classify(source: Any) -> ClassifiedSource:
    """The kind of a source. An object of another library becomes an ONNX model, if it is one or can
    be exported.

    Raises UsageError for a source that is none of `KINDS`.
    """
    if isinstance(source, str | os.PathLike):
        return ClassifiedSource("file", Path(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return ClassifiedSource("onnx", bytes(source))
    if isinstance(source, tuple):
        _require_pair(source)
        return ClassifiedSource("pair", source)
    if hasattr(source, "read") and not hasattr(source, "SerializeToString"):
        return ClassifiedSource("onnx", _of_file(source))
    home, _, _ = type(source).__module__.partition(".")
    if home == "openvino" and hasattr(source, "get_ops") and hasattr(source, "get_parameters"):
        return ClassifiedSource("openvino", source)
    if home == "bridge" and type(source).__name__ == "Model":
        return ClassifiedSource("model", source)
    return ClassifiedSource("onnx", _as_proto(source, home))


def _as_proto(source: Any, home: str) -> Any:
    """The onnx.ModelProto of an object of the library `home`; UsageError if it has none."""
    name = type(source).__name__
    if home == "torch" and hasattr(source, "model_proto"):
        return source.model_proto
    if name == "Model" and _is_onnx_ir(source):
        return _of_onnx_ir(source)
    if home == "onnxscript" and hasattr(source, "to_model_proto"):
        return source.to_model_proto()
    if home == "onnx" and name == "FunctionProto":
        return _of_function(source)
    if home == "onnx" and name == "ModelProto":
        return source
    raise _refused(source)


def described(given: Any) -> str:
    """The description of an unexpected object."""
    return "None" if given is None else f"of type {_type_name(type(given))}"


def _type_name(kind: type) -> str:
    home, _, _ = kind.__module__.partition(".")
    return kind.__name__ if home in ("builtins", "__main__") else f"{home}.{kind.__name__}"


def _refused(source: Any) -> UsageError:
    """The error for a source that is no model, with a better source if one is known."""
    name = _type_name(type(source))
    homes = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    if "torch" in homes:
        return UsageError(
            f"{name} is a model of PyTorch's; export it first: "
            "torch.onnx.export(model, inputs, dynamo=True)"
        )
    if "openvino" in homes and hasattr(source, "get_runtime_model"):
        return UsageError(f"{name} is compiled; give the openvino.Model that was compiled")
    if hasattr(source, "get_inputs") and hasattr(source, "run"):
        return UsageError(f"{name} is a session; give the path of the model that it has loaded")
    return UsageError(f"a model is {KINDS}, not {described(source)}")


def _require_pair(pair: tuple[Any, ...]) -> None:
    """Raises UsageError if a tuple is not the bytes of an IR's `.xml` and of its `.bin`. The second
    may be None if there is no `.bin`."""
    buffers = (bytes, bytearray, memoryview)
    if len(pair) != 2 or not isinstance(pair[0], buffers):
        raise UsageError("a pair is the bytes of an .xml and the bytes of its .bin")
    if pair[1] is not None and not isinstance(pair[1], buffers):
        raise UsageError(f"the second of a pair is the bytes of a .bin, not {described(pair[1])}")


def _kept(path: Path) -> Model:
    """The IR at a path that will be gone: its constants are taken into memory."""
    from bridge.ir_format.frontend import read
    from bridge.neutral.tensor import FileRange, Tensor

    model = read(path)
    weights = memoryview(path.with_suffix(".bin").read_bytes())
    held: dict[int, Tensor] = {}
    for node in model.graph.walk():
        tensor = node.attributes["value"] if node.op == "Constant" else None
        if tensor is not None and isinstance(tensor.source, FileRange):
            start, length = tensor.source.offset, tensor.source.length
            if id(tensor) not in held:
                bytes_ = weights[start : start + length]
                held[id(tensor)] = Tensor(tensor.element, tensor.shape, bytes_)
            node.attributes["value"] = held[id(tensor)]
    model.files.clear()
    return model


def _of_file(file: Any) -> bytes:
    data = file.read()
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError("the file is open as text; open it in binary mode: open(path, 'rb')")
    return bytes(data)


def _is_onnx_ir(source: Any) -> bool:
    return type(source).__module__.startswith(("onnx_ir.", "onnxscript.ir.")) or (
        type(source).__module__ in ("onnx_ir", "onnxscript.ir")
    )


def _of_onnx_ir(source: Any) -> Any:
    """Constants in files are read, since a proto does not say where the files are."""
    library = sys.modules["onnx_ir" if "onnx_ir" in sys.modules else "onnxscript.ir"]
    for name in ("external_data", "_external_data"):
        if hasattr(getattr(library, name, None), "load_to_model"):
            source = getattr(library, name).load_to_model(source.clone())
            break
    return library.serde.serialize_model(source)


def _of_function(function: onnx.FunctionProto) -> onnx.ModelProto:
    """A model that calls a function. The types of its inputs come from the function's value_info.

    Raises UsageError if an input has none."""
    import onnx

    typed = {info.name: info for info in getattr(function, "value_info", ())}
    for name in function.input:
        if name not in typed:
            raise UsageError(
                f"the function '{function.name}' does not say which type its input '{name}' has; "
                "give a model that calls it (of onnxscript: function.to_model_proto())"
            )

    model = onnx.ModelProto(ir_version=10, functions=[function])
    model.opset_import.extend(function.opset_import)
    if function.domain not in [entry.domain for entry in model.opset_import]:
        model.opset_import.add(domain=function.domain, version=1)
    model.graph.name = function.name
    model.graph.node.add(
        op_type=function.name,
        domain=function.domain,
        input=function.input,
        output=function.output,
    )
    model.graph.input.extend(typed[name] for name in function.input)
    for name in function.output:
        model.graph.output.append(typed.get(name, onnx.ValueInfoProto(name=name)))
    return model
