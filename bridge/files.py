"""The files of models: what their suffixes say, what goes beside them, and how a conversion writes
them: each whole or not at all, and never over constants that a model still needs."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.errors import UsageError
from bridge.hints import about_suffix

if TYPE_CHECKING:
    from bridge.neutral.graph import Model


TEXT_SUFFIXES = (".onnxtxt", ".textproto")
"""Of ONNX models in text, in ONNX's own syntax and in protobuf's, which are only read."""


def format_of(path: Path) -> str:
    """ "onnx" or "ir" by the file's suffix; UsageError for others."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return "onnx"
    if suffix == ".xml":
        return "ir"
    raise UsageError(f"{path}: is neither .onnx nor .xml; {about_suffix(path, ('.onnx', '.xml'))}")


def source_format(path: Path) -> str:
    """Like `format_of`, for what is read: models in text too."""
    return "onnx" if path.suffix.lower() in TEXT_SUFFIXES else format_of(path)


def companion(target: Path) -> Path:
    """Where constants of a model go that are not in its own file."""
    if format_of(target) == "onnx":
        return target.with_name(f"{target.name}.data")
    return target.with_suffix(".bin")


def require_place(target: Path) -> None:
    """Raises UsageError where no file can be called `target`."""
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such directory to write to")
    for path in (target, companion(target)):
        if path.exists() and not path.is_file():
            what = "a directory" if path.is_dir() else "no regular file"
            raise UsageError(f"{path}: is {what}; choose another name for the destination")


def keep_sources(model: Model, source: Path, target: Path) -> None:
    """Raises UsageError where writing `target` would overwrite constants of another model."""
    if source.exists() and target.exists() and source.samefile(target):
        return
    for written in (target, companion(target)):
        if holds_constants(written, model):
            raise UsageError(
                f"{written}: would be overwritten, but it holds the constants of {source}; choose "
                "another name or directory for the destination"
            )


def holds_constants(path: Path, model: Model) -> bool:
    """Whether constants of the model are in the file at `path`."""
    from bridge.neutral.tensor import FileRange

    tensors = [n.attributes["value"] for n in model.graph.walk() if n.op == "Constant"]
    files = {t.source.path for t in tensors if isinstance(t.source, FileRange)}
    return path.exists() and any(path.samefile(file) for file in files)


@contextmanager
def whole(*targets: Path) -> Iterator[list[Path]]:
    """Temporary paths beside the targets, renamed onto them when the block ends well. A target
    that is a link stays one: the file that it leads to is replaced. What the system refuses
    meanwhile (no permission, no space left) is a UsageError."""
    try:
        files = [target.resolve() for target in targets]
        with ExitStack() as stack:
            folders: dict[Path, Path] = {}
            for file in files:
                if file.parent not in folders:
                    folder = tempfile.TemporaryDirectory(prefix=".bridge-", dir=file.parent)
                    folders[file.parent] = Path(stack.enter_context(folder))
            parts = [folders[file.parent] / file.name for file in files]
            yield parts
            _put_in_place(parts, files)
    except OSError as error:
        raise UsageError(f"{targets[0]}: cannot be written: {error.strerror or error}") from error


def _put_in_place(parts: Sequence[Path], targets: Sequence[Path]) -> None:
    """Renames new files to where they belong, those that stood there aside first: so a failure at
    the second file does not leave the first one changed, and ext4 does not write a new file out
    before it takes an old one's name. A new file has the permissions of the old one."""
    moved: list[tuple[Path, Path]] = []
    made: list[Path] = []
    try:
        # The file that names the others comes last.
        for part, target in reversed(list(zip(parts, targets, strict=True))):
            if not part.exists():
                continue
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
                moved.append((part.with_name(f"{part.name}.old"), target))
                os.rename(target, moved[-1][0])
            else:
                made.append(target)
            os.rename(part, target)
    except BaseException:  # also where somebody interrupts
        for old, target in moved:
            if old.exists():
                os.replace(old, target)
        for target in made:
            target.unlink(missing_ok=True)
        raise
