"""Operators of onnx.reference that compute something else than the standard says, set right."""

from typing import Any

import numpy as np
from onnx import helper
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_batch_normalization import BatchNormalization_14
from onnx.reference.ops.op_cast import cast_to
from onnx.reference.ops.op_gru import GRU
from onnx.reference.ops.op_loop import Loop as _Loop
from onnx.reference.ops.op_lstm import LSTM
from onnx.reference.ops.op_random_uniform import RandomUniform as _RandomUniform
from onnx.reference.ops.op_random_uniform_like import RandomUniformLike as _RandomUniformLike
from onnx.reference.ops.op_rnn import RNN_14


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

    seed: Any

    def _run(self, *like: Any, seed: Any = None, **attributes: Any) -> Any:
        self.seed = seed if seed is None else seed + 1
        return super()._run(*like, seed=seed, **attributes)  # type: ignore[misc]


class RandomUniform(_Drawing, _RandomUniform):
    """See `_Drawing`."""


class RandomUniformLike(_Drawing, _RandomUniformLike):
    """See `_Drawing`."""


class CastLike(OpRun):
    """The original does not know `round_mode`."""

    def _run(
        self, value: Any, like: Any, saturate: bool = True, round_mode: str = "up"
    ) -> tuple[Any]:
        return (cast_to(value, helper.np_dtype_to_tensor_dtype(like.dtype), saturate, round_mode),)


_RECURRENT = {"GRU": GRU, "LSTM": LSTM, "RNN": RNN_14}


class _Whole:
    """A recurrent layer. The original overlooks lengths: this one refuses them."""

    def _run(self, x: Any, w: Any, r: Any, *more: Any, **attributes: Any) -> Any:
        lengths = more[1] if len(more) > 1 else None
        time = np.asarray(x).shape[1 if attributes.get("layout") else 0]
        if lengths is not None and (np.asarray(lengths) != time).any():
            raise RuntimeError("sequences of other lengths than the layer's are not computed")
        return super()._run(x, w, r, *more, **attributes)  # type: ignore[misc]


CORRECTED: list[type[OpRun]] = [
    BatchNormalization, Loop, CastLike, RandomUniform, RandomUniformLike,
    *(type(name, (_Whole, kind), {}) for name, kind in _RECURRENT.items()),
]  # fmt: skip
"""For `ReferenceEvaluator`, which knows them by their names."""
