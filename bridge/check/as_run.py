"""The results of the files in engines with their default settings: all optimisations, no hints.

A check changes these settings, so that it proves meaning. Here the files run a few inputs once
more. If a conversion differs more than the original in the same engine, it is a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from bridge.check.bench import Bench
from bridge.check.compare import compare
from bridge.check.engines import DefaultOpenVino, Engine, Session
from bridge.check.loading import DEFAULTS, engine, load
from bridge.check.outputs import Comparison, Results
from bridge.check.results import Compared
from bridge.check.stateful import keeps_states
from bridge.check.versions import Sessions
from bridge.errors import BridgeError

_INPUTS = 3
_MORE = 3.0  # times the original's difference
_BF16 = 2.0**-6
"""The error of an engine that may compute in bf16: a few units in the last place of bf16."""


def run_as_people_do(bench: Bench, sessions: Sessions, compared: Compared) -> None:
    """Fills the report with the outputs that differ more in a conversion than in the original, and
    with the outputs that differ in both. A difference that the check itself found in a version does
    not count again."""
    report, comparison = bench.report, bench.comparison
    kept = [place for place, why in enumerate(compared.aside) if not why][:_INPUTS]
    if report.different or not kept:
        return
    bench.tell("running all as people do")
    feeds = [report.feeds[place] for place in kept]
    wanted = [compared.wanted[place] for place in kept]
    original, source = sessions[0][1], report.versions[0].path
    known: dict[bool, list[float] | None] = {}
    for label, session in sessions[1:]:
        path = report.path(label)
        is_ir = path.suffix.lower() == ".xml"
        its = _off(_loaded(path), original, feeds, wanted, comparison)
        plain = _off(session, original, feeds, wanted, comparison)
        if its is None or plain is None:
            continue
        least = max(comparison.rtol, _BF16 if is_ir else 0.0)
        if max(its) <= least:
            continue
        own = None
        # OpenVINO keeps the cache of a variable in 8 bits by default. Inputs are no such cache.
        if not keeps_states(session) or keeps_states(original):
            if is_ir not in known:
                known[is_ir] = _off(_original(source, is_ir), original, feeds, wanted, comparison)
            own = known[is_ir]
        text = f"as people run it, {label} differs by {100 * max(its):.2g} %"
        if own is None:
            report.as_run.append(text)
        elif all(
            one > max(_MORE * max(others), least)
            for one, *others in zip(its, own, plain, strict=True)
        ):
            report.findings.append(f"{text}, and the original by {100 * max(own):.2g} %")
        else:
            report.as_run.append(f"{text}, and the original by {100 * max(own):.2g} %")


def _original(path: Path, in_openvino: bool) -> Session | None:
    """The original in an engine's defaults: in OpenVINO, or in that of its own format. None where
    that engine does not take it."""
    is_ir = path.suffix.lower() == ".xml"
    if is_ir == in_openvino:
        return _loaded(path)
    if is_ir:
        return None
    try:
        return engine(cast(type[Engine], DefaultOpenVino)).load(path)
    except BridgeError:
        return None


def _loaded(path: Path) -> Session | None:
    try:
        return load(path, settings=DEFAULTS)[0]
    except BridgeError:
        return None


def _off(
    session: Session | None,
    original: Session,
    feeds: Sequence[Results],
    wanted: Sequence[Results],
    comparison: Comparison,
) -> list[float] | None:
    """By what share of an output's largest number it differs, with each input; 0 within the
    tolerance. None where the session fails."""
    if session is None:
        return None
    found = []
    for feed, expected in zip(feeds, wanted, strict=True):
        try:
            results = session.run(comparison.renamed(feed, session))
        except BridgeError:
            return None
        actual = comparison.aligned(original, session, results) or {}
        shares = (
            _share(value, actual.get(name), *comparison.allowed(name))
            for name, value in expected.items()
            if name not in comparison.random
        )
        found.append(max(shares, default=0.0))
    return found


def _share(expected: Any, actual: Any, rtol: float, atol: float) -> float:
    if not isinstance(expected, np.ndarray) or expected.dtype.kind in "OSUbc" or not expected.size:
        return 0.0
    difference = compare(expected, actual, rtol, atol)
    largest = float(np.abs(expected.astype(np.float64)).max())
    if difference.ok or difference.problem or not 0 < largest < np.inf:
        return 0.0
    return difference.absolute / largest
