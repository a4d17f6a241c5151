"""The tracing view: attention handed down from the read-out to the input, a dot for each head, layer and token."""

from typing import Any

import numpy as np

from ..record import AttentionRecord, TokenScores
from ..record.schema import checked
from .choices import known
from .sides import title_of
from .tracing_figure import tracing_figure
from .tracing_values import FAINTEST_LINE, Trace, trace_frame, trace_of
from .view import View
from .weights import deflated

LONG = 40
"""Tokens beyond which the view opens on a square-root scale."""


@checked
def tracing(
    scores: TokenScores | AttentionRecord,
    layer: int | None = None,
    head: int | None = None,
) -> View:
    """Where the attention of the read-out goes, layer by layer: the darker a dot, the more has gathered there.

    Wu, Nguyen & Ong 2020, Fig. 3: heads side by side, layers from the read-out at the top down to the input, whose
    text stands below. Of a record the lines between layers are drawn too; scores hold the dots alone.

    Args:
        scores: What `attnscope.layerwise_tracing(record)` returns, or a record to trace.
        layer: The layer that the text shows, by its number or from the end; the first, on the input, by default.
        head: The head to open enlarged; by default all are side by side.
    """
    trace = trace_of(scores)
    payload = {
        "keys": trace.side,
        "trace": {
            "layers": list(trace.layers),
            "heads": list(trace.heads),
            "readout": trace.readout is not None,
            "lines": _line_counts(trace),
            "faintest_line": FAINTEST_LINE,
            "lines_left_out": 0.0 if trace.lines is None else trace.lines.left_out,
            "warnings": list(trace.warnings),
        },
    }
    state: dict[str, Any] = {
        "layer": known(layer, trace.layers, "layer"),
        "head": None if head is None else known(head, trace.heads, "head"),
        "words": False,
        "special": True,
        "threshold": 0.0,
        # in a long text each token holds little: on a linear scale it would be all but blank
        "root": len(trace.side["texts"]) > LONG,
        "lines": True,
        "keys": [],
    }
    return View(
        "tracing",
        payload,
        state,
        _blobs(trace),
        table=lambda: trace_frame(trace),
        draw=lambda selected, width: tracing_figure(trace, selected, width),
        choices={"layer": trace.layers, "head": (None, *trace.heads), "keys": range(len(trace.side["texts"]))},
        title=title_of("tracing", trace.side, scores if isinstance(scores, AttentionRecord) else None),
    )


def _line_counts(trace: Trace) -> int | None:
    return None if trace.lines is None else len(trace.lines.values)


def _blobs(trace: Trace) -> dict[str, bytes]:
    """The dots as 32-bit floats `[layer, head, token]` after the read-out, and the lines by columns."""
    readout: list[Any] = [] if trace.readout is None else [trace.readout.numpy().astype(np.float32)]
    blobs = {"trace": deflated(*readout, trace.values.numpy().astype(np.float32))}
    if trace.lines is not None:
        places = trace.lines.places.numpy().astype(np.uint16)
        blobs["lines"] = deflated(trace.lines.values.numpy().astype(np.float32), np.ascontiguousarray(places.T))
    return blobs
