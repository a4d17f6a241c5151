"""Cases of a head's role: of the pairs that the role is about, those with the largest weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch
from jaxtyping import Bool
from torch import Tensor

from .batch import Batch, Frame
from .exemplars import Exemplars
from .layer import LayerAttention
from .pairs import Pairs
from .roles import POSITIONS, REPEATS, TAG_NAMES

SHOWN = 5


@dataclass
class RoleExemplars:
    """For each head the sentences with the largest weight on a pair that its role speaks of.

    A head that rests, or is broad or mixed, has none: its role speaks of no pairs. The roles must be known, so the
    corpus is read again for them.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    errors: ClassVar[Mapping[str, str]] = {}
    second_pass: ClassVar[None] = None

    roles: Sequence[Sequence[str]]
    """By layer and head."""
    exemplars: Exemplars

    @classmethod
    def after(cls, roles: pd.DataFrame, frame: Frame) -> "RoleExemplars":
        """One that knows the roles and has seen nothing."""
        ordered = roles.sort_values(["layer", "head"])
        by_layer = [ordered[ordered["layer"] == layer]["role"].tolist() for layer in range(frame.layers)]
        return cls(by_layer, Exemplars.empty(frame))

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        names = self.roles[attention.layer]
        about = {name: pairs_of_role(name, attention.batch) for name in set(names)}
        mask = torch.stack([about[name] for name in names], dim=1).to(attention.weights)
        self.exemplars.update(LayerAttention(attention.batch, attention.layer, attention.weights * mask))

    def state(self) -> dict[str, Any]:
        """What has been seen."""
        return self.exemplars.state()

    @staticmethod
    def table(state: Mapping[str, Any]) -> pd.DataFrame:
        """The table of what `state` gave: that of exemplars, a few of each head."""
        found = Exemplars.from_state(state).result()
        return found[found["rank"] < SHOWN].reset_index(drop=True)


def pairs_of_role(role: str, batch: Batch) -> Bool[Tensor, "sentence query key"]:
    """The pairs of tokens that a role speaks of: none where it speaks of no single ones."""
    place = torch.arange(batch.longest)
    offsets = {POSITIONS["previous"]: 1, POSITIONS["next"]: -1, POSITIONS["same"]: 0}
    if role in offsets:
        return (place.unsqueeze(1) - place == offsets[role]).expand_as(batch.kept)
    if role in REPEATS.values():
        return _mark(batch.repeated if role == REPEATS["repeated"] else batch.induction, batch)
    for number, tag in enumerate(batch.frame.tags):
        words, of_tag = TAG_NAMES.get(tag, tag), batch.tags == number
        if role in (f"to {words}", f"from {words}"):
            return of_tag.unsqueeze(1 if role.startswith("to") else 2).expand_as(batch.kept)
    for number, relation in enumerate(batch.frame.relations):
        to_head = batch.dependent_to_head & (batch.relations == number).unsqueeze(2)
        if role in (f"{relation} → its head", f"head → its {relation}"):
            return to_head if role.endswith("→ its head") else to_head.transpose(1, 2)
    return torch.zeros_like(batch.kept)


def _mark(pairs: Pairs, batch: Batch) -> Bool[Tensor, "sentence query key"]:
    marks = torch.zeros_like(batch.kept)
    marks[pairs.sentence, pairs.query, pairs.key] = True
    return marks
