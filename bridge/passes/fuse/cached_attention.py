"""Attention whose cache is a variable, as exporters write it for ONNX.

OpenVINO's CPU plugin fuses it into one node that holds the cache, if the attention is a
ScaledDotProductAttention. The plugin expects that heads of keys and values are already repeated for
the heads of queries. A mask before a scale must have four axes."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, Term, constant, op, var
from bridge.neutral.types import Interval
from bridge.operators.matmul.attention import NO_BIAS, is_cache
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

QUERY, KEY, VALUE, MASK = (var() for _ in range(4))
OF_QUERY, OF_KEY, FACTOR, DIVISOR = FACTORS = tuple(
    var(where=lambda x: x.shape in ((), (1,))) for _ in range(4)
)
ORDER = constant(rank=1)


def _turned(key: Term) -> Term:
    return op("Transpose", key, ORDER)


KEYS = (_turned(KEY) * OF_KEY) | _turned(KEY * OF_KEY) | _turned(KEY)
PRODUCT = op("MatMul", (QUERY * OF_QUERY) | QUERY, KEYS, transpose_a=False, transpose_b=False)
SCALED = (PRODUCT * FACTOR) | (PRODUCT / DIVISOR) | PRODUCT
SCORES = (SCALED + MASK) | SCALED
SOFTMAX = op("Softmax", op("Cast", SCORES) | SCORES, axis=-1)
SHARED = SOFTMAX.shared()
GUARDED = op("Where", op("IsNaN", SHARED), 0, SHARED)
ATTENTION = op("MatMul", GUARDED | SOFTMAX, VALUE, transpose_a=False, transpose_b=False)


@fuses(ATTENTION)
def attention_with_cache(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Attention whose keys and values are the content of a variable and the new ones. With a guard,
    a query whose keys are all masked gives 0."""
    query, key, value, mask = match[QUERY], match[KEY], match[VALUE], match.get(MASK)
    scores = match[PRODUCT]
    if not query.rank == key.rank == value.rank == 4 or known_of(match[ORDER]).ints != (0, 1, 3, 2):
        return None
    if match[SOFTMAX if SOFTMAX in match else SHARED].element is not query.element:
        return None
    if not _is_of_cache(key) or not _is_of_cache(value):
        return None
    if mask is not None and not _fits(mask, scores):
        return None
    scale = _scale(b, query, match)
    bias = b.like(NO_BIAS, query) if mask is None else mask
    y = b.op("ScaledDotProductAttention", query, key, value, bias, scale, causal=False)
    return b.where(b.op("IsNaN", y), 0.0, y) if GUARDED in match else y


def _scale(b: Builder, query: Value, match: Found) -> Value:
    """The product of all factors: the known ones are one constant."""
    known, others = 1.0, list[Value]()
    for term in FACTORS:
        if term not in match:
            continue
        numbers = known_of(match[term]).array
        if numbers is None:
            others.append(b.like(1.0, query) / match[term] if term is DIVISOR else match[term])
        else:
            number = float(numbers.reshape(-1)[0])
            known = known / number if term is DIVISOR else known * number
    return b.fold("Mul", [*others, *([b.like(known, query)] if known != 1 or not others else [])])


def _is_of_cache(value: Value) -> bool:
    """Whether keys or values are the content of a variable joined with another value. Each head may
    be repeated for the heads of queries that share it."""
    return is_cache(value.behind(traits=frozenset({"repeats", "view"})))


def _fits(mask: Value, scores: Value) -> bool:
    """Whether a mask is broadcast to scores, as far as sizes are known, and never they to it."""
    if mask.rank is None or not 2 <= mask.rank <= 4:
        return False
    pairs = zip(reversed(mask.dims), reversed(scores.dims), strict=False)
    return all(m in (1, s) or isinstance(m, Interval) or isinstance(s, Interval) for m, s in pairs)
