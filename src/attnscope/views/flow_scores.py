"""What rollout and flow say of every token, from the sources and layers they were computed for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8

from ..record import AttentionRecord
from .sides import shown
from .tables import token_column

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FlowScores:
    """Scores by layer, source and token; layers by their places."""

    layers: tuple[int, ...]
    sources: tuple[int, ...]
    rollout: Float[np.ndarray, "layer source token"]
    flow: Float[np.ndarray, "layer source token"]
    ends: UInt8[np.ndarray, "layer source token"]
    """Where a flow is just a trivial cut: 1 for what the source can give, 2 for what the token can take, 3 for both."""
    saturation: tuple[tuple[int, float, float, float], ...]
    """For each layer the shares of flows at either trivial cut, at the source's, and at the token's."""

    def to_frame(self, record: AttentionRecord, maps: Float[np.ndarray, "layer token token"]) -> "pd.DataFrame":
        """A row for each method, layer, query and key; raw attention is the row of the pooled map."""
        import pandas as pd

        rows = maps[list(self.layers)][:, list(self.sources)]
        tables = {"raw": rows, "rollout": self.rollout, "flow": self.flow}
        layer, source, key = np.indices(rows.shape).reshape(3, -1)
        tokens = shown(record.tokens)
        query = np.array(self.sources, dtype=int)[source]
        columns = {
            "layer": np.array(record.layers)[np.array(self.layers, dtype=int)[layer]],
            "query": query,
            "key": key,
            "query_token": token_column(tokens, query),
            "key_token": token_column(tokens, key),
        }
        return pd.concat(
            [pd.DataFrame({"method": name, **columns, "value": table.reshape(-1)}) for name, table in tables.items()],
            ignore_index=True,
        )
