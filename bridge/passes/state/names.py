"""Which inputs and outputs of a model are states: by their names, or by their types and places."""

import re
from collections.abc import Iterator, Mapping

from bridge.neutral.graph import Value
from bridge.neutral.types import TensorType

Named = Mapping[str, Value]

PAST = re.compile(r"^past(?:_key_values?|_kv)?(?=$|[._\d])")
_PRESENT = re.compile(r"^present(?:_key_values?|_kv)?(?=$|[._\d])")
_NEXT = re.compile(r"^(?:next_|new_)|(?:[._]next|_new|[nN])$")
_WORD = re.compile(r"[a-z]+|\d+")
_BEFORE = frozenset({"past", "in", "input", "prev", "previous", "old", "i"})
_AFTER = frozenset({"present", "out", "output", "next", "new", "updated", "current", "n", "o"})
_VAGUE = frozenset({"state", "states", "key", "values"})
"""Words that one of the two names may have alone."""


def pairs_of(inputs: Named, outputs: Named) -> dict[str, str]:
    """The pairs that their names tell. Without any, these are the last inputs and outputs, if no
    other has a type of theirs."""
    found = by_name(inputs, outputs)
    for vague in (frozenset[str](), _VAGUE):
        found |= _by_words(inputs, outputs, found, vague)
    return {name: found[name] for name in inputs if name in found} or _last(inputs, outputs)


def by_name(inputs: Named, outputs: Named) -> dict[str, str]:
    """Exporters of language models write `past…` and `present…` with the same end. Others write `h`
    with `hn`, `h.next`, `h_next`, `next_h` or `new_h`."""
    ends = {_PRESENT.sub("", name): name for name in outputs if _PRESENT.match(name)}
    others = {_NEXT.sub("", name): name for name in outputs if _NEXT.search(name)}
    pairs = {}
    for name, value in inputs.items():
        past = PAST.match(name)
        after = ends.get(name[past.end() :]) if past else others.get(name)
        if after is not None and may_follow(value, outputs[after]):
            pairs[name] = after
    return pairs


def _by_words(
    inputs: Named, outputs: Named, found: Mapping[str, str], vague: frozenset[str]
) -> dict[str, str]:
    """Further pairs, of names that differ in the words for before and after alone, such as
    `in_cache` and `out_cache`, or `r1i` and `r1o`."""
    stems: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    taken = {*found, *found.values()}
    for side, names, words in ((0, inputs, _BEFORE), (1, outputs, _AFTER)):
        for name in names:
            all_words = _WORD.findall(name.lower())
            stem_words = [word for word in all_words if word not in words | vague]
            said = side == 0 or not words.isdisjoint(all_words)
            if name not in taken and said and any(map(str.isalpha, stem_words)):
                stems[side].setdefault(" ".join(stem_words), []).append(name)
    return {
        before: after
        for stem, (before, *more) in stems[0].items()
        for after in stems[1].get(stem, ())
        if not more and len(stems[1][stem]) == 1 and may_follow(inputs[before], outputs[after])
    }


def _last(inputs: Named, outputs: Named) -> dict[str, str]:
    """The last inputs with the last outputs, in order, if no other has a type of theirs."""
    pairs = dict(_from_the_end(inputs, outputs))
    others = [[v for name, v in inputs.items() if name not in pairs],
              [v for name, v in outputs.items() if name not in pairs.values()]]  # fmt: skip
    alike = any(
        may_follow(inputs[before], other) or may_follow(other, outputs[after])
        for before, after in pairs.items()
        for some in others
        for other in some
    )
    return {} if alike else dict(reversed(pairs.items()))


def _from_the_end(inputs: Named, outputs: Named) -> Iterator[tuple[str, str]]:
    """The pairs of the last inputs and outputs, as far as their types go together. The first input
    and the first output are no states."""
    for before, after in zip([*inputs][:0:-1], [*outputs][:0:-1], strict=False):
        if not may_follow(inputs[before], outputs[after]):
            return
        yield before, after


def suggested(inputs: Named, outputs: Named) -> list[str]:
    """The options for the pairs that types and places allow, in lines as a shell takes them."""
    pairs = dict(reversed([*_from_the_end(inputs, outputs)])) or {"INPUT": "OUTPUT"}
    lines = [f"  --state {before}={after} \\" for before, after in pairs.items()]
    return [*lines[:-1], lines[-1][:-2]]


def may_follow(before: Value, after: Value) -> bool:
    """Whether `after` can be the next state of `before`."""
    a, b = before.type, after.type
    if not (isinstance(a, TensorType) and isinstance(b, TensorType)) or a.shape is None:
        return False
    if a.element != b.element or b.rank not in (a.rank, None):
        return False
    sizes = zip(a.shape, b.shape or (), strict=False)
    return all(x == y for x, y in sizes if isinstance(x, int) and isinstance(y, int))
