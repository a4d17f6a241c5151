"""Loops compiled by numba, kept on disk so that only the first process pays."""

from collections.abc import Callable
from typing import Any

import numba


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit` with its cache, or without one where no place for it can be written to."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            fast: Callable[..., Any] = numba.njit(cache=True, **options)(function)
        except RuntimeError:
            fast = numba.njit(**options)(function)
        return fast

    return decorate
