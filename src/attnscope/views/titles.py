"""What each statistic is called on the screen, in which unit, and what it means in one sentence."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """The name, the unit and the meaning of a statistic."""

    title: str
    unit: str = ""
    meaning: str = ""


STATISTICS = {
    "part_of_speech": Words(
        "Part of speech",
        "share of attention",
        "How much of the head’s attention goes to, or comes from, tokens of a tag.",
    ),
    "dependency_alignment": Words(
        "Dependency alignment",
        "share of attention",
        "How much of the head’s attention runs along a syntactic dependency.",
    ),
    "dependency_type": Words(
        "Relation attended to",
        "share of attention",
        "How much of the head’s attention goes to tokens that bear a relation.",
    ),
    "distance": Words(
        "Distance", "tokens", "How far the head looks: the mean distance of attending and attended token."
    ),
    "entropy": Words("Entropy", "nats", "How broadly the head looks: 0 is one token only."),
    "variability": Words(
        "Variability",
        "share",
        "How much the pattern changes with the text: 0 is bound to position alone, 1 to content.",
    ),
    "null_attention": Words(
        "Null attention", "share of attention", "How much attention goes to tokens that stand for none."
    ),
    "patterns": Words("Pattern", "share of attention", "How much of the head’s attention follows a simple pattern."),
}
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


def words_of(statistic: str) -> Words:
    """The words for a statistic; one of the user's own gets its name, readable."""
    return STATISTICS.get(statistic) or Words(name_of(statistic))


def name_of(name: str) -> str:
    """A column or a label as a reader sees it.

    >>> name_of("head_to_dependent"), name_of("nsubj"), name_of("my_column")
    ('head → dependent', 'nsubj', 'My column')
    """
    if name in NAMES:
        return NAMES[name]
    return name.replace("_", " ").capitalize() if "_" in name else name
