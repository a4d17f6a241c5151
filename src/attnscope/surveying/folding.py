"""Shards merged in the order of their numbers, whatever the order in which they are done."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import BadInput

COUNTED = ("sentences", "words", "words_without_token", "tokens")
"""What a shard tells of how much it read."""
GROUPS = 32
"""Shards are dealt to so many groups; standard errors come from leaving out one at a time."""

State = Mapping[str, Any]


@dataclass
class Fold:
    """Takes in the states of shards, each when its turn has come; memory does not grow with their number."""

    kinds: Mapping[str, Any]
    """The class of each statistic."""
    groups: dict[str, list[Any]] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    longest: int = 0
    """Tokens of the longest sentence."""
    waiting: dict[int, Callable[[], State]] = field(default_factory=dict)
    taken: int = 0

    def offer(self, number: int, state: Callable[[], State]) -> None:
        """A shard is done; its state is asked for when all before it are merged."""
        self.waiting[number] = state
        while self.taken in self.waiting:
            self._take(self.taken % GROUPS, self.waiting.pop(self.taken)())
            self.taken += 1

    def _take(self, group: int, state: State) -> None:
        if lacking := [name for name in COUNTED if name not in state]:
            raise BadInput(
                f"The unfinished survey was begun by another version of attnscope, which did not count"
                f" {', '.join(lacking)}: begin it anew in another folder."
            )
        for name, kind in self.kinds.items():
            statistic = kind.from_state(state["statistics"][name])
            groups = self.groups.setdefault(name, [])
            if group == len(groups):
                groups.append(statistic)
            else:
                groups[group].merge(statistic)
        self.totals.update({name: state[name] for name in COUNTED})
        self.skipped.update(state["skipped"])
        self.longest = max(self.longest, state["longest"])
