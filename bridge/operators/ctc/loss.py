"""IR's loss of connectionist temporal classification."""

import numpy as np

from bridge.neutral.types import F32, I64, I64_MAX
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.bodies import Values, along
from bridge.operators.ctc.ctc import moved_to_front, same_as_before

_NEVER = np.float32(-np.inf)
"""The logarithm of the probability of an impossible path."""


@legalizes("CTCLoss", target="onnx")
def ctc_loss_to_onnx(b: Builder, node: Node) -> Result:
    """CTCLoss-4: the negative logarithm of the probability of all paths to the labels, computed
    step by step in a Loop. A path visits a blank, a label, a blank, a label, ..., a blank."""
    logits, lengths, labels, label_lengths = required(node, 0, 1, 2, 3)
    merged, blank = node.attributes["ctc_merge_repeated"], node.input(4)
    last = b.scalar(b.sizes(logits, 2)) - 1
    blank = last if blank is None else b.scalar(b.as_i64(blank))
    labels, count = _targets(b, b.as_i64(labels), b.as_i64(label_lengths), node)
    places = _with_blanks(b, b.max(labels, 0), blank)
    stays = places.equal(blank)
    # A path may jump from a label to the next one. With merging, the two labels must differ.
    jumps = ~b.cut(stays, 1, 0, -2)
    if merged:
        same = b.cut(places, 1, 0, -2).equal(b.cut(places, 1, 2, I64_MAX))
        jumps &= ~same

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        (time, scores), (reached,) = parts, states
        places, stays, jumps, lengths = fixed
        never = b.constant(_NEVER)
        kept = reached if merged else b.where(stays, reached, never)
        near = _moved(b, b.cut(reached, 1, 0, -1), 1)
        far = _moved(b, b.where(jumps, b.cut(reached, 1, 0, -2), never), 2)
        here = b.op("GatherElements", scores, places, axis=1)
        new = _sum(b, kept, near, far) + here
        return [b.where(time < b.unsqueeze(lengths, 1), new, reached)], []

    start = b.where(b.positions(places, 1).equal(0), b.constant(0.0), b.constant(_NEVER))
    start = b.op("Expand", start, b.op("Shape", places))
    scores = b.transpose(b.op("LogSoftmax", b.cast(logits, F32), axis=2), 1, 0, 2)
    sliced = [b.positions(logits, 1), scores]
    (reached,), _ = along(b, step, sliced, [start], [places, stays, jumps, b.as_i64(lengths)])
    end = b.unsqueeze(count, 1) * 2
    before = b.max(end - 1, 0)
    ends = [b.op("GatherElements", reached, i, axis=1) for i in (end, before)]
    ends[1] = b.where(end.equal(0), _NEVER, ends[1])
    return b.cast(b.squeeze(-_sum(b, *ends), 1), logits.element)


def _targets(b: Builder, labels: Value, lengths: Value, node: Node) -> tuple[Value, Value]:
    """The labels [N, T] of the paths, and their count [N]."""
    time = b.positions(labels, 1)
    if node.attributes["unique"]:
        same = b.unsqueeze(labels, 2).equal(b.unsqueeze(labels, 1))
        same &= time < b.unsqueeze(time, 1)
        same = b.op("ReduceMax", b.cast(same, I64), [2], keepdims=False) > 0
    elif node.attributes["preprocess_collapse_repeated"]:
        same = same_as_before(b, labels)
    else:
        return labels, lengths
    return moved_to_front(b, labels, (time < b.unsqueeze(lengths, 1)) & ~same)


def _with_blanks(b: Builder, labels: Value, blank: Value) -> Value:
    """Labels [N, T] with blanks before, between and behind them: [N, 2 * T + 1]."""
    wide = b.unsqueeze(labels, 2)
    blanks = b.op("Expand", blank, b.op("Shape", wide))
    pairs = b.reshape(b.concat(2, blanks, wide), 0, -1)
    end = b.op("Expand", blank, b.concat(0, b.sizes(labels, 0), b.constant([1])))
    return b.concat(1, pairs, end)


def _moved(b: Builder, reached: Value, places: int) -> Value:
    """Logarithms [N, ...], shifted right by a number of places."""
    return b.op("Pad", reached, [0, places, 0, 0], _NEVER, mode="constant")


def _sum(b: Builder, *logarithms: Value) -> Value:
    """The logarithm of a sum, computed from the logarithms of its terms."""
    largest = b.op("Max", *logarithms, np.finfo(np.float32).min)
    parts = [b.op("Exp", v - largest) for v in logarithms]
    return b.op("Log", b.fold("Add", parts)) + largest
