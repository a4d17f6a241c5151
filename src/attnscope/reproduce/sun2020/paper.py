"""The figures of Sun & Lu (2020) that the report sets beside ours."""

from .scales import SCALINGS

TITLES = {"sst": "SST", "imdb": "IMDB", "20news1": "20News I", "20news2": "20News II"}
NAMES = {"dot": "DP", "dot_lstm": "DP-L", "dot_affine": "DP-A", "additive": "AD"}
_TABLE_2 = {
    "sst": {
        "dot": (55.3, 74.4, 82.2, 81.4, 80.8, 81.2, 79.6),
        "dot_lstm": (79.8, 81.2, 81.7, 80.9, 82.0, 81.1, 81.4),
        "dot_affine": (67.9, 73.4, 80.8, 81.0, 81.5, 80.7, 79.3),
        "additive": (62.8, 73.4, 80.3, 81.2, 79.9, 80.8, 80.8),
    },
    "20news1": {
        "dot": (54.8, 88.4, 92.8, 93.5, 93.3, 92.8, 92.8),
        "dot_lstm": (88.6, 93.0, 91.2, 92.2, 92.3, 91.2, 92.0),
        "dot_affine": (78.6, 85.3, 92.8, 93.5, 92.2, 92.8, 93.0),
        "additive": (49.4, 87.6, 92.0, 91.2, 91.7, 93.3, 92.0),
    },
    "imdb": {
        "dot": (55.5, 79.5, 89.2, 89.6, 89.8, 89.3, 89.3),
        "dot_lstm": (87.7, 88.2, 87.8, 88.1, 87.2, 88.3, 88.4),
        "dot_affine": (73.3, 85.4, 89.6, 89.6, 89.1, 89.2, 88.9),
        "additive": (69.8, 83.7, 88.2, 89.6, 88.5, 88.8, 88.9),
    },
    "20news2": {
        "dot": (31.8, 85.4, 93.4, 94.9, 94.9, 94.9, 94.5),
        "dot_lstm": (90.1, 92.3, 93.4, 94.2, 92.3, 93.1, 93.8),
        "dot_affine": (64.6, 88.3, 91.7, 93.3, 92.9, 92.9, 92.5),
        "additive": (59.2, 86.7, 90.0, 92.1, 93.8, 92.9, 92.9),
    },
}
TABLE_1 = {
    "sst": ("18", "16,174", "3610/3310", "444/428", "909/912"),
    "imdb": ("183", "63,311", "8539/8673", "2113/2191", "2174/2189"),
    "20news1": ("185", "17,584", "624/612", "156/154", "195/192"),
    "20news2": ("187", "29,433", "794/790/716", "91/70/79", "84/100/90"),
}
"""Mean length, words (three special tokens among them), and texts by class of training, dev and test."""


def accuracy_in_paper(data: str, variant: str, scaling: float) -> float:
    """What Table 2 has, in percent."""
    return _TABLE_2[data][variant][SCALINGS.index(scaling)]
