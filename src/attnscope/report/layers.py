"""The same text once per layer: where the read-out looks on its way up."""

from ..attribution import raw
from ..record import AttentionRecord
from .tokens import joined, legend, token_cells


def layers_html(record: AttentionRecord, most_cells: int) -> str:
    """One row of tokens per layer, aligned token by token; the lowest layers give way where all would be too many."""
    shown_layers = min(len(record.layers), max(1, most_cells // len(record.key_tokens)))
    hidden = len(record.layers) - shown_layers
    rows = (record.readout @ raw(record).map[hidden:]).tolist()
    largest = max(max(row) for row in rows)
    joins = joined(record.key_tokens, record.key_word_ids, record.key_special)
    lines = "".join(
        f"<tr><th scope=row dir=ltr>layer {layer}</th>"
        + token_cells("td", record.key_tokens, joins, record.key_special, row, largest, f"layer {layer} · ")
        + "</tr>"
        for layer, row in zip(record.layers[hidden:], rows, strict=True)
    )
    left_out = f" The lowest {hidden} layers are left out to keep this page small." if hidden else ""
    return (
        "<section class=layers><h3>Layer by layer</h3>"
        f"<p class=quiet>Where the read-out looks in each layer, mean over heads.{left_out}</p>"
        f"{legend(largest, 'raw attention in all layers')}"
        "<div class=scroll><table class=rows dir=auto>"
        f"<caption class=hidden>Raw attention from the read-out by layer</caption>{lines}</table></div></section>"
    )
