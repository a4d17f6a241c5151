"""The figures of the paper's tables, as published."""

Row = dict[int, tuple[float, float]]
"""The mean and the SD over sentences, by layer from 1."""


def _row(means: str, deviations: str, layers: str = "123456") -> Row:
    figures = zip(map(float, means.split()), map(float, deviations.split()), strict=True)
    return dict(zip(map(int, layers), figures, strict=True))


TABLE_1 = {
    "raw": _row(".69 .10 -.11 -.09 .20 .29", ".27 .43 .49 .52 .45 .39"),
    "rollout": _row(".32 .38 .51 .62 .70 .71", ".26 .27 .26 .26 .25 .24"),
    "flow": _row(".32 .44 .70 .70 .71 .70", ".26 .29 .25 .22 .22 .22"),
}
"""Agreement with blank-out."""
TABLE_2 = {
    "raw": _row(".53 .16 -.06 .00 .24 .46", ".33 .38 .42 .47 .40 .35"),
    "rollout": _row(".22 .27 .39 .47 .53 .54", ".31 .32 .32 .32 .32 .31"),
    "flow": _row(".22 .31 .54 .61 .60 .61", ".31 .34 .32 .28 .28 .28"),
}
"""Agreement with input gradients."""
TABLE_3 = {
    "raw": _row(".12 .09 .08 .09", ".21 .21 .20 .21", "1356"),
    "rollout": _row(".11 .12 .13 .13", ".19 .21 .21 .20", "1356"),
    "flow": _row(".11 .11 .12 .14", ".19 .21 .22 .21", "1356"),
}
"""Agreement with input gradients in DistilBERT fine-tuned on SST-2; the paper shows four of six layers."""
