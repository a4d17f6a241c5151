"""`attnscope serve`: the app in a browser."""

from pathlib import PurePath
from typing import Annotated

import typer

from ..errors import BadInput
from ..progress import working


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help='Names on the Hugging Face hub or local folders; "demo" by default.'),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; another than loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(help="What a browser must bring along: letters, digits and -._~+/=; made if it is needed."),
    ] = None,
    memory: Annotated[int, typer.Option(help="Megabytes in which recent texts and opened files are kept.")] = 1000,
    opened: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
) -> None:
    """Show in a browser what models attend to: type a text, look at it under every method and in every view.

    Example: attnscope serve demo --open
    """
    if memory < 1:
        raise BadInput(f"--memory is {memory} MB, but texts need some: give at least 1.")
    with working("Loading " + ", ".join(models or ["demo"])):
        from ..app.guard import check_token
        from ..app.process import exposure, listen_at
        from ..app.process import serve as serve_models
        from ..capture import load

        if token is not None:
            check_token(token)
        listening = listen_at(host, port)  # a port that is taken is said before a large model is loaded
        loaded = {name: load(given) for name, given in named(models or ["demo"]).items()}
    if said := exposure(host):
        typer.echo(f"attnscope: {said}", err=True)
    serve_models(
        loaded,
        listening,
        host=host,
        token=token,
        memory=memory * 1_000_000,
        open_browser=opened,
        tell=lambda address: typer.echo(f"Open {address} in a browser. Ctrl-C stops the server."),
    )


def named(models: list[str]) -> dict[str, str]:
    """Models by what a user calls them: folders by their last part, unless two share it.

    >>> named(["demo", "runs/one/model", "runs/two/model"])
    {'demo': 'demo', 'runs/one/model': 'runs/one/model', 'runs/two/model': 'runs/two/model'}
    """
    lasts = [PurePath(model).name for model in models]
    return {(model if lasts.count(last) > 1 else last): model for model, last in zip(models, lasts, strict=True)}
