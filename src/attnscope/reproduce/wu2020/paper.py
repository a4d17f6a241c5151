"""The figures of Wu, Nguyen & Ong (2020) that the report sets beside ours."""

ACCURACY, CONCORDANCE = 0.475, 0.54
"""SST-5 (Table 1, in percent there), and the mean concordance per transcript of SEND."""
T_QUADRATIC = {"sst": 7.04, "send": 6.21}
"""t of the quadratic term for layer-wise tracing (Fig. 5)."""
P_GRADIENT = {"sst": 0.19, "send": 0.28}
SPEARMAN = {"sst": 0.80, "send": 0.37}
"""Between layer-wise tracing and gradients, over words."""
