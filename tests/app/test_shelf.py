"""Within the budget the most recently used stay."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from attnscope.app.desk import Shelf


@dataclass
class Box:
    size: int


def test_the_least_recently_used_goes_first():
    shelf = Shelf(10)
    for name in "abc":
        shelf.put(name, Box(3))
    assert shelf.get("a") is not None
    shelf.put("d", Box(3))
    assert [name for name in "abcd" if shelf.get(name)] == ["a", "c", "d"]


def test_what_has_grown_makes_others_go():
    shelf, box = Shelf(10), Box(1)
    shelf.put("a", box)
    shelf.put("b", Box(5))
    box.size = 8
    shelf.put("a", box)
    assert (shelf.get("a"), shelf.get("b")) == (box, None)


def test_what_is_there_is_not_made_again():
    shelf, made = Shelf(10), []

    def make():
        made.append(1)
        return Box(1)

    assert shelf.get_or_make("a", make) is shelf.get_or_make("a", make)
    assert made == [1]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 12)), min_size=1))
def test_the_budget_holds_but_for_the_last_one(steps):
    shelf = Shelf(10)
    for name, size in steps:
        shelf.put(name, Box(size))
        assert shelf.size <= 10 or len(shelf) == 1
        assert shelf.get(name).size == size
