"""What the files give in engines with default settings: all optimisations, no hints.

A check sets engines so that they compute what a model says. People run them otherwise: in bf16, or
with caches of 8 bits. So a few inputs run once more. This explains what a user may see; the verdict
does not depend on it.
"""

from dataclasses import replace
from pathlib import Path

from bridge.check.compare import Tolerances, compare
from bridge.check.engines import EngineError, OpenVino
from bridge.check.engines.adapters import named_like
from bridge.check.inputs.wanted import Inputs
from bridge.check.runs import Runs
from bridge.check.suite import Suite
from bridge.check.verdict import share_of_range
from bridge.errors import BridgeError

_INPUTS = 3
_FEWER_BITS = "; OpenVINO may compute in fewer bits: INFERENCE_PRECISION_HINT=f32 prevents bf16"


def with_defaults(suite: Suite, inputs: Inputs, runs: Runs, tolerances: Tolerances) -> list[str]:
    """A note for each version that differs from the original with default settings. It says how far
    the original itself does in that engine."""
    cases = [place for place, one in enumerate(inputs.cases) if not one.is_empty][:_INPUTS]
    feeds = [inputs.cases[place].feeds for place in cases]
    original, sessions = suite.original, replace(suite.sessions, threads=None, defaults=True)

    def share(path: Path, in_openvino: bool = False) -> float | None:
        try:
            session = sessions.engine(OpenVino).load(path) if in_openvino else sessions.open(path)
            found = named_like(original.session, session).run_each(feeds)
        except BridgeError:
            return None
        if any(isinstance(one, EngineError) for one in found):
            return None
        shares = [
            share_of_range(how)
            for case, one in zip(cases, found, strict=True)
            for name, value in runs.expected[case].items()
            if not (runs.is_open(case, name) or isinstance(one, EngineError)) and name in one
            for how in [compare(value, runs.settled(case, one)[name], *tolerances.of(name, value))]
            if not how.ok and not how.problem
        ]
        return max(shares, default=0.0)

    notes = []
    for variant in suite.others if feeds else ():
        far = share(variant.opened)
        if not far:
            continue
        own = share(original.opened, in_openvino=variant.is_ir)
        said = "" if own is None else f", the original by {100 * own:.2g} %"
        notes.append(
            f"with the engines' default settings, {variant.label} differs by {100 * far:.2g} % of "
            f"an output's range{said}{_FEWER_BITS if variant.is_ir else ''}"
        )
    return notes
