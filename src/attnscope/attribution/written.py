"""What an encoder-decoder wrote, token by token, each with the words of the source that rollout finds in it."""

from dataclasses import dataclass, replace
from typing import Any

from ..record import AttentionRecord, TokenScores, readable
from ..record.words import Level
from .rollout import rollout


@dataclass(frozen=True, eq=False)
class Written:
    """One token that was written, and its rollout over the words of the source."""

    token: str
    scores: TokenScores

    @property
    def name(self) -> str:
        """The token as it is read."""
        return readable([self.token])[0].strip() or repr(self.token)

    @property
    def source(self) -> list[tuple[str, float]]:
        """The words of the source with their scores, without special tokens."""
        scored = zip(readable(self.scores.tokens), self.scores.scores.tolist(), self.scores.special, strict=True)
        return [(word.strip(), score) for word, score, special in scored if not special]

    def to_dict(self) -> dict[str, Any]:
        """The token and its scores as plain data, ready for JSON."""
        return {"token": self.token, "scores": self.scores.scores.tolist()}


def written_from(record: AttentionRecord, by: Level = "word") -> tuple[Written, ...]:
    """Each token that was written, with its rollout over the source; none where a record has one stack.

    A token is foretold at the position before it; what the last position foretells is the prediction.
    """
    if not record.has_all_stacks:
        return ()
    scores = rollout(record)
    tokens = (*record.query_tokens[1:], *(label for label, _ in record.prediction[:1]))
    return tuple(
        Written(token, replace(scores, scores=row, prefix=None, warnings=()).sum_by(by))
        for token, row in zip(tokens, scores.map[-1], strict=False)
    )
