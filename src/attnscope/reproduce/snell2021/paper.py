"""The figures of Snell et al. (2021) that the report sets beside ours, in percent as the paper prints them."""

from collections.abc import Mapping
from dataclasses import dataclass

TITLE = "Snell, Zhong, Klein & Steinhardt 2021: Approximating How Single Head Attention Learns"
TITLES = {
    "imdb": "IMDB",
    "ag_news": "AG News",
    "20news": "20 NG",
    "sst": "SST",
    "amazon": "Amazon",
    "sms": "SMS",
    "multi30k": "Multi30k",
}
"""The data sets that can be had here, by their names in tables."""


@dataclass(frozen=True)
class InPaper:
    """One row of a table: agreements with the baseline, and contextualised agreements with ξ*."""

    attention_uniform: float
    """A(α, β_uf)"""
    uniform_proxy: float
    """A(β_uf, β_px)"""
    saliency_uniform: float
    """A(Δ, β_uf)"""
    attention_lexical: float | None
    """A(α, β)"""
    chance: float
    """Â"""
    context_attention_uniform: float
    context_uniform_proxy: float
    context_saliency_uniform: float
    context_attention_lexical: float | None
    best: float
    """ξ*"""
    starred: tuple[str, ...] = ()
    """The pairs that the other runs never agree more than, so that their ξ is ξ*."""


TABLE_5: Mapping[str, InPaper] = {
    "imdb": InPaper(52.55, 81.60, 61.55, 60.35, 5.30, 86.81, 88.88, 86.81, 86.81, 89.55),
    "ag_news": InPaper(39.24, 55.13, 43.08, 48.13, 6.20, 93.54, 96.05, 94.32, 94.50, 96.05, ("uniform_proxy",)),
    "20news": InPaper(65.08, 41.33, 64.82, 63.07, 5.11, 91.16, 60.75, 84.57, 84.57, 94.22),
    "sst": InPaper(19.85, 33.57, 22.45, 25.33, 8.39, 78.16, 83.53, 78.16, 82.38, 83.53, ("uniform_proxy",)),
    "amazon": InPaper(52.02, 76.78, 49.68, 62.13, 5.80, 82.48, 90.38, 82.48, 88.07, 90.38, ("uniform_proxy",)),
    "multi30k": InPaper(31.02, 34.43, 27.06, 48.78, 7.11, 43.45, 43.45, 43.45, 48.58, 66.29),
}
"""Table 5, of which Table 2 shows a part without decimals: validation data, accuracy."""
TABLE_3: Mapping[str, InPaper] = {
    "imdb": InPaper(12.77, 33.31, 12.56, None, 0.0, 70.60, 80.50, 70.60, None, 89.55),
    "ag_news": InPaper(26.31, 36.65, 20.55, None, 0.0, 89.31, 93.54, 85.85, None, 96.05),
    "20news": InPaper(16.06, 22.03, 6.50, None, 0.0, 60.75, 60.75, 60.75, None, 94.22),
    "sst": InPaper(11.68, 31.43, 15.01, None, 0.0, 76.69, 83.53, 76.69, None, 83.53, ("uniform_proxy",)),
    "amazon": InPaper(15.21, 35.84, 9.33, None, 0.0, 69.91, 88.07, 57.36, None, 90.38),
    "multi30k": InPaper(7.89, 27.54, 3.93, None, 0.0, 22.94, 36.61, 22.94, None, 66.29),
}
"""Table 3: the same with Kendall's τ."""
TABLE_7: Mapping[str, InPaper] = {
    "imdb": InPaper(51.52, 80.10, 42.85, 64.88, 5.29, 90.40, 99.95, 90.40, 95.01, 99.95, ("uniform_proxy",)),
    "ag_news": InPaper(36.97, 53.95, 43.11, 46.89, 6.17, 93.57, 98.42, 94.63, 95.54, 98.42, ("uniform_proxy",)),
    "20news": InPaper(72.36, 38.69, 71.73, 69.47, 5.32, 100.0, 65.40, 100.0, 100.0, 100.0),
    "sst": InPaper(
        21.82, 29.35, 20.48, 28.50, 8.48, 97.72, 100.0, 84.11, 100.0, 100.0, ("uniform_proxy", "attention_lexical")
    ),
    "amazon": InPaper(51.95, 77.18, 40.15, 61.78, 5.91, 87.96, 99.58, 80.98, 91.09, 99.58, ("uniform_proxy",)),
    "multi30k": InPaper(32.89, 34.67, 28.36, 56.39, 7.21, 43.27, 43.27, 43.27, 51.97, 80.76),
}
"""Table 7: Table 5 on training data."""
TABLE_4 = {"multi30k": InPaper(8.68, 27.54, 4.24, None, 0.0, 1.99, 6.91, 1.99, None, 37.89)}
"""Table 4: Table 3 with BLEU for performance."""
TABLE_6 = {"multi30k": InPaper(30.77, 34.43, 27.24, 48.70, 7.19, 11.43, 11.43, 11.43, 16.41, 37.89)}
"""Table 6: Table 5 with BLEU for performance."""
TABLE_8 = {"multi30k": InPaper(32.89, 34.67, 28.36, None, 7.16, 11.87, 11.87, 11.87, None, 52.28)}
"""Table 8: Table 7 with BLEU for performance."""
TABLE_10 = {"imdb": 9.0, "ag_news": 17.0, "20news": 19.0, "sst": 14.0, "amazon": 15.0}
"""A(α, α_fr): attention learned while everything else is frozen."""
TABLE_11 = {
    "imdb": (81.0, 84.0),
    "ag_news": (57.0, 58.0),
    "20news": (40.0, 45.0),
    "sst": (39.0, 46.0),
    "amazon": (53.0, 60.0),
}
"""A(β_uf, β_px) and A(β_uf, β_log)."""
OPTIMAL_AGREEMENT, OPTIMAL_BLEU, NETWORK_BLEU = 53.0, 38.2, 37.9
"""A.1: A(α_opt, β) on Multi30k, and the BLEU of the variant softmax(W(c + d)) against that of the main model."""


@dataclass(frozen=True)
class TextsInPaper:
    """A row of Table 9: median lengths of texts, how many there are, the vocabulary, and median lengths of outputs."""

    train_length: int
    train: int
    validation_length: int
    validation: int | None
    vocabulary: int
    train_target_length: int | None = None
    validation_target_length: int | None = None


TABLE_9: Mapping[str, TextsInPaper] = {
    "imdb": TextsInPaper(181, 25_000, 178, 4_000, 60_338),
    "ag_news": TextsInPaper(40, 60_000, 40, 3_800, 31_065),
    "20news": TextsInPaper(183, 1_197, 207, 796, 12_488),
    "sst": TextsInPaper(16, 5_130, 17, 1_421, 11_022),
    "amazon": TextsInPaper(71, 32_514, 72, 4_000, 37_110),
    "sms": TextsInPaper(13, 3_500, 13, None, 4_691),
    "multi30k": TextsInPaper(14, 29_000, 15, 1_014, 8_000, 14, 14),
}
"""Where the table gives 20 Newsgroups the vocabulary of AG News, this is the one that its number of parameters (A.8)
tells; the messages are described in A.9."""
