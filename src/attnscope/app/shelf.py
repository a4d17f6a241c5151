"""What was read lately, within a budget of bytes: the least recently used goes first."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Sized(Protocol):
    """Whatever takes room on a shelf."""

    @property
    def size(self) -> int:
        """Bytes that it takes now."""


Thing = TypeVar("Thing", bound=Sized)


class Shelf(Generic[Thing]):
    """Things by name; more than the budget is never kept, but for the one that was put there last."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._things: OrderedDict[str, Thing] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, name: str) -> Thing | None:
        """What has this name, if it is still there; it is now the most recently used."""
        with self._lock:
            thing = self._things.get(name)
            if thing is not None:
                self._things.move_to_end(name)
            return thing

    def get_or_make(self, name: str, make: Callable[[], Thing]) -> Thing:
        """What has this name, made if it is not there."""
        thing = self.get(name)
        if thing is None:
            thing = make()
            self.put(name, thing)
        return thing

    def put(self, name: str, thing: Thing) -> None:
        """Keep a thing, or measure it anew if it is there and has grown; others make room."""
        with self._lock:
            self._things[name] = thing
            self._things.move_to_end(name)
            while len(self._things) > 1 and self.size > self.budget:
                self._things.popitem(last=False)

    @property
    def size(self) -> int:
        """Bytes of all that is kept."""
        with self._lock:
            return sum(thing.size for thing in self._things.values())

    def __len__(self) -> int:
        return len(self._things)
