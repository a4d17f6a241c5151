"""The model run again on a text with some of its tokens blanked out, by the rule of blank-out."""

from collections.abc import Sequence

from ..attribution.blank_out import blanked
from ..attribution.rerunning import blank_embeddings, default_blank, input_positions, key_embeddings, key_ids
from ..record import AttentionRecord, Model
from ..record.model import EMBEDDINGS
from .erasure import Positions


def probabilities_without(
    record: AttentionRecord, model: Model, erased: Sequence[Positions], batch_size: int
) -> tuple[float, dict[Positions, float]]:
    """The probability of the predicted outcome on the whole text, and with each of these sets of positions blanked."""
    name = EMBEDDINGS[key_ids(record)]
    embeddings, blanks = key_embeddings(record, model), blank_embeddings(record, model, default_blank(model))
    whole = model.probabilities([record.inputs])[0]
    outcome = int(whole.argmax())
    found: dict[Positions, float] = {}
    # batch by batch, as the embeddings of all variants at once grow with the square of the text
    for start in range(0, len(erased), batch_size):
        batch = erased[start : start + batch_size]
        variants = [
            {**record.inputs, name: blanked(embeddings, blanks, input_positions(record, sorted(positions)))}
            for positions in batch
        ]
        found.update(zip(batch, model.probabilities(variants, batch_size)[:, outcome].tolist(), strict=True))
    return float(whole[outcome]), found
