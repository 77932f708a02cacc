"""The models in which each quirk fires.

`python -m tests.quirks --count FOLDER` counts them. `fires.tsv` stores them by model,
`bridge/quirks/counts.py` by quirk.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from bridge.errors import BridgeError
from bridge.quirks import CPU, by_name, counts, of_engine
from tests.quirks.alone import fired
from tests.support.model_files import ONNX_FILES, load_onnx

STORED = Path(__file__).parent / "fires.tsv"
KINDS = ("roundtrip", "exporter")

MADE_OF_THEM = (".again.onnx", ".back.onnx", ".float.onnx")
"""Suffixes of the files that the benchmark makes from exporter files."""


def paths(file: Path) -> list[str]:
    """The quirks that fire in a model, each alone; none if the model is refused before."""
    try:
        return sorted(path for path in fired(load_onnx(file)) if path)
    except BridgeError:
        return []


def write(folder: Path | None) -> None:
    """Counts anew; without a folder of exporter files, their counts stay."""
    files = sorted(folder.glob("*.onnx")) if folder else []
    exported = [file for file in files if not file.name.endswith(MADE_OF_THEM)]
    found = {
        (kind, file.stem): paths(file)
        for kind, files in (("roundtrip", ONNX_FILES), ("exporter", exported))
        for file in files
    }
    if folder is None:
        found |= {key: fires for key, fires in read().items() if key[0] == "exporter"}
    lines = (f"{kind}\t{name}\t{' '.join(fires)}\n" for (kind, name), fires in found.items())
    STORED.write_text("".join(lines), encoding="utf-8")
    Path(counts.__file__).write_text(as_code(found), encoding="utf-8")


def read() -> dict[tuple[str, str], list[str]]:
    """The quirks that fire, by kind of model and name."""
    rows = (line.split("\t") for line in STORED.read_text(encoding="utf-8").splitlines())
    return {(kind, name): fires.split() for kind, name, fires in rows}


def numbers() -> list[tuple[int, int, str]]:
    """The number of models of both kinds in which each quirk of the CPU plugin fires, and its name,
    by these numbers."""
    found = read()
    return sorted(
        (
            *(
                sum(name in fires for (of, _), fires in found.items() if of == kind)
                for kind in KINDS
            ),
            name,
        )
        for name in {quirk.name for quirk in of_engine(CPU)}
    )


def as_code(found: dict[tuple[str, str], list[str]]) -> str:
    """The module with the number of models in which each quirk fires, with new numbers."""
    models = Counter(kind for kind, _ in found)
    by_kind = {
        kind: Counter(path for (of, _), fires in found.items() if of == kind for path in fires)
        for kind in KINDS
    }
    rows = "".join(
        f'    "{name}": ({by_kind["roundtrip"][name]}, {by_kind["exporter"][name]}),\n'
        for name in sorted(quirk.name for quirk in by_name())
        if any(found[name] for found in by_kind.values())
    )
    code = Path(counts.__file__).read_text(encoding="utf-8")
    models_of = f"MODELS = ({models['roundtrip']}, {models['exporter']})\n"
    code = re.sub(r"MODELS = .*\n", models_of, code)
    return re.sub(r"FIRES = \{[^}]*\}\n", f"FIRES = {{\n{rows}}}\n", code)
