"""Verdicts on models that have not changed since, in a folder: one file of JSON for each.

A verdict has a key: a digest of the models' files, of Bridge's code and of the engines' versions.
It counts while the key is the same. The names of the models and the options name the file.
"""

import hashlib
import json
import os
import pickle
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from bridge.cli.outcome import Outcome
from bridge.cli.output import echo, write_text
from bridge.errors import BridgeError
from bridge.files import opened
from bridge.vocabulary import directory

_ENGINES = ("onnx", "numpy", "onnxruntime", "openvino")
_KEPT = ("equal", "within noise", "different")
_LARGEST = 1 << 26
"""Bytes of an entry."""


class Cache:
    """Outcomes of models in a folder. A note names an entry that cannot be read or kept."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self._folder = folder
        self._limits = options["limits"]
        self._options = pickle.dumps(sorted(options.items())).hex()
        versions = [each.version for name in _ENGINES for each in distributions(name=name)]
        code = {*Path(__file__).parents[1].rglob("*.py"), *directory().iterdir()}
        self._around = [platform.system(), platform.machine(), versions, sorted(map(_digest, code))]

    def key(self, *models: Path) -> str:
        """The key of models, as their files are now; "" if a file cannot be read."""
        import bridge
        from bridge.limits import read_limits, usually

        try:
            with usually(read_limits(self._limits)):
                files = {Path(file) for model in models for file in bridge.load(model).files}
            # A folder that was moved as a whole holds the same models.
            digests = {os.path.relpath(f, models[0].parent): _digest(f) for f in {*models, *files}}
        except Exception:  # The check reports the error.
            return ""
        return _hash([self._around, sorted(digests.items())])

    def find(self, key: str, *models: Path) -> Outcome | None:
        """The outcome that was kept with this key; None if there is none."""
        place = self._place(models)
        try:
            with opened(place) as file:
                entry = json.loads(file.read(_LARGEST))
            outcome = Outcome(**entry["outcome"], cached=True)
            told = type(outcome.text), type(outcome.report), type(outcome.seconds)
            whole = entry["digest"] == _hash([entry["key"], entry["outcome"]])
            if not (whole and told == (str, dict, float) and outcome.verdict in _KEPT):
                raise ValueError("it is not what was written")
            return outcome if entry["key"] == key != "" else None
        except FileNotFoundError:
            return None
        except Exception as why:  # Anything may stand there.
            echo(f"note: {place}: is not used: {why}", aside=True)
            return None

    def keep(self, key: str, outcome: Outcome, *models: Path) -> None:
        """Keeps an outcome, if the models still have the key that they had before the check."""
        if outcome.verdict not in _KEPT or not key or key != self.key(*models):
            return
        place = self._place(models)
        data = {name: value for name, value in asdict(outcome).items() if name != "cached"}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)  # A link that stands there is not followed.
            text = json.dumps({"key": key, "digest": _hash([key, data]), "outcome": data})
            write_text(place, text)
        except (OSError, BridgeError) as why:
            echo(f"note: {place}: cannot be kept: {why}", aside=True)

    def _place(self, models: Sequence[Path]) -> Path:
        return self._folder / f"{_hash([self._options, *map(str, models)])[:32]}.json"


def _digest(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()
