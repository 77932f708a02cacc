"""The emulated device, and a sample of what runs on it, where the packages and a compiler are."""

from __future__ import annotations

import pytest

from tests.gpu.blocks import blocks
from tests.gpu.canaries import BY_MEMORY, ON_GPU, canary
from tests.gpu.cases import Case, of_file
from tests.gpu.judge import Verdict, apart
from tests.support.model_files import FOLDER
from tests.support.sample import thinned

SAMPLE = (
    "if_captures_condition",
    "if_bool",
    "exporter_while_stacks",  # a condition ends the Loop
    "loop_grows_from_nothing",
    "loop_state_that_is_absent_at_first",  # an If stays in the Loop
)

CASES = [*blocks(), *(Case(name, of_file, (FOLDER / f"{name}.onnxtxt",)) for name in SAMPLE)]


@pytest.mark.parametrize("case", thinned(CASES, 2), ids=lambda case: case.name)
@pytest.mark.usefixtures("emulated_gpu")
def test_right_on_the_device(case: Case) -> None:
    assert apart(case) == Verdict("right")


@pytest.mark.parametrize("path", thinned(ON_GPU, 2))
@pytest.mark.usefixtures("emulated_gpu")
def test_a_quirk_mends_what_goes_wrong_without_it(path: str) -> None:
    assert apart(canary(path, without=False)) == Verdict("right")
    without = apart(canary(path, without=True)).kind
    assert without not in ("refused", "no model")
    assert without != "right" or path in BY_MEMORY
