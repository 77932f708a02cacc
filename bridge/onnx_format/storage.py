"""The external data file of an ONNX model."""

from pathlib import Path

import onnx

from bridge.neutral.storage import RangeCopier
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import STRING
from bridge.onnx_format.tensors import write_external
from bridge.onnx_format.wire import copy_tensor

ALIGNMENT = 4096
"""Offsets are multiples of a page, so that the file can be mapped (ONNX, External Data)."""

SMALLEST = 1024
"""Smaller tensors stay in the model: shape inference wants to see them."""


class ExternalData:
    """Lays tensors out in the file that the model calls `location`; each tensor once."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.tensors: list[tuple[int, Tensor]] = []
        self._offsets: dict[int, int] = {}
        self._end = 0

    def takes(self, tensor: Tensor) -> bool:
        """Whether the tensor belongs in the file."""
        return tensor.element is not STRING and tensor.nbytes >= SMALLEST

    def reference(self, tensor: Tensor, proto: onnx.TensorProto) -> None:
        """Makes `proto` a reference to the tensor's place in the file."""
        offset = self._offsets.get(id(tensor))
        if offset is None:
            offset = self._offsets[id(tensor)] = -(-self._end // ALIGNMENT) * ALIGNMENT
            self._end = offset + tensor.nbytes
            self.tensors.append((offset, tensor))
        write_external(tensor, proto, self.location, offset)

    def write(self, path: Path) -> None:
        """Writes the file, a bounded piece at a time."""
        end = 0
        with path.open("wb") as file, RangeCopier(file) as copier:
            for offset, tensor in self.tensors:
                file.write(bytes(offset - end))
                copy_tensor(tensor, file, copier)
                end = offset + tensor.nbytes
