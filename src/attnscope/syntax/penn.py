"""Penn's tags of English words, told from what Universal Dependencies say of them."""

from collections.abc import Mapping

Features = Mapping[str, str | None]

PLAIN = {
    "ADP": "IN",
    "CCONJ": "CC",
    "DET": "DT",
    "INTJ": "UH",
    "NUM": "CD",
    "PART": "RP",
    "PRON": "PRP",
    "PUNCT": ".",
    "SCONJ": "IN",
    "SYM": "SYM",
    "X": "FW",
}
"""Parts of speech that have one tag here, whatever their features: Penn's finer ones cannot be told from them."""
NOUNS = {"NOUN": "NN", "PROPN": "NNP"}
QUALITIES = {"ADJ": "JJ", "ADV": "RB"}
DEGREES = {"Cmp": "R", "Sup": "S"}


def penn_tag(part_of_speech: str, features: Features) -> str:
    """The tag of a word by its UPOS and features; the UPOS itself where neither tells more.

    >>> penn_tag("NOUN", {"Number": "Plur"}), penn_tag("VERB", {"VerbForm": "Inf"})
    ('NNS', 'VB')
    >>> penn_tag("AUX", {"Tense": "Pres", "VerbForm": "Fin", "Number": "Sing", "Person": "3"})
    'VBZ'
    """
    if part_of_speech in NOUNS:
        return NOUNS[part_of_speech] + "S" * (features.get("Number") in {"Plur", "Ptan"})
    if part_of_speech in QUALITIES:
        return QUALITIES[part_of_speech] + DEGREES.get(features.get("Degree") or "", "")
    if part_of_speech in {"VERB", "AUX"}:
        return _verb(features)
    return PLAIN.get(part_of_speech, part_of_speech)


def _verb(features: Features) -> str:
    form, tense = features.get("VerbForm"), features.get("Tense")
    if form == "Ger" or (form == "Part" and tense == "Pres"):
        return "VBG"
    if form == "Part":
        return "VBN"
    if form == "Fin" and tense == "Past":
        return "VBD"
    if form == "Fin" and tense == "Pres":
        third_singular = features.get("Number") == "Sing" and features.get("Person") in {"3", None}
        return "VBZ" if third_singular else "VBP"
    # "can" and "will" are finite and have no tense
    return "MD" if form == "Fin" and features.get("Mood") != "Imp" else "VB"
