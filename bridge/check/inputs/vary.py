"""Recipes like that of an input, for branches that few inputs take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bridge.check.inputs.recipe import Case, Recipe
from bridge.neutral.graph import Value


def one_more(case: Case) -> list[Recipe]:
    """The recipe with single integers that are greater by one, if there are any. If they count a
    Loop, an odd number of iterations becomes an even one: states may change places in each."""
    recipe = case.recipe
    some = {n: x for n, x in case.feeds.items() if getattr(x, "size", 0) == 1}
    alone = {n: x.item() + 1 for n, x in some.items() if x.dtype.kind in "iu"}
    if not alone or recipe.own is not None:
        return []
    return [replace(recipe, fills={**recipe.fills, **alone})]


def varied_like(case: Case, inputs: Sequence[Value]) -> Iterator[Recipe]:
    """The recipe with smaller and larger numbers, with the other sign, and with other seeds. A
    single integer stays the same with other seeds: it may choose the branch. Integers change only
    their sign, because engines hold large integers in 32 bits."""
    recipe = case.recipe
    free = {
        v.name: v.element for v in inputs if v.element is not None and v.name not in recipe.fills
    }
    floats = [name for name, element in free.items() if element.is_float]
    integers = [name for name, element in free.items() if element.kind == "int"]
    alone = {n: x for n, x in case.feeds.items() if n in free and getattr(x, "size", 0) == 1}
    held = {name: float(x.item()) for name, x in alone.items() if x.dtype.kind in "biu"}
    for more, factor in ((0, -1.0), (0, 1e-3), (0, -30.0), (6, 1.0), (7, 30.0), (8, 300.0)):
        names = integers if factor == -1.0 else floats
        scales = {} if factor == 1.0 else dict.fromkeys(names, factor)
        if recipe.own is not None and not scales:
            continue
        fills = {**recipe.fills, **held} if more else recipe.fills
        yield replace(
            recipe, seed=recipe.seed + more, fills=fills, scales={**recipe.scales, **scales}
        )
