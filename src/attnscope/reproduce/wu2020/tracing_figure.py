"""Figure 3: the attention of one sentence handed down from layer to layer."""

from ...lab.models import SentimentTransformer
from ...views import tracing
from ...views.printing import Plot

SENTENCE = "this wonderful film is dull and clumsy"
"""Written for this, of words that the toy treebank has too."""


def traced_sentence(model: SentimentTransformer) -> Plot:
    """The printed tracing view of a sentence with both kinds of feeling."""
    return tracing(model.instrumented().record(SENTENCE.split())).figure()
