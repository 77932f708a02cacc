"""IR's greedy decoders of connectionist temporal classification."""

from bridge.neutral.types import I64
from bridge.operators import Builder, Node, Result, Value, legalizes, required


def _decoded(
    b: Builder, classes: Value, valid: Value, blank: Value, merge: bool
) -> tuple[Value, Value]:
    """The valid classes [N, T] at the front of each row, with -1 behind them, and their count [N].
    Blanks are left out, and with `merge` also repeated classes."""
    keep = valid & ~classes.equal(blank)
    if merge:
        keep &= ~same_as_before(b, classes)
    return moved_to_front(b, classes, keep)


def moved_to_front(b: Builder, classes: Value, keep: Value) -> tuple[Value, Value]:
    """The classes [N, T] to keep at the front of each row, with -1 behind them, and their count
    [N]."""
    steps = b.sizes(classes, 1)
    counted = b.op("CumSum", b.cast(keep, I64), 1)
    target = b.where(keep, counted - 1, steps)
    wide = b.concat(0, b.sizes(classes, 0), steps + b.constant([1]))
    empty = b.op("Expand", -1, wide)
    moved = b.op("ScatterElements", empty, target, classes, 1)
    count = b.op("ReduceSum", b.cast(keep, I64), [1], keepdims=False)
    return b.cut(moved, 1, 0, steps), count


def same_as_before(b: Builder, classes: Value) -> Value:
    """A mask of the classes [N, T] that repeat the class before them."""
    none = b.op("Expand", b.constant(-1), b.concat(0, b.sizes(classes, 0), b.constant([1])))
    return classes.equal(b.cut(b.concat(1, none, classes), 1, 0, b.sizes(classes, 1)))


@legalizes("CTCGreedyDecoder", target="onnx")
def ctc_greedy_decoder_to_onnx(b: Builder, node: Node) -> Result:
    """CTCGreedyDecoder-1. The data is [T, N, C], and the last class is the blank. A sequence ends
    at the first 0 of its mask."""
    data, mask = required(node, 0, 1)
    classes = b.transpose(b.op("ArgMax", data, axis=2, keepdims=False), 1, 0)
    stops = b.cast(b.transpose(mask, 1, 0).equal(0), I64)
    valid = b.op("CumSum", stops, 1).equal(0)
    blank = b.scalar(b.sizes(data, 2)) - 1
    decoded, _ = _decoded(b, classes, valid, blank, node.attributes["ctc_merge_repeated"])
    return b.cast(b.unsqueeze(decoded, 2, 3), data.element)


@legalizes("CTCGreedyDecoderSeqLen", target="onnx")
def ctc_greedy_decoder_seq_len_to_onnx(b: Builder, node: Node) -> Result:
    """CTCGreedyDecoderSeqLen-6. The data is [N, T, C]."""
    (data, lengths), blank = required(node, 0, 1), node.input(2)
    classes = b.op("ArgMax", data, axis=2, keepdims=False)
    valid = b.positions(classes, 1) < b.unsqueeze(b.as_i64(lengths), 1)
    last = b.scalar(b.sizes(data, 2)) - 1
    skipped = last if blank is None else b.scalar(b.as_i64(blank))
    decoded, count = _decoded(b, classes, valid, skipped, node.attributes["merge_repeated"])
    return (
        b.cast(decoded, node.attributes["classes_index_type"]),
        b.cast(count, node.attributes["sequence_length_type"]),
    )
