"""The examples of the page on the lab run."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "lab.md"


def test_the_examples_of_the_page_run() -> None:
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        names: dict[str, object] = {}
        exec(block, names)  # noqa: S102 - our own page
        for shown, value in re.findall(r"^([\w.(].*?)  # (\d+|\(.*\))$", block, re.MULTILINE):
            assert eval(shown, names) == eval(value), shown  # noqa: S307 - our own page
            checked += 1
    assert checked == 3
