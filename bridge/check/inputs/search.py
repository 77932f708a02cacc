"""Seeks the inputs of a check: the user's, drawn ones, and ones that reach further branches."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from bridge.check.inputs.aimed import aim
from bridge.check.inputs.drawn import (
    call_in_a_row,
    draw,
    draw_alike,
    draw_empty,
    draw_small,
    fit,
    take_own,
)
from bridge.check.inputs.moves import move, repeat_branches
from bridge.check.inputs.running import Search
from bridge.check.inputs.seeking import seek_situations
from bridge.check.inputs.sizes import SizeBounds
from bridge.check.inputs.wanted import Inputs, Wanted

_RELAXED = 6  # sizes that are left out one by one


def search(wanted: Wanted) -> Inputs:
    """The inputs of a check. The search ends early if it runs too much."""
    found = Search(wanted)
    take_own(found)
    if wanted.samples:
        if wanted.states is not None:
            draw_small(found)
            call_in_a_row(found, wanted.states)
        draw(found)
        if not found.drawn:
            # A model may take inputs of one branch only, and a condition is sought in few runs.
            aim(found, outermost=True)
        if not found.drawn:
            fit(found)
        draw_alike(found)
        if not wanted.quick:
            aim(found)
        move(found)
        if not wanted.quick:
            seek_situations(found)
            repeat_branches(found)
            draw_empty(found)
    return found.result()


def fitting_sizes(
    wanted: Wanted, asked: Mapping[str, SizeBounds], keys: Collection[str]
) -> dict[str, int]:
    """Sizes of these dimensions with which a model takes an input, where it takes none of the
    sizes that were `asked`; empty if a search finds no input. If possible, all asked sizes but one
    stay. The base of `wanted` has sizes that the user did not ask for."""
    one_out = [*reversed(list(asked))] if 1 < len(asked) <= _RELAXED else []
    kept = [{key: size for key, size in asked.items() if key != out} for out in one_out]
    for sizes in [*kept, {}] if asked else []:
        base = replace(wanted.base, sizes={**wanted.base.sizes, **wanted.demands.shared(sizes)})
        found = Search(replace(wanted, base=base, samples=1, sites=(), own=()))
        draw(found)
        if not found.drawn:
            fit(found)
        for case in found.cases:
            chosen, symbols = found.sizes_of(case), wanted.demands.symbols
            named = {key: chosen.get(key, chosen.get(symbols.get(key, key))) for key in keys}
            return {key: size for key, size in named.items() if isinstance(size, int)}
    return {}
