"""Statements on strings: compared, chosen, encoded as numbers and made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto

from tests.programs.blocks import (
    ELEMENTS,
    MAX_BOUND,
    TEXT,
    TEXTS,
    WORD,
    WORDS,
    Block,
    Var,
    has_elements,
    is_flag,
    new_constant,
)

ML = "ai.onnx.ml"
"""The domain of LabelEncoder."""

LABELS = {"f32": "floats", "i64": "int64s", WORD: "strings", TEXT: "strings"}
"""How the attributes of LabelEncoder are named for each element."""


def _is_text(var: Var) -> bool:
    return var.element in TEXTS


def _some_words(block: Block, most: int = len(WORDS)) -> list[str]:
    seed = block.draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    return [str(word) for word in rng.permutation(WORDS)[: rng.integers(1, most + 1)]]


def new_text(block: Block) -> None:
    """A constant of words."""
    element = block.choose([TEXT, WORD])
    block.constant(element, block.choose([(), (2,), (1,), (2, 3), (0,)]), block.flip())


def encode(block: Block) -> None:
    """Numbers, or other words, for strings."""
    var = block.pick(_is_text)
    if var is None:
        new_text(block)
        return
    encoded(block, var, block.choose(["i64", "f32", WORD]))


def encoded(block: Block, var: Var, element: str = "i64") -> Var:
    """A string's number among some words, or another word for each of them."""
    words = _some_words(block)
    values: list[object] = [*WORDS[: len(words)]]
    if element != WORD:
        values = [ELEMENTS[element][1](at / 2 - 1).item() for at in range(len(words))]
    result = replace(var, element=element, bound=4, bits=1 if element == "f32" else 0)
    return _labelled(block, var, words, values, result)


def _labelled(
    block: Block, var: Var, keys: list[object] | list[str], values: list[object], result: Var
) -> Var:
    kinds = LABELS[var.element], LABELS[result.element]
    given = {f"keys_{kinds[0]}": keys, f"values_{kinds[1]}": values}
    default = f"default_{kinds[1].removesuffix('s')}"
    rest = {default: values[-1]} if block.flip() or result.element == WORD else {}
    return block.emit("LabelEncoder", [var], result, domain=ML, **given, **rest)


def decode(block: Block) -> None:
    """Words for integers."""
    var = block.pick(lambda x: x.element == "i64")
    if var is None:
        new_text(block)
        return
    words: list[object] = [*_some_words(block)]
    _labelled(block, var, [*range(-2, len(words) - 2)], words, replace(var, element=WORD))


def compare(block: Block) -> None:
    """Whether strings are alike."""
    var = block.pick(_is_text)
    if var is None or block.opset < 19:
        new_text(block)
        return
    # Of two strings that the model does not name, IR does not know whether they are alike.
    other = block.pick(lambda x: x.element == WORD and (x.shape == () or x.has_shape_of(var)))
    if other is None:
        other = block.constant(WORD, (), block.flip())
    block.emit("Equal", [var, other], replace(var, element="bool", bound=1))


def select(block: Block) -> None:
    """One of two strings by a condition."""
    var, flag = block.pick(_is_text), block.pick(is_flag)
    if var is None or flag is None:
        new_text(block)
        return
    other = block.pick(lambda x: x.element == var.element and x.has_shape_of(var))
    assert other is not None  # the value itself is one
    block.emit("Where", [flag, var, other], var)


def number_from_text(block: Block) -> None:
    """Numbers read from words."""
    var = block.pick(_is_text)
    if var is None:
        new_text(block)
        return
    written = ["10", "2.5", "-1", "0.5"]
    words = _some_words(block, len(written))
    values: list[object] = [*written[: len(words)]]
    texts = _labelled(block, var, words, values, replace(var, element=WORD))
    result = replace(var, element="f32", bound=10, bits=1)
    block.emit("Cast", [texts], result, to=TensorProto.FLOAT)


def number_to_text(block: Block) -> None:
    """Integers written out as text; the text is compared with known words."""
    var = block.pick(lambda x: x.element == "i64" and x.bound <= MAX_BOUND and has_elements(x))
    if var is None:
        new_constant(block)
        return
    name = block.fresh()
    block.add("Cast", [var.name], [name], to=TensorProto.STRING)
    encoded(block, replace(var, name=name, element=TEXT))


STATEMENTS = (
    new_text, encode, encode, decode, decode, compare, select, number_from_text, number_to_text,
)  # fmt: skip
"""The statements that programs draw."""
