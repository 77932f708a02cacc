"""What a search for inputs needs besides a model: probes that are loaded, options that make sense,
and words for a search that found nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import bridge
from bridge.check.engines import Session
from bridge.check.engines.sessions import open_session
from bridge.check.inputs.probe import Probe, probe
from bridge.check.inputs.recipe import Recipe
from bridge.check.inputs.sizes import free_dimensions
from bridge.check.inputs.wanted import Inputs, Probes
from bridge.check.lines import shortened
from bridge.check.surgery.sites import Site, ways
from bridge.errors import UsageError
from bridge.neutral.graph import Model
from bridge.neutral.types import innermost
from bridge.options.suggestions import unknown

_PROBED = 50_000  # nodes of all probes together
_PROBE = 5_000  # nodes of one


def probes_of(model: Model, scratch: Path) -> Probes:
    """Cuts probes out of a model, as long as they stay small."""
    found = ways(model)
    left = _PROBED

    def probed(site: Site) -> tuple[Probe, Callable[[], Session]] | None:
        nonlocal left
        cut = probe(model, *found[site.index], min(_PROBE, left))
        left -= _PROBE if cut is None else len(cut.model.graph.nodes)
        if cut is None:
            return None

        @cache
        def opened() -> Session:
            path = scratch / f"probe-{site.index}.onnx"
            bridge.save(cut.model, path)
            return open_session(path)

        return cut, opened

    return probed


def require_inputs(recipe: Recipe, model: Model) -> None:
    """Raises UsageError for a size whose key is no open dimension of an input, and for a range
    without any number of the input's type."""
    free = free_dimensions(model)
    for key in recipe.sizes:
        name, _, axis = key.rpartition(".")
        if key not in free and not (axis.isdecimal() and f"{name}.*" in free):
            open = f"open are {', '.join(free)}" if free else "all of them are fixed"
            raise UsageError(f'"{key}" is no open dimension of the inputs; {open}')
    known = {value.name: innermost(value.type).element for value in model.graph.inputs}
    for name, (lowest, highest) in recipe.ranges.items():
        if name not in known:
            raise UsageError(unknown("input", name, known))
        element = known[name]
        if element is None or element.kind not in ("bool", "int", "uint", "float"):
            raise UsageError(f'a range is for numbers; the input "{name}" is of {element}')
        if not element.is_float:
            lowest, highest = math.ceil(lowest), math.floor(highest)
        if not lowest <= highest:
            raise UsageError(f'the range of "{name}" has no number of {element} in it')


def none_taken(found: Inputs, fitting: Mapping[str, int], open: Sequence[str]) -> str:
    """Says that the model takes no input that was tried, why, and what to do."""
    reasons = Counter(found.refused).most_common(1)
    why = f" (mostly: {shortened(reasons[0][0], 300)})" if reasons else ""
    advice = "give it inputs of your own with --inputs"
    if found.endless:
        advice = "give a run more time with --timeout, or inputs of your own with --inputs"
    elif fitting:
        advice = "sizes that fit: " + " ".join(f"--size {k}={n}" for k, n in fitting.items())
    elif open:
        advice = f"give sizes that fit with --size: open are {', '.join(open)}"
    return f"no input was found that the model takes{why}; {advice}"
