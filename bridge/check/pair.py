"""The two files of a check, and the same change made to both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import bridge
from bridge.check.bisect import Load
from bridge.check.device import for_device, is_elsewhere
from bridge.check.engines import Session
from bridge.check.engines.sessions import BY_THREADS
from bridge.check.files import FileFacts, facts, read
from bridge.check.loading import load
from bridge.check.taps import GraphPath, Spot, expose
from bridge.errors import BridgeError, UsageError
from bridge.files import TEXT_SUFFIXES, companion
from bridge.library.boundary import Boundary
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model
from bridge.neutral.tensor import FileRange
from bridge.onnx_format import text
from bridge.options import ConvertOptions
from bridge.passes.boundary import give_types, override_shapes
from bridge.passes.compress import compress
from bridge.passes.preprocess import asked_for, further_steps, preprocess
from bridge.passes.state.records import STATEFUL

_SEEN = 4  # pairs of loaded models that are kept

Models = tuple[Model, Model | None]
"""The source, and the other model; None if the other is converted from the source."""


@dataclass
class Pair:
    """The file that is checked, the files that it is compared with, and how to change all alike.
    The change is made to the neutral graph and goes through the same conversions."""

    source: Path
    against: Path | None
    scratch: Path
    options: ConvertOptions
    weights: Path | None
    notes: list[str]
    pruned: list[str] = field(default_factory=list)
    facts: dict[str, tuple[FileFacts, ...]] = field(default_factory=dict)
    _seen: dict[str, tuple[Models, Load]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role, path in (("source", self.source), ("against", self.against)):
            if path is not None:
                if not path.is_file():
                    raise UsageError(f"{path}: there is no such file")
                self.facts[role] = facts(path, self._constants(path))
        self.source = _binary(self.source, self.scratch)
        self.against = None if self.against is None else _binary(self.against, self.scratch)
        self._give_weights()
        self._begin_with_original()
        self._preprocess()
        self._begin_with_onnx()
        self._complete_inputs()
        self.other_suffix = ".onnx" if self.source.suffix.lower() == ".xml" else ".xml"
        self._round_weights()

    def both(self) -> Models:
        """Copies of the source and of the other model, to be changed."""
        return self.load(self.source), None if self.against is None else self.load(self.against)

    def load(self, path: Path) -> Model:
        """The model in a file, to be changed."""
        return clone_model(self.loaded(path))

    def loaded(self, path: Path) -> Model:
        """The model in a file, not to be changed."""
        return read(path)

    @property
    def threads(self) -> int | None:
        """How many threads engines may have, None if the results do not depend on that."""
        with suppress(BridgeError):  # which the conversion tells
            for path in (self.source, self.against):
                nodes = [] if path is None else self.loaded(path).graph.walk()
                if any(node.op in BY_THREADS for node in nodes):
                    return 1
        return None

    def _constants(self, path: Path) -> Iterable[Path]:
        """The files beside a model's own that its constants are in."""
        if path.suffix.lower() == ".xml":
            return [self.weights or companion(path)]
        if path.suffix.lower() in TEXT_SUFFIXES:
            return []
        try:
            nodes = self.loaded(path).graph.walk()
        except BridgeError:  # which the check tells when it goes on
            return []
        sources = [node.attributes["value"].source for node in nodes if node.op == "Constant"]
        return {Path(source.path) for source in sources if isinstance(source, FileRange)}

    def _give_weights(self) -> None:
        """Shows the IR that `weights` belongs to with that file beside it."""
        if self.weights is None:
            return
        if not self.weights.is_file():
            raise UsageError(f"{self.weights}: there is no such file")
        folder = self.scratch / "given"
        folder.mkdir()
        for role in ("source", "against"):
            path = getattr(self, role)
            if path is not None and path.suffix.lower() == ".xml":
                link = folder / path.name
                link.symlink_to(path.absolute())
                link.with_suffix(".bin").symlink_to(self.weights.absolute())
                setattr(self, role, link)
                return
        raise UsageError(f"{self.source}: only an IR (.xml) has its weights in a .bin")

    def _begin_with_original(self) -> None:
        """A specialized form has too few inputs to hold its original to."""
        if self.against is not None:
            from bridge.check.specialized import is_form_of

            source, against = self.loaded(self.source), self.loaded(self.against)
            if is_form_of(source, against):
                self._swap("is a specialized form")
            elif further_steps(against, source):
                self._swap("preprocesses its inputs")

    def _preprocess(self) -> None:
        """Gives the source the preprocessing that the other model has, or gets, so that both take
        the same inputs."""
        asked = dict(self.options)
        given: list[Any] = [asked.pop(name, None) for name in ("mean", "scale", "layout")]
        self.options = cast(ConvertOptions, asked)
        steps = asked_for(*given)
        if self.against is not None:
            steps = further_steps(self.loaded(self.source), self.loaded(self.against))
        if not steps:
            return
        model = self.load(self.source)
        preprocess(model, steps)
        (self.scratch / "preprocessed").mkdir()
        self.source = self.rewritten(self.source, model, f"preprocessed/{self.source.stem}")
        names = ", ".join(f'"{step.input}"' for step in steps)
        self.notes.append(f"the original is fed the preprocessed inputs: {names}")

    def _swap(self, why: str) -> None:
        """Holds the first file to the second."""
        assert self.against is not None
        self.source, self.against = self.against, self.source
        self.facts = {"source": self.facts["against"], "against": self.facts["source"]}
        self.notes.append(
            f"{self.against.name} {why}, so that it is held to {self.source.name} and not the "
            "other way round"
        )

    def _begin_with_onnx(self) -> None:
        """Sequences, optionals and strings are drawn for an ONNX model; an IR has their tensors."""
        if self.source.suffix.lower() != ".xml":
            return
        boundary = Boundary.of(self.source)
        if not (boundary.inputs or boundary.vocabularies.inputs):
            return
        if self.against is None or self.against.suffix.lower() == ".xml":
            raise UsageError(
                f"{self.source}: its inputs stand for sequences, optionals or strings; "
                "check the ONNX model instead, with this file as the other one"
            )
        self._swap("has inputs that stand for sequences, optionals or strings")

    def _complete_inputs(self) -> None:
        """Gives inputs of an IR the types and ranks that the file leaves open, if the user said
        them: OpenVINO does not run it without."""
        types = self.options.get("input_types") or {}
        shapes = self.options.get("input_shapes") or {}
        for role in ("source", "against") if types or shapes else ():
            path = getattr(self, role)
            if path is None or path.suffix.lower() != ".xml":
                continue
            model = self.load(path)
            open_inputs = [v for v in model.graph.inputs if v.element is None or v.shape is None]
            if open_inputs:
                give_types(model, types)
                override_shapes(model, shapes)
                (self.scratch / "completed").mkdir()
                setattr(self, role, self.rewritten(path, model, f"completed/{path.stem}"))

    def _round_weights(self) -> None:
        """Rounds weights if one file has them as f16. The files can only be compared with the same
        weights. The engines compute in f32 with both."""
        if self.against is None:
            rounded = ["source"] if self.options.get("compress_to_fp16") else []
        else:
            stored = {
                role: _has_halves(self.loaded(getattr(self, role)))
                for role in ("source", "against")
            }
            rounded = [role for role, has in stored.items() if not has and any(stored.values())]
        for role in rounded:
            path = getattr(self, role)
            model = self.load(path)
            compress(model)
            (self.scratch / "rounded").mkdir()
            setattr(self, role, self.rewritten(path, model, f"rounded/{path.stem}"))
            self.notes.append(f"the weights of {path.name} are rounded to f16, as the other's are")

    def converted(self, name: str, model: Model | None = None) -> Iterator[tuple[str, Path]]:
        """The source, or a changed `model` of it, in the other format, then back again, with what
        each is called."""
        there = self.scratch / f"{name}{self.other_suffix}"
        back = self.scratch / f"{name}-back{self.source.suffix.lower()}"
        kinds = {".onnx": "ONNX", ".xml": "IR"}
        here, other = kinds[self.source.suffix.lower()], kinds[self.other_suffix]
        source = model or self.loaded(self.source)
        self.pruned.extend(bridge.convert(source, there, **self._options_for(there)).pruned)
        yield f"{here} → {other}", (model and self.worked_round(there)) or there
        returning = {} if there.suffix == ".xml" else for_device(self.options)
        if returning:  # ONNX has no ranges of sizes, which devices may want.
            shapes = {value.name: value.shape for value in source.graph.inputs if value.shape}
            returning["input_shapes"] = shapes
        states = STATEFUL.read(source.metadata)
        if back.suffix == ".xml" and states is not None:
            returning["stateful"] = {pair.input: pair.output for pair in states.pairs}
            returning["beam_idx"] = states.beams
        self.pruned.extend(
            bridge.convert(self.loaded(there), back, **cast(ConvertOptions, returning)).pruned
        )
        yield f"{here} → {other} → {here}", (model and self.worked_round(back)) or back

    def worked_round(self, path: Path) -> Path | None:
        """An IR for another device, with workarounds for the CPU plugin, which runs it here. None
        for other files, and for an IR that Bridge did not make of ONNX."""
        model = self.loaded(path) if path.suffix == ".xml" and is_elsewhere(self.options) else None
        if model is None or model.opset is None:
            return None
        target = path.with_name(f"{path.stem}-worked-round.xml")
        shapes = {value.name: value.shape for value in model.graph.inputs if value.shape}
        bridge.save(clone_model(model), self.scratch / target.name, input_shapes=shapes)
        return self.scratch / target.name

    def for_part(self, part: Model) -> Pair:
        """The same pair for a part of the source. Options that name missing inputs or outputs are
        left out."""
        ends = {value.name for value in part.graph.inputs} | {*part.graph.output_names}
        options: dict[str, Any] = {
            **self.options, "stateful": False, "beam_idx": False, "one_decoder": False
        }  # fmt: skip
        for name in ("input_shapes", "values", "output_ranks"):
            given = options.get(name) or {}
            options[name] = {key: given[key] for key in given if key in ends} or None
        found = copy(self)
        found.options, found.pruned = cast(ConvertOptions, options), []
        found._seen = {}
        return found

    def convert_alike(self) -> None:
        """Converts the source with the input shapes of the other model, to see what it prunes."""
        assert self.against is not None
        shapes = {
            value.name: value.shape
            for value in self.loaded(self.against).graph.inputs
            if value.name and value.shape is not None
        }
        known = {name for value in self.loaded(self.source).graph.inputs for name in value.names}
        options = cast(
            ConvertOptions,
            {"input_shapes": {n: s for n, s in shapes.items() if n in known}, **self.options},
        )
        path = self.scratch / f"alike{self.against.suffix.lower()}"
        self.pruned.extend(bridge.convert(self.loaded(self.source), path, **options).pruned)

    def _options_for(self, there: Path) -> ConvertOptions:
        """The options of the first conversion. A conversion to ONNX has no device."""
        if there.suffix == ".xml":
            return self.options
        left = {k: v for k, v in self.options.items() if k not in for_device(self.options)}
        return cast(ConvertOptions, left)

    def stand_in(self) -> Path:
        """The ONNX source, rewritten by Bridge in operators of the standard alone. It replaces the
        source. `converted` has to be called before."""
        self.source = self.in_standard_operators(self.source)
        return self.source

    def in_standard_operators(self, path: Path) -> Path:
        """What Bridge makes of an ONNX model in operators of the standard alone."""
        there, back = (self.scratch / f"plain-{path.stem}{end}" for end in (".xml", ".onnx"))
        options = cast(ConvertOptions, {**self.options, "device": "ANY"})
        bridge.convert(self.loaded(path), there, **options)
        bridge.convert(there, back, standard_operators=True)
        return back

    def changed(
        self, name: str, mine: Model, its: Model | None
    ) -> tuple[Path, Iterator[tuple[str, Path]]]:
        """The changed source `mine`, and the labelled files to compare with it. They are the
        conversions of `mine`, or `its`: the other model with the same change."""
        first = self.rewritten(self.source, mine, name)
        if self.against is None or its is None:
            return first, self.converted(f"{name}-too", mine)
        other = self.rewritten(self.against, its, f"{name}-too")
        return first, iter([(self.against.name, other)])

    def seen_unchanged(self, label: str, tell: Callable[[], None]) -> tuple[Models, Load]:
        """Both models as they are, and `seen` of them: what one search loads, the next one has."""
        if label not in self._seen:
            models = self.both()
            self._seen[label] = models, self.seen(models, label, tell)
        return self._seen[label]

    def seen(self, models: Models, label: str, tell: Callable[[], None]) -> Load:
        """Loads both `models`, the changed source and the version `label`, with values as outputs.
        `tell` is called each time. The last few are kept: searches begin with the same values."""

        @lru_cache(_SEEN)
        def loaded(*looks: tuple[GraphPath, tuple[Spot, ...]]) -> tuple[Session, Session]:
            tell()
            mine, its = (model and clone_model(model) for model in models)
            for model, (place, spots) in zip((mine, its), looks, strict=True):
                if model is not None:
                    expose(model, place, spots)
            assert mine is not None
            first, others = self.changed("seen", mine, its)
            return load(first)[0], load(labelled(others, label))[0]

        return lambda *looks: loaded(*((place, tuple(spots)) for place, spots in looks))

    def rewritten(self, path: Path, model: Model, name: str) -> Path:
        """A changed model in the format that its file has."""
        target = self.scratch / f"{name}{path.suffix.lower()}"
        bridge.save(model, target)
        return target


def _binary(path: Path, scratch: Path) -> Path:
    """The file. A model in text is written as the `.onnx` that engines take."""
    if path.suffix.lower() not in TEXT_SUFFIXES:
        return path
    model = scratch / f"{path.stem}.onnx"
    model.write_bytes(text.read_text(path, str(path)).SerializeToString())
    return model


def _has_halves(model: Model) -> bool:
    """Whether a model is an IR that has weights of f32 stored as f16."""
    return model.format == "ir" and any(
        node.op == "Cast" and "decompression" in (node.extras or {}).get("rt_info", "")
        for node in model.graph.walk()
    )


def labelled(files: Iterable[tuple[str, Path]], label: str) -> Path:
    """The file of this label."""
    return next(path for one, path in files if one == label)
