"""Kinds of drawn programs, and many of a kind by a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol

import onnx
from hypothesis import strategies as st
from hypothesis.errors import StopTest
from hypothesis.internal.conjecture.data import ConjectureData

from tests.programs.blocks import ELEMENTS, TEXT, Draw
from tests.programs.case_programs import case_programs
from tests.programs.chain_programs import chain_programs
from tests.programs.contrib_cases import contrib
from tests.programs.odd_numbers import STATEMENTS as ODD
from tests.programs.outlining import outlined
from tests.programs.random_programs import programs
from tests.programs.rank_programs import rank_programs
from tests.programs.rarities import STATEMENTS
from tests.programs.sequence_programs import sequence_programs
from tests.programs.served_programs import served_programs
from tests.programs.storing import stored_otherwise
from tests.programs.texts import STATEMENTS as ON_TEXTS


class Drawn(Protocol):
    """A model, and inputs for it by seed."""

    model: onnx.ModelProto

    def feed(self, seed: int) -> Mapping[str, Any]: ...


MIXED = (
    programs(STATEMENTS), programs(ODD), rank_programs(), sequence_programs(), case_programs()
)  # fmt: skip


@st.composite
def changed(draw: Draw, change: Callable[[Any], Drawn]) -> Drawn:
    """A program of some kind, written in another way."""
    return change(draw(MIXED[draw(st.integers(0, len(MIXED) - 1))]))


KINDS: dict[str, st.SearchStrategy[Drawn]] = {
    "if": programs(),
    "rare": programs(STATEMENTS),
    "odd": programs(ODD),
    "texts": programs(ON_TEXTS, elements=(*ELEMENTS, *[TEXT] * len(ELEMENTS))),
    "ranks": rank_programs(),
    "sequences": sequence_programs(),
    "cases": case_programs(),
    "chains": chain_programs(),
    "contrib": case_programs(contrib),
    "outlined": changed(outlined),
    "constants": changed(stored_otherwise),
    "served": served_programs(),
}


def draw(kind: str, count: int, seed: int) -> list[Drawn]:
    """Draws `count` programs; the same for the same seed. Each is drawn anew, while Hypothesis in a
    test makes some programs from others."""
    return [draw_one(kind, seed, number) for number in range(count)]


def draw_one(kind: str, seed: int, number: int) -> Drawn:
    """The program of this number among those of a seed."""
    return _draw(KINDS[kind], f"{seed}.{number}")


def _draw(strategy: st.SearchStrategy[Drawn], seed: str) -> Drawn:
    random = Random(seed)
    while True:
        try:
            return ConjectureData(random=random, prefix=(), max_choices=None).draw(strategy)
        except StopTest:  # too large
            continue
