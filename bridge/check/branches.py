"""What is known of each branch of an If, and of each number of iterations of a Loop."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from bridge.check.compare import Results
from bridge.check.surgery.sites import Branch, Site, branches_of
from bridge.errors import shortened
from bridge.show.states import Standing


@dataclass(frozen=True)
class BranchState:
    """The state of a branch, and a sentence. `input` is the number of the first input that takes
    the branch."""

    state: Standing
    text: str
    input: int | None = None


@dataclass(frozen=True)
class Forced:
    """What came of forcing one branch. `given` is the input, with the switches, with which the
    original ran it, None if it did not. `wrong` are the labels of the versions that differ. `text`
    says why the branch did not run, or how versions differ or fail."""

    branch: Branch
    text: str = ""
    given: Results | None = None
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class BranchResults:
    """The branches of a model and how they were shown.

    `taken` are the branches that each input takes, `wrong` the inputs with which an output differs.
    `reached` has the first input that took each branch, `forced` what came of forcing the others.
    `pruned` are the branches that the conversion removed, and why. `unreachable` are the branches
    that no input can take, and why: the `failing` ones because the model itself fails there. `gone`
    are branches of Ifs that another file does not have."""

    sites: Sequence[Site] = ()
    taken: Sequence[Set[Branch]] = ()
    wrong: Set[int] = frozenset()
    reached: Mapping[Branch, int] = field(default_factory=dict)
    forced: Mapping[Branch, Forced] = field(default_factory=dict)
    pruned: Mapping[Branch, str] = field(default_factory=dict)
    unreachable: Mapping[Branch, str] = field(default_factory=dict)
    failing: Set[Branch] = frozenset()
    gone: Mapping[Branch, str] = field(default_factory=dict)

    @property
    def all(self) -> list[Branch]:
        """All branches. Ifs come before Loops, outer branches before inner ones."""
        return branches_of(self.sites)

    @property
    def different(self) -> bool:
        """Whether a forced branch differs. What forcing a pruned branch gives does not count; the
        report says it."""
        return any(one.wrong for branch, one in self.forced.items() if branch not in self.pruned)

    @property
    def not_shown(self) -> list[Branch]:
        """The branches of which nothing is known."""
        return [branch for branch in self.all if self.state(branch).state is Standing.UNKNOWN]

    def fails(self, branch: Branch) -> bool:
        """Whether the model itself could not run a branch that was forced."""
        forced = self.forced.get(branch)
        return forced is not None and forced.given is None

    def state(self, branch: Branch) -> BranchState:
        """The state of one branch."""
        forced = self.forced.get(branch)
        outcome = "" if forced is None else shortened(forced.text)
        if branch in self.reached and not (forced is not None and forced.wrong):
            number = self.reached[branch]
            takers = {place for place, taken in enumerate(self.taken) if branch in taken}
            if takers and takers <= self.wrong:
                text = f"reached by input {number}, DIFFERENT with all inputs that take it"
                return BranchState(Standing.DIFFERENT, text, number)
            return BranchState(Standing.REACHED, f"reached by input {number}", number)
        if branch in self.pruned:
            tried = f"; forced all the same: {outcome}" if outcome else ""
            why = f"pruned by the conversion, it {self.pruned[branch]}"
            return BranchState(Standing.PRUNED, why + tried)
        why = self.unreachable.get(branch, "")
        if forced is None:
            return self._not_forced(branch, why)
        if forced.wrong:
            return BranchState(Standing.DIFFERENT, f"forced, DIFFERENT: {outcome}")
        if outcome:
            state = Standing.FAILING if self.fails(branch) else Standing.UNKNOWN
            return BranchState(state, f"no input reached it; forced, {outcome}")
        told = bool(why) and branch not in self.failing
        return BranchState(Standing.FORCED, "forced, equal" + (f" ({why})" if told else ""))

    def _not_forced(self, branch: Branch, why: str) -> BranchState:
        """The state of a branch that no input took and the check did not force."""
        site = self.sites[branch[0]]
        if site.loop and why and branch not in self.failing:
            return BranchState(Standing.FAILING, f"cannot be: {why}")
        around = self.state(site.parents[-1]) if site.parents else None
        if around is not None and around.state in (Standing.PRUNED, Standing.FAILING):
            return BranchState(around.state, f"in a branch of which is known: {around.text}")
        if branch in self.gone and why:
            return BranchState(Standing.PRUNED, f"not in {self.gone[branch]}: {why}")
        said = why or "none was found"
        return BranchState(Standing.UNKNOWN, f"no input reached it ({said}), nor was it forced")
