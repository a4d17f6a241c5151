"""What statistics, columns and labels are called on the screen."""

from ..statistics import STATISTICS, Caption

NAMES = {
    "head_to_dependent": "head → dependent",
    "dependent_to_head": "dependent → head",
    "either": "either way",
    "to": "to",
    "from": "from",
    "any": "any relation",
    "tag": "Tag",
    "direction": "Direction",
    "relation": "Relation",
    "pattern": "Pattern",
    "value": "Value",
    "chance": "By chance",
    "best_offset": "Best fixed offset",
    "offset_value": "A head at the best fixed offset",
    "focus": "Focus: share along the link where one exists",
    "focus_offset": "Best fixed offset for focus",
    "focus_offset_value": "Focus at the best fixed offset",
    "signed": "Signed: attending minus attended",
    "one_token": "Share of the most attended token of a sentence",
    "one_token_chance": "Share of the most attended token, by chance",
    "rows": "Rows counted",
    "rows_share": "Share of rows counted",
    "sentences": "Sentences counted",
}


def caption_of(statistic: str) -> Caption:
    """The caption of a statistic; one of the user's own gets its name, readable."""
    known = STATISTICS.get(statistic)
    return Caption(name_of(statistic)) if known is None else known.caption


def name_of(name: str) -> str:
    """A column or a label as a reader sees it.

    >>> name_of("head_to_dependent"), name_of("nsubj"), name_of("my_column")
    ('head → dependent', 'nsubj', 'My column')
    """
    if name in NAMES:
        return NAMES[name]
    return name.replace("_", " ").capitalize() if "_" in name else name
