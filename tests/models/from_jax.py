"""Functions with control flow of JAX, as jax2onnx writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax2onnx
import numpy as np
from jax import lax

Array = Any

_random = np.random.default_rng(0)


def _weights(*shape: int) -> Array:
    return jnp.asarray(_random.standard_normal(shape), jnp.float32)


ONE, OTHER, THIRD = (_weights(6, 6) for _ in range(3))


def gate(x: Array) -> Array:
    """A layer that data choose."""
    return lax.cond(x.sum() > 0, lambda x: jax.nn.relu(x @ ONE), lambda x: x @ OTHER - 1, x)


def experts(x: Array) -> Array:
    """One of three layers, by two conditions, one in the other."""
    last = partial(lax.cond, x.max() > 2, lambda x: jnp.tanh(x @ OTHER), lambda x: -x)
    return lax.cond(x.sum() > 0, lambda x: x @ ONE, last, x)


def recurrence(x: Array) -> tuple[Array, Array]:
    """A recurrent layer over time steps, which forgets its state at silent steps."""

    def step(state: Array, now: Array) -> tuple[Array, Array]:
        state = lax.cond(
            jnp.abs(now).max() < 0.5, lambda h: h * 0, lambda h: jnp.tanh(h @ ONE + now), state
        )
        return state, state.sum()

    return lax.scan(step, jnp.zeros(6), x)


def root(x: Array) -> tuple[Array, Array]:
    """Newton's method: it ends when a step is small, and counts its steps."""

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        now, before, steps = state
        return jnp.logical_and(jnp.abs(now - before).max() > 1e-3, steps < 30)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        now, _, steps = state
        return 0.5 * (now + (jnp.abs(x) + 1) / now), now, steps + 1

    found, _, steps = lax.while_loop(goes_on, step, (jnp.abs(x) + 1, x * 0, jnp.int32(0)))
    return found, steps


def powers(x: Array) -> Array:
    """Layers in a loop; every second iteration has another layer."""

    def step(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        y, x = state
        layer = lax.cond(i % 2 == 0, lambda y: y @ ONE * 0.3, lambda y: jnp.sin(y), y)
        return layer + x, x

    return lax.fori_loop(0, 5, step, (x, x))[0]


def search(scores: Array) -> tuple[Array, Array]:
    """Greedy decoding: the best word of each step, written into a buffer, until the last word."""

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        step, word, _ = state
        return (step < 8) & (word != 3)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        at, word, words = state
        word = jnp.argmax(scores[at] + THIRD[word % 6, 0]).astype(jnp.int32)
        return at + 1, word, lax.dynamic_update_slice(words, word[None], (at,))

    steps, _, words = lax.while_loop(
        goes_on, step, (jnp.int32(0), jnp.int32(0), jnp.zeros(8, jnp.int32))
    )
    return words, steps


def written(function: Callable[..., Any], inputs: Sequence[Any], folder: Path) -> Path:
    path = folder / "model.onnx"
    jax2onnx.to_onnx(function, inputs, return_mode="file", output_path=str(path), opset=21)
    return path


_rows = jax.ShapeDtypeStruct((4, 6), np.float32)

KINDS: dict[str, Callable[[Path], Path]] = {
    "lax.cond": partial(written, gate, [("B", 6)]),
    "lax.cond in a lax.cond": partial(written, experts, [_rows]),
    "lax.scan with a lax.cond": partial(written, recurrence, [("T", 6)]),
    "lax.while_loop, Newton's method": partial(written, root, [_rows]),
    "lax.fori_loop with a lax.cond": partial(written, powers, [_rows]),
    "lax.while_loop, greedy decoding": partial(
        written, search, [jax.ShapeDtypeStruct((8, 6), np.float32)]
    ),
}
"""The functions that write a model into a folder, by name."""
