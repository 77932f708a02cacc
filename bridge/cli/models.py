"""The models that a command's arguments name: files, folders, patterns."""

import glob
import heapq
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import UsageError
from bridge.files import TEXT_SUFFIXES, opened

_ONNX = (".onnx", *TEXT_SUFFIXES)


@dataclass(frozen=True)
class Job:
    """A model, and the one that it is compared with or becomes."""

    model: Path
    other: Path | None = None


def is_many(given: Sequence[Path]) -> bool:
    """Whether arguments name more than one model and the model to compare it with."""
    return len(given) > 2 or any(path.is_dir() or _is_pattern(path) for path in given)


def found(given: Sequence[Path]) -> dict[Path, Path]:
    """All models that arguments name, each once, with the folder that was given for it: the parent
    of a file, and the part of a pattern before its first wildcard. UsageError if an argument
    names no model."""
    models: dict[Path, Path] = {}
    for path in given:
        named, base = [path], path.parent
        if path.is_dir():
            base = path
            inside = (file for file in path.rglob("*") if not _is_hidden(file.relative_to(path)))
            named = sorted(filter(_is_model, inside))
        elif _is_pattern(path):
            base = next(parent for parent in path.parents if not glob.has_magic(str(parent)))
            named = sorted(filter(_is_model, map(Path, glob.glob(str(path), recursive=True))))
        if not named:
            raise UsageError(
                f"{path}: holds no model; give a file, or a folder or pattern of files that are "
                f"{', '.join(_ONNX)}, or .xml of an IR"
            )
        models |= dict.fromkeys(named, base)
    return models


def sharded(jobs: Sequence[Job], part: str | None) -> list[Job]:
    """The jobs of one part, from a text like `3/8`; all jobs without it. UsageError for other
    texts. The files' sizes balance the parts. All machines divide the same models in the same way.
    """
    if part is None:
        return list(jobs)
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", part, re.ASCII)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {part}: is no part of a whole; write for example 3/8")
    loads = [(0, 0, number) for number in range(1, int(match[2]) + 1)]
    sizes = {job: _size(job) for job in jobs}
    taken = set()
    for job in sorted(jobs, key=lambda job: (-sizes[job], job.model.as_posix())):
        load, count, number = heapq.heappop(loads)
        heapq.heappush(loads, (load + sizes[job], count + 1, number))
        if number == int(match[1]):
            taken.add(job)
    return [job for job in jobs if job in taken]


def _size(job: Job) -> int:
    """The bytes of a model and of the data beside it."""
    model = job.model
    is_xml = model.suffix.lower() == ".xml"
    data = model.with_suffix(".bin") if is_xml else model.with_name(f"{model.name}.data")
    files = (model, data)
    return sum(file.stat().st_size for file in files if file.is_file())


def paired(models: Iterable[Path]) -> list[Job]:
    """Jobs of a check: an IR goes with the ONNX model of its name beside it, others go alone."""
    return list(dict.fromkeys(_pair_of(model) or Job(model) for model in models))


def not_compared(model: Path) -> list[str]:
    """A note on the other file of a pair, which a check of `model` alone leaves out."""
    pair = _pair_of(model)
    if pair is None or pair.other is None:
        return []
    rest = pair.other if pair.model == model else pair.model
    names = [str(pair.model), str(pair.other)]
    ahead = ["--"] if any(name.startswith("-") for name in names) else []
    command = shlex.join(["bridge", "check", *ahead, *names])
    return [f"not compared with {rest.name} beside it: {command}"]


def _pair_of(model: Path) -> Job | None:
    """The ONNX model and the IR with one name, from one of them; None if one is missing."""
    if model.suffix.lower() == ".xml":
        found = _beside(model, _ONNX)
        return Job(found, model) if found else None
    ir = _beside(model, (".xml",)) if model.suffix.lower() in _ONNX else None
    return Job(model, ir) if ir and is_ir(ir) else None


def _beside(model: Path, suffixes: Sequence[str]) -> Path | None:
    """The first file of a model's name with one of the suffixes, in lower or in upper case."""
    forms = (model.with_suffix(form) for s in suffixes for form in (s, s.upper()))
    return next((path for path in forms if path.is_file()), None)


def placed(models: Mapping[Path, Path], folder: Path, stateful: bool = False) -> list[Job]:
    """The conversions to do: each model to the other format, under its name in a folder, and in the
    subfolder that it had in its own. A `stateful` IR that is alone in its folder has the name that
    OpenVINO GenAI wants. UsageError if two results would have one name."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is no directory to write to")
    jobs: dict[Path, Job] = {}
    together = Counter(model.parent for model in models)
    for model, base in models.items():
        suffix = ".onnx" if model.suffix.lower() == ".xml" else ".xml"
        alone = stateful and suffix == ".xml" and together[model.parent] == 1
        stem = _name_for_genai(model) if alone else model.stem
        target = folder / model.relative_to(base).with_name(f"{stem}{suffix}")
        if target in jobs:
            raise UsageError(f"{target}: would be both of {jobs[target].model} and of {model}")
        jobs[target] = Job(model, target)
    return list(jobs.values())


def _name_for_genai(model: Path) -> str:
    """The name of a decoder's IR that OpenVINO GenAI and optimum-intel look for: another one beside
    an encoder."""
    has_encoder = any(model.with_name(f"encoder_model{suffix}").exists() for suffix in _ONNX)
    return "openvino_decoder_model" if has_encoder else "openvino_model"


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path)) and not path.exists()


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_model(file: Path) -> bool:
    """Whether there is a model by the file's name; an `.xml` may be anything."""
    suffix = file.suffix.lower()
    return file.is_file() and (suffix in _ONNX or (suffix == ".xml" and is_ir(file)))


def is_ir(file: Path) -> bool:
    """Whether an `.xml` may be an IR: its first element is called `net`, or cannot be read."""
    from lxml import etree

    try:
        with opened(file) as content:
            for _, root in etree.iterparse(content, ["start"], no_network=True):
                return bool(etree.QName(root).localname == "net")
    except (OSError, ValueError, etree.XMLSyntaxError):
        pass  # The message about it comes with its turn.
    return True
