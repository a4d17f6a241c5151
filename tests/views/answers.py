"""Answers made by hand for the tests of their view: documents, words, scores and drops of which all is known."""

import numpy as np

from attnscope.views.answer_scene import AnswerMethod, AnswerScene, Part, Passage

SKERRY = (
    "The lighthouse at Skerry Point was finished in 1854. |It stands on a rock two miles off the coast. |"
    "Its light is seen from far away."
)
RAILWAY = (
    "The first train reached the harbour in 1871. |The station was built of <b>red</b> brick.\n\n|"
    "A new line was opened in 1903."
)
HARBOUR = "Fishing boats leave before dawn. |The market is held on Tuesdays."
TOKENS = "The| light|house| was| finished| in| |1|8|5|4|,| on| a| rock|."
WORDS = [[0], [1, 2], [3], [4], [5], [6, 7, 8, 9, 10], [11], [12], [13], [14], [15]]
YEAR = WORDS[5]


def scene_of(repeats: int = 1) -> AnswerScene:
    """An answer whose year comes of the first sentence, and whose rock of the second; `repeats` makes it long."""
    parts, passages = [], []
    for time in range(repeats):
        for name, text in {"Lighthouses": SKERRY, "The railway": RAILWAY, "The harbour": HARBOUR}.items():
            parts.append(Part(f"{name} {time + 1}" if time else name, "document"))
            passages += [Passage(sentence, len(parts) - 1) for sentence in text.split("|")]
    documents = len(parts)
    for name, kind, texts in (
        ("Question", "question", ["When was the lighthouse finished?"]),
        ("system", "turn", ["You are a helpful assistant."]),
        ("Own words", "answer", [TOKENS.replace("|", "")]),
        ("Markers and sinks", "marker", ["<|im_start|>", "<|im_end|>"]),
    ):
        parts.append(Part(name, kind))
        passages += [Passage(text, len(parts) - 1) for text in texts]
    tokens = TOKENS.split("|")
    random = np.random.default_rng(0)
    shares = random.gamma(0.3, 1, (len(tokens), len(passages)))
    shares[:, -2] += 3
    shares[YEAR, 0] += 9
    shares[14, 1] += 9
    shares /= shares.sum(1, keepdims=True)
    signed = random.normal(0, 0.3, (len(tokens), len(passages)))
    signed[YEAR, 0] += 3
    drops = np.full((len(tokens), len(parts)), np.nan)
    drops[:, :documents] = random.normal(0, 0.01, (len(tokens), documents))
    drops[YEAR, 0] += 0.5
    return AnswerScene(
        texts=tokens,
        words=WORDS,
        probabilities=random.uniform(0.3, 1, len(tokens)),
        parts=parts,
        passages=passages,
        methods=[
            AnswerMethod("rollout", shares, ("it <i>rests</i> on sinks",)),
            AnswerMethod("gradient_x_input", signed),
        ],
        drops=drops,
        drop_of_all=np.nansum(drops, axis=1) * 1.2,
    )
