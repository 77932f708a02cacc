"""Operators of onnx.reference that compute something else than the standard says, set right."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_batch_normalization import BatchNormalization_14
from onnx.reference.ops.op_cast import cast_to
from onnx.reference.ops.op_gru import GRU as _GRU
from onnx.reference.ops.op_loop import Loop as _Loop
from onnx.reference.ops.op_lstm import LSTM as _LSTM
from onnx.reference.ops.op_rnn import RNN_14 as _RNN


class Loop(_Loop):
    """The original joins what iterations give instead of stacking it, and runs none where there is
    no condition."""

    def _run(
        self,
        trips: Any,
        condition: Any,
        *states: Any,
        context: dict[str, Any] | None = None,
        body: Any = None,
        attributes: Any = None,
        bindings: Any = None,
    ) -> tuple[Any, ...]:
        names = self.body.input_names  # type: ignore[attr-defined]
        running = True if condition is None else bool(np.all(condition))
        stacks: list[list[Any]] = [[] for _ in range(self.K)]
        iteration = 0
        while running and (trips is None or iteration < np.asarray(trips).item()):
            feeds = dict(context or {})
            feeds |= {names[0]: np.array(iteration, np.int64), names[1]: np.array(running)}
            feeds |= zip(names[2:], states, strict=True)
            run = self._run_body  # type: ignore[attr-defined]  # made for the attribute `body`
            again, *results = run(feeds, attributes=attributes, bindings=bindings)
            running = bool(np.all(again))
            states = tuple(results[: self.N])
            for stack, result in zip(stacks, results[self.N :], strict=True):
                stack.append(result)
            iteration += 1
        if stacks and not iteration:
            raise RuntimeError("a Loop that runs no iteration does not say the shapes of its parts")
        return self._check_and_fix_outputs((*states, *map(np.stack, stacks)))


class BatchNormalization(BatchNormalization_14):
    """The original of operator sets before 14 mixes the statistics of the batch in."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        return super()._run(*inputs, **{"training_mode": 0, **attributes})  # type: ignore[no-untyped-call]


class _Drawing:
    """The original begins anew with its seed in each run."""

    def _run(
        self, *like: Any, dtype: int, high: float, low: float, seed: float | None, shape: Any = ()
    ) -> tuple[Any]:
        if not hasattr(self, "_generator"):
            self._generator = np.random.default_rng(None if seed is None else int(seed))
        drawn = self._generator.uniform(low, high, like[0].shape if like else shape)
        return (drawn.astype(helper.tensor_dtype_to_np_dtype(dtype)),)


class RandomUniform(_Drawing, OpRun):
    """See `_Drawing`."""

    def _run(  # type: ignore[override]
        self,
        dtype: int = TensorProto.FLOAT,
        high: float = 1.0,
        low: float = 0.0,
        seed: float | None = None,
        shape: Any = (),
    ) -> tuple[Any]:
        return super()._run(dtype=dtype, high=high, low=low, seed=seed, shape=shape)


class RandomUniformLike(_Drawing, OpRun):
    """See `_Drawing`."""

    def _run(  # type: ignore[override]
        self,
        like: Any,
        dtype: int | None = None,
        high: float = 1.0,
        low: float = 0.0,
        seed: float | None = None,
    ) -> tuple[Any]:
        dtype = dtype or helper.np_dtype_to_tensor_dtype(like.dtype)
        return super()._run(like, dtype=dtype, high=high, low=low, seed=seed)


class CastLike(OpRun):
    """The original does not know `round_mode`."""

    def _run(
        self, value: Any, like: Any, saturate: bool = True, round_mode: str = "up"
    ) -> tuple[Any]:
        return (cast_to(value, helper.np_dtype_to_tensor_dtype(like.dtype), saturate, round_mode),)


class _Whole:
    """A recurrent layer. The original overlooks lengths: this one refuses them."""

    def _run(self, x: Any, w: Any, r: Any, *more: Any, **attributes: Any) -> Any:
        lengths = more[1] if len(more) > 1 else None
        time = np.asarray(x).shape[1 if attributes.get("layout") else 0]
        if lengths is not None and (np.asarray(lengths) != time).any():
            raise RuntimeError("sequences of other lengths than the layer's are not computed")
        return super()._run(x, w, r, *more, **attributes)  # type: ignore[misc]


class GRU(_Whole, _GRU):  # type: ignore[misc]
    """See `_Whole`."""


class LSTM(_Whole, _LSTM):  # type: ignore[misc]
    """See `_Whole`."""


class RNN(_Whole, _RNN):  # type: ignore[misc]
    """See `_Whole`."""


CORRECTED: list[type[OpRun]] = [
    BatchNormalization, Loop, CastLike, GRU, LSTM, RNN, RandomUniform, RandomUniformLike
]  # fmt: skip
