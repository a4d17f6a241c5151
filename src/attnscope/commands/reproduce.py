"""`attnscope reproduce PAPER`: a paper run again; each paper has the options that it declares, and no others."""

import ast
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import BadInput
from ..progress import quiet_libraries, told_in_log, working
from .answering import AsJson, resumable, say

if TYPE_CHECKING:
    from ..reproduce import Experiment

_FOLDERS = {path.parent.name: path.parent for path in Path(__file__).parents[1].glob("reproduce/*/experiment.py")}
PAPERS = tuple(sorted(_FOLDERS, key=lambda name: (name[-4:], name)))
"""By year. The folders are looked at, because the papers themselves take seconds to import."""

Scale = Annotated[
    str,
    typer.Option(
        help="smoke (seconds, a toy model: a trial), cpu (what it needs and takes is told first), paper (as published)."
    ),
]
Out = Annotated[Path | None, typer.Option(help="The folder to write; named after the paper by default.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")]


class Paper(TyperCommand):
    """The command of one paper, which is imported when its options are asked for."""

    def __init__(self, name: str) -> None:
        introduction = ast.get_docstring(ast.parse((_FOLDERS[name] / "__init__.py").read_text(encoding="utf-8"))) or ""
        example = f"Example: attnscope reproduce {name} --scale cpu --data data --out {name}"
        super().__init__(name, help=f"{introduction}\n\n{example}")

    def get_params(self, ctx: Any) -> Any:
        """The options of every paper, and those that this one declares."""
        if self.callback is None:
            with working(f"Preparing {self.name}"):
                from ..reproduce import EXPERIMENTS

                experiment = EXPERIMENTS[str(self.name)]
            alone = typer.Typer(add_completion=False)
            alone.command(self.name)(_command_of(experiment))
            whole = typer.main.get_command(alone)
            self.params, self.callback = whole.params, whole.callback
        return super().get_params(ctx)


class Papers(TyperGroup):
    """A command for each paper."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer calls it so
        """Their names."""
        return list(PAPERS)

    def get_command(self, ctx: Any, cmd_name: str) -> Paper:  # noqa: ARG002 - typer calls it so
        """The command of a paper, if there is one of that name."""
        if cmd_name not in PAPERS:
            raise BadInput(f"There is no experiment {cmd_name!r}: choose {', '.join(PAPERS)}.")
        return Paper(cmd_name)


reproduce = typer.Typer(
    cls=Papers,
    help="Run a paper again: its figures and tables, and each claim judged here, the paper's number beside ours."
    "\n\nExample: attnscope reproduce vig2019 --scale cpu --model gpt2 --data data --out vig2019",
    no_args_is_help=True,
    add_completion=False,
)


@reproduce.callback()
def _reproduce() -> None:
    """Without this typer would make a command of a group that has none of its own."""


def _command_of(experiment: "Experiment") -> Callable[..., None]:
    """A function whose parameters are the options of a paper, as typer reads them."""
    from ..reproduce.experiment import command_options
    from ..reproduce.needs import plan_run

    @resumable()
    def run(
        *, scale: str = "smoke", out: Path | None = None, resume: bool = False, as_json: bool = False, **given: Any
    ) -> None:
        options = {name: value for name, value in given.items() if value != defaults[name]}
        # what a run that goes on has built already it needs no more
        if not resume and (plan := plan_run(experiment, scale, options)):
            say(plan, err=True)
        with quiet_libraries(), told_in_log(f"Reproducing {experiment.name}"):
            result = experiment(out or Path(experiment.name), scale=scale, resume=resume, **options)
        if as_json:
            say(json.dumps({"out": str(result.folder), "caution": result.caution, "claims": result.to_json()}))
            return
        say(result.summary())
        say(f"Written: {result.folder} (open {result.folder / 'report.html'} in a browser)")

    declared = {option.name: option for option in command_options(experiment.options)}
    defaults = {name: option.default for name, option in declared.items()}
    hints: dict[str, tuple[Any, Any]] = {"scale": (Scale, "smoke")}
    for name, option in declared.items():
        spelled = [f"--{name.replace('_', '-')}"] if option.type is bool else []
        hints[name] = (Annotated[option.type, typer.Option(*spelled, help=option.help)], option.default)
    hints |= {"out": (Out, None), "resume": (Resume, False), "as_json": (AsJson, False)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(name, keyword, default=default, annotation=hint) for name, (hint, default) in hints.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {name: hint for name, (hint, _) in hints.items()}
    return run
