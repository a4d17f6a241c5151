"""Classification, Tables 2, 3, 5, 7, 10 and 11: attention, lexical knowledge and saliency of many runs, compared."""

from functools import partial
from pathlib import Path

import pandas as pd

from ...lab.data import word_level_statistics
from .classification_data import prepared
from .classification_runs import runs_of, worker
from .classification_scale import CPU, PAPER, SMOKE, ClassificationScale
from .classification_tables import compared
from .kept_runs import all_runs

__all__ = ["CPU", "PAPER", "SMOKE", "ClassificationScale", "classification"]


def classification(
    folder: Path,
    scale: ClassificationScale,
    engine: str = "local",
    data: str | Path | None = None,
    vectors: str | Path | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables agreements, contexts, performance and statistics; what is in `folder` already is not trained again.

    Performance has a row for each run, part and checkpoint, and one for each proxy and regression; statistics are those
    of the texts that were used, as in Table 9. `data` is where data sets lie, before $ATTNSCOPE_DATA. `vectors` are
    those that words begin with; random ones by default.
    """
    folder = folder.resolve()  # the workers of a cluster stand in folders of their own
    # here first, so that each is prepared once
    texts = [prepared(folder, name, scale, data, vectors) for name in scale.data]
    runs = [run for name in scale.data for run in runs_of(name, scale)]
    rows = all_runs("Classifiers", partial(worker, folder, scale), runs, engine)
    agreements, contexts = zip(*(compared(folder, name, scale) for name in scale.data), strict=True)
    return {
        "agreements": pd.concat(agreements, ignore_index=True),
        "contexts": pd.concat(contexts, ignore_index=True),
        "performance": pd.DataFrame(rows),
        "statistics": pd.concat([word_level_statistics(each) for each in texts], ignore_index=True),
    }
