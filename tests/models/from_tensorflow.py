"""Functions with control flow of TensorFlow, as tf2onnx writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf
import tf2onnx

Tensor = Any

tf.random.set_seed(0)
ONE, OTHER = tf.random.normal((6, 6), seed=1), tf.random.normal((6, 6), seed=2)


def gate(x: Tensor) -> Tensor:
    """A layer that data choose."""
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.nn.relu(x @ ONE), lambda: x @ OTHER - 1)


def lengths(x: Tensor) -> Tensor:
    """Branches of different lengths."""
    return tf.cond(tf.reduce_max(x) > 1, lambda: tf.concat([x, x * 2], 0), lambda: x)


def experts(x: Tensor) -> Tensor:
    """One of three layers, by two conditions."""
    chosen = [
        (tf.reduce_sum(x) > 2, lambda: x @ ONE),
        (tf.reduce_max(x) > 1, lambda: tf.tanh(x @ OTHER)),
    ]
    return tf.case(chosen, default=lambda: -x)


def recurrence(x: Tensor) -> Tensor:
    """A recurrent layer written step by step, with a list of tensors."""
    steps = tf.shape(x)[0]
    states = tf.TensorArray(tf.float32, size=steps, element_shape=(6,))

    def step(at: Tensor, state: Tensor, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state = tf.tanh(tf.linalg.matvec(ONE, state) + x[at])
        return at + 1, state, states.write(at, state)

    _, _, states = tf.while_loop(
        lambda at, *_: at < steps, step, (tf.constant(0), tf.zeros(6), states)
    )
    return states.stack()


def decoding(x: Tensor, most: Tensor) -> Tensor:
    """Greedy decoding that ends at a word or after a number of steps, into a vector that grows."""

    def step(words: Tensor, word: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state = tf.tanh(tf.linalg.matvec(ONE, state) + tf.cast(word, tf.float32))
        word = tf.argmax(state, output_type=tf.int32)
        return tf.concat([words, word[None]], 0), word, state

    words, _, _ = tf.while_loop(
        lambda words, word, _: (tf.size(words) < most) & (word != 3),
        step,
        (tf.zeros(1, tf.int32), tf.constant(0), x),
        (tf.TensorShape([None]), tf.TensorShape([]), tf.TensorShape([6])),
    )
    return words


def mapped(x: Tensor) -> Tensor:
    """A function of each row, with a branch in it."""
    return tf.map_fn(
        lambda row: tf.cond(tf.reduce_sum(row) > 0, lambda: tf.sort(row), lambda: row * 2), x
    )


def boxes(corners: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The best boxes, if there are any."""
    best = tf.image.non_max_suppression(corners, scores, 4, 0.5, 0.1)
    some = tf.size(best) > 0
    return tf.cond(some, lambda: tf.gather(corners, best), lambda: tf.zeros((1, 4))), best


def durations(x: Tensor, counts: Tensor) -> Tensor:
    """Rows, each repeated as often as an input says."""
    return tf.repeat(x, counts, axis=0) @ ONE


def masked() -> Any:
    """A recurrent model of Keras that leaves padding out."""
    tf.keras.utils.set_random_seed(0)
    ids = tf.keras.Input((None,), dtype=tf.int32)
    words = tf.keras.layers.Embedding(12, 6, mask_zero=True)(ids)
    run = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(5, return_sequences=True))(words)
    model = tf.keras.Model(ids, tf.keras.layers.GRU(4)(run))
    return lambda ids: model(ids)


def written(
    function: Callable[..., Any], specs: Sequence[tuple[tuple[int | None, ...], Any]], folder: Path
) -> Path:
    path = folder / "model.onnx"
    signature = [tf.TensorSpec(shape, type, f"x{n}") for n, (shape, type) in enumerate(specs)]
    tf2onnx.convert.from_function(tf.function(function), signature, opset=17, output_path=str(path))
    return path


_rows, _whole = ((None, 6), tf.float32), ((), tf.int32)

KINDS: dict[str, Callable[[Path], Path]] = {
    "tf.cond": partial(written, gate, [_rows]),
    "tf.cond of two lengths": partial(written, lengths, [_rows]),
    "tf.case": partial(written, experts, [_rows]),
    "tf.while_loop with a TensorArray": partial(written, recurrence, [_rows]),
    "tf.while_loop, greedy decoding": partial(written, decoding, [((6,), tf.float32), _whole]),
    "tf.map_fn with a tf.cond": partial(written, mapped, [_rows]),
    "detection": partial(written, boxes, [((None, 4), tf.float32), ((None,), tf.float32)]),
    "tf.repeat": partial(written, durations, [((3, 6), tf.float32), ((3,), tf.int32)]),
    "Keras LSTM and GRU with a mask": lambda folder: written(
        masked(), [((None, None), tf.int32)], folder
    ),
}
"""The functions that write a model into a folder, by name."""
