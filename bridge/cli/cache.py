"""What came of models that have not changed since, in a folder: a file of JSON for each."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bridge.files import stamp_of
from bridge.release import release

_DECIDES = ("onnx", "numpy", "onnxruntime", "openvino")


class Cache:
    """Answers under keys. An answer counts as long as the files that it rests on hold the same."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self._folder = folder
        self._circumstances = _circumstances(options)

    def find(self, *models: Path) -> Any:
        """The answer about these models; None where there is none that still counts."""
        try:
            entry = json.loads(self._place(models).read_text(encoding="utf-8"))
            files = {Path(name): digest for name, digest in entry["files"].items()}
            return entry["answer"] if digests(files) == entry["files"] else None
        except (OSError, ValueError, KeyError, AttributeError):
            return None

    def keep(self, answer: Any, files: Mapping[str, str], *models: Path) -> None:
        """Keeps an answer that rests on files, which are given with their digests."""
        from bridge.cli.output import write_text

        self._folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"files": dict(files), "answer": answer})
        write_text(self._place(models).resolve(), text)

    def _place(self, models: Iterable[Path]) -> Path:
        text = json.dumps([self._circumstances, *map(str, models)])
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def files_of(*models: Path) -> set[Path]:
    """All files that models are read from; BridgeError where one cannot be read."""
    import bridge

    return {*models, *(Path(file) for model in models for file in bridge.load(model).files)}


def digests(files: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of what files hold, by their paths. OSError where one is not there."""
    found = {}
    for path in sorted(files):
        with path.open("rb") as file:
            found[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _circumstances(options: Mapping[str, Any]) -> list[Any]:
    """All that decides an answer beside the models: options, Bridge's code, and the engines."""
    code = Path(__file__).parents[1]
    stamps = sorted(
        (str(file.relative_to(code)), *stamp_of(file)[2:]) for file in code.rglob("*.py")
    )
    return [
        release(),
        hashlib.sha256(repr(stamps).encode()).hexdigest(),
        [_version(name) for name in _DECIDES],
        {name: _fact(value) for name, value in sorted(options.items())},
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _fact(value: Any) -> Any:
    """What tells an option's value from others. Files count with what they hold."""
    if isinstance(value, Path):
        inside = sorted(value.rglob("*")) if value.is_dir() else [value]
        return [str(value), digests(path for path in inside if path.is_file())]
    return pickle.dumps(value).hex()
