"""Topological order, for files that do without it."""

from collections.abc import Sequence


class Cycle(Exception):
    """Raised if things need each other; `member` is the place of one of them."""

    def __init__(self, member: int) -> None:
        super().__init__(member)
        self.member = member


def topological(needs: Sequence[Sequence[int]]) -> list[int]:
    """The places 0, 1, ... of things, each behind the places it needs, and otherwise in their own
    order. Raises Cycle."""
    order: list[int] = []
    done: dict[int, bool] = {}  # False while a place waits for the places it needs, then True
    for start in range(len(needs)):
        stack = [start]
        while stack:
            place = stack[-1]
            if place not in done:
                done[place] = False
                for needed in reversed(needs[place]):
                    if needed not in done:
                        stack.append(needed)
                    elif not done[needed]:
                        raise Cycle(place)
                continue
            stack.pop()
            if not done[place]:
                done[place] = True
                order.append(place)
    return order
