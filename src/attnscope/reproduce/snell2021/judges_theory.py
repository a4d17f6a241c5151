"""How the claims that the paper derives are judged: by numbers."""

import pandas as pd

from ..judging import Finding, Unmeasured
from .evidence import Evidence

SHARP = 1e-5
"""How far two probabilities may differ that are the same in theory."""
NEAR = 0.05
"""The relative difference that the largest width may leave."""
TOLD_APART = 1e-3


def proxy_is_logistic(evidence: Evidence) -> Finding:
    """Whether the proxy and a logistic regression give each text the same probability."""
    worst = float(_table(evidence, "logistic")["difference"].abs().max())
    return Finding(f"largest difference {worst:.1g}", worst <= SHARP)


def gradient_is_cooccurrence(evidence: Evidence) -> Finding:
    """Whether the first change of the logits nears the co-occurrence table as the model grows wider."""
    table = _table(evidence, "initial_gradient")
    errors = table.groupby("width")["logits_error"].mean().sort_index()
    last = table[table["width"] == table["width"].max()]
    shown = ", ".join(f"{width:,} wide {100 * error:.1f}%" for width, error in errors.items())
    note = (
        f"Of probabilities the slope is {last['probabilities_slope'].mean():.3f}, which is 1/|O| = "
        f"{last['one_over_outputs'].iloc[0]:.3f} and not the 1 of Eq. 15."
    )
    return Finding(shown, bool((errors.diff().dropna() < 0).all() and errors.iloc[-1] < NEAR), note)


def avoids_largest(evidence: Evidence) -> Finding:
    """Whether the best attention of the paper's example leaves out the place with the largest β."""
    table = _table(evidence, "counterexample")
    largest = table["lexical"].idxmax()
    others = table.drop(index=largest)["attention"]
    shown = ", ".join(f"β {row.lexical:.3f}: {row.attention:.3f}" for row in table.itertuples())
    holds = table.loc[largest, "attention"] < TOLD_APART and bool(((others - 0.5).abs() < TOLD_APART).all())
    return Finding(shown, bool(holds))


def _table(evidence: Evidence, name: str) -> pd.DataFrame:
    if name not in evidence.theory:
        raise Unmeasured("The theory was not checked.")
    return evidence.theory[name]
