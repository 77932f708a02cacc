"""`-` on the command line: a model from the standard input, or to the standard output.

A stream is one file, so it holds ONNX: an IR is two.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridge.cli.output import echo_json, error_as_json
from bridge.errors import UsageError
from bridge.files.atomic_write import scratch_folder

STREAM = Path("-")
_MOST = 1 << 31


def source_of(path: Path) -> Path | bytes:
    """The model that an argument names: a path, or the content of the standard input."""
    if path != STREAM:
        return path
    data = bytearray()
    while piece := sys.stdin.buffer.read(1 << 20):
        data += piece
        # No field has the number 0, and no ONNX model without files beside it more than 2 GiB.
        if len(data) > _MOST or data[0] == 0:
            raise UsageError("-: is no ONNX model: it begins with a 0, or has more than 2 GiB")
    return bytes(data)


@contextmanager
def destination_of(path: Path) -> Iterator[Path]:
    """The file to write for an argument. For a stream it is a temporary one, which goes to the
    standard output when the block ends well."""
    if path != STREAM:
        yield path
        return
    if sys.stdout.isatty():
        raise UsageError("-: a model is no text for a terminal; send it to a file or a program")
    with scratch_folder() as folder:
        yield folder / "model.onnx"
        with (folder / "model.onnx").open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()


@contextmanager
def errors_aside(wanted: bool) -> Iterator[None]:
    """If it is `wanted`, prints an error in the block as JSON on the standard error, and ends
    the process. The standard output is for the model."""
    try:
        yield
    except Exception as error:
        if not wanted or isinstance(error, OSError):
            raise
        echo_json(error_as_json(error), aside=True)
        sys.exit(2)
