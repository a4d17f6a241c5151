"""The learning view: what drives a training, as curves over its steps; it grows while the training runs."""

from collections.abc import Sequence
from typing import Any

from ..errors import BadInput
from ..record.schema import checked
from .learning_figure import Curves, learning_figure
from .learning_rows import checked_rows
from .view import View


@checked
def learning(table: Any, title: str | None = None, quantities: Sequence[str] | None = None) -> View:
    """Curves over the steps of a training: a panel for each quantity, a curve for each name, one step read in all.

    While the training runs, `view.add(rows)` takes more rows, and a notebook that shows the view draws them in place.

    Args:
        table: A table, or a list of rows, with `step`, `quantity`, `name` (a token or a group of them, or "") and
            `value`; on request `group`, which gives the colour, and `low` and `high` for a band. It may be empty.
        title: What stands above the curves.
        quantities: Those that are shown, in this order; else all.
    """
    wanted = [quantities] if isinstance(quantities, str) else quantities
    if wanted is not None and not len(wanted):
        raise BadInput("There is no quantity to show: name at least one, or leave quantities= out for all.")
    rows = checked_rows(table)
    found = list(dict.fromkeys(rows["quantity"]))
    if found and (missing := [quantity for quantity in wanted or () if quantity not in found]):
        raise BadInput(f"There is no quantity {missing[0]!r} in these rows; there are {', '.join(found)}.")
    curves = Curves(rows, wanted, title)
    state = {"step": None, "names": None, "scale": "linear"}
    return View(
        "learning",
        curves.payload,
        state,
        curves.blobs,
        table=curves.frame,
        draw=lambda selected, width: learning_figure(curves.frame(), curves.payload, selected, width),
        grow=curves.add,
    )
