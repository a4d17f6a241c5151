"""What explain and report are asked alike: which methods, about what, and for how long."""

from typing import Annotated, Literal

import typer

from .answering import seconds_of

Methods = Annotated[
    list[str] | None,
    typer.Option("--methods", help='A method to ask; may be given again. "all", however long it takes.'),
]
Target = Annotated[str | None, typer.Option(help="The outcome to explain, a label or a token, not the predicted one.")]
Against = Annotated[
    str | None, typer.Option(help="Another outcome: why is the answer not that? Methods follow the logit difference.")
]
By = Annotated[Literal["token", "word", "sentence"], typer.Option(help="What gets a score each.")]
Signed = Annotated[
    bool,
    typer.Option("--signed/--unsigned", help="Tell what speaks for the outcome from what speaks against it, or not."),
]
Replacement = Annotated[
    str | None, typer.Option(help="What blank-out puts in a word's place: unk, mask, pad, delete or zero.")
]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut a text that is too long for the model.")]
Budget = Annotated[
    float,
    typer.Option(
        parser=seconds_of,
        metavar="TIME",
        help="For slow methods, all texts together (90s, 2m, 1h); what does not fit is named.",
    ),
]
