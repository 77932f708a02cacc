"""The models in which each quirk fires.

`python -m tests.quirks --count FOLDER` counts them, `fires.tsv` stores them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bridge.errors import BridgeError
from bridge.quirks import CPU, Quirk, of_engine
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


def said(quirk: Quirk) -> str:
    """The sentence about a quirk in the documentation. Quirks for the GPU plugin alone are not
    counted, so they have no sentence."""
    if CPU not in quirk.engines:
        return ""
    ours, exported = (
        (sum(quirk.name in fires for (of, _), fires in read().items() if of == kind), total)
        for kind, total in Counter(kind for kind, _ in read()).items()
    )
    return (
        f"{ours[0]} of {ours[1]} models of roundtrip_models/, {exported[0]} of {exported[1]} of "
        "exporters"
    )
