"""The app as a web service: FastAPI around a desk. Each answer is a file, JSON, or lines of JSON while work goes on."""

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from ..attribution.choosing import named_methods
from ..errors import BadInput
from ..views import VIEWS, View, page_html
from ..views.choices import KEPT, declaration_of
from ..views.page import HERE as VIEW_FILES
from ..views.page import style_text
from ..views.printing import file_bytes
from .asking import describe_answer
from .desk import Desk, Gone, MadeView, TooLong, describe_entry
from .opening import open_folder, open_record
from .python_code import python_of
from .requests import (
    CHARACTERS,
    CONTEXT,
    MOST_DOCUMENTS,
    AnswerRequest,
    FigureRequest,
    FolderRequest,
    Name,
    StateRequest,
    TextRequest,
    ViewRequest,
)
from .turns import Busy, Cancelled, Turns, Work

CLIENT = Path(__file__).with_name("client")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
STEP = 0.25
"""Seconds between two words on how far work is."""
MISTAKE = "This is a mistake of attnscope, not yours: where the server runs, its log has the details."
MOST_MARKS = 10_000
"""Commas and brackets in the JSON that brings a folder: 100 files have a few hundred."""
log = logging.getLogger(__name__)
FIGURES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}


class Problem(BaseModel):
    """What is wrong, in one sentence."""

    error: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": why}
    for status, why in {
        400: "What is asked for cannot be had",
        401: "The token is missing",
        403: "From another site",
        404: "Not kept any more",
        408: "Too slow",
        413: "Too large",
        421: "Another host name",
        422: "Not understood",
        503: "Busy",
    }.items()
}


def build(desk: Desk, upload_bytes: int, stopping: Callable[[], bool] = lambda: False) -> FastAPI:
    """The service around a desk; `stopping` tells whether it is about to end, and work with it."""

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPI(
        title="attnscope",
        version=version("attnscope"),
        docs_url=None,
        redoc_url=None,
        lifespan=living,
        responses=PROBLEMS,
    )
    _add_problems(app)
    _add_files(app)
    _add_work(app, desk, upload_bytes, stopping)
    _add_made_views(app, desk)
    _add_opening(app, desk)
    return app


def _add_problems(app: FastAPI) -> None:
    """Every problem is one sentence as JSON."""

    def problem(status: int, sentence: Callable[[Request, Any], str], request: Request, error: Any) -> JSONResponse:
        headers = {"Retry-After": "2"} if status == 503 else {}
        # half a character that a client has sent cannot be sent back
        told: dict[str, Any] = {"error": sentence(request, error).encode(errors="replace").decode()}
        if isinstance(error, TooLong):
            told["too_long"] = True  # so that a client can offer to leave the rest out
        return JSONResponse(told, status, headers)

    def not_understood(error: RequestValidationError) -> str:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body") or "the request"
        return f"{place[:200]}: {first['msg'].removeprefix('Value error, ')}."

    problems: dict[int | type[Exception], tuple[int, Callable[[Request, Any], str]]] = {
        Busy: (503, lambda _, error: str(error)),
        Gone: (404, lambda _, error: str(error)),
        BadInput: (400, lambda _, error: str(error)),
        RequestValidationError: (422, lambda _, error: not_understood(error)),
        404: (404, lambda request, _: f"There is nothing at {request.scope['path'][:200]}."),
        405: (405, lambda request, _: f"{request.scope['path'][:200]} cannot be asked by {request.method}."),
        400: (400, lambda *_: "What this request brings cannot be read."),
        Cancelled: (503, lambda *_: "This work was stopped."),
        Exception: (500, lambda *_: MISTAKE),  # uvicorn writes the traceback to stderr
    }
    for kind, (status, sentence) in problems.items():
        app.add_exception_handler(kind, partial(problem, status, sentence))


def _add_files(app: FastAPI) -> None:
    """The page, its scripts, and the scripts of the views; read once, so that no request names a file."""
    client = {path.name: path for path in CLIENT.iterdir() if path.suffix in KINDS}
    views = {path.name: path for path in VIEW_FILES.glob("*.js")}
    style = style_text(VIEWS) + client["app.css"].read_text(encoding="utf-8")
    served: dict[str, tuple[bytes, str]] = {
        "/": (client["index.html"].read_bytes(), KINDS[".html"]),
        "/chat": (client["chat.html"].read_bytes(), KINDS[".html"]),
        "/style.css": (style.encode(), KINDS[".css"]),
        **{f"/client/{name}": (path.read_bytes(), KINDS[path.suffix]) for name, path in client.items()},
        **{f"/views/{name}": (path.read_bytes(), KINDS[".js"]) for name, path in views.items()},
    }
    for address, (content, kind) in served.items():
        answer = Response(content, media_type=kind, headers={"cache-control": "no-cache"})
        app.add_api_route(address, partial(_same, answer), include_in_schema=False)


async def _same(answer: Response) -> Response:
    return answer


def _add_work(app: FastAPI, desk: Desk, upload_bytes: int, stopping: Callable[[], bool]) -> None:
    """Reading texts and making views, each in its turn."""

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Whether the server is there, and how much it has to do."""
        asked = sum(turns.count for turns in desk.turns)
        working = sum(turns.count > 0 for turns in desk.turns)
        return {
            "status": "ok",
            "version": version("attnscope"),
            "models": list(desk.models),
            "working": working,
            "waiting": asked - working,
            "kept_texts": len(desk.shelf),
            "kept_bytes": desk.shelf.size,
        }

    @app.get("/api/start")
    async def start() -> dict[str, Any]:
        """The models, methods and views, and what the server takes."""
        limits = {
            "characters": CHARACTERS,
            "context": CONTEXT,
            "documents": MOST_DOCUMENTS,
            "upload_bytes": upload_bytes,
        }
        return {
            "version": version("attnscope"),
            "limits": limits,
            "kept": declaration_of("any", KEPT),
            **desk.describe(),
        }

    @app.post("/api/texts")
    async def read_text(asked: TextRequest, request: Request) -> dict[str, Any]:
        """Run a model on a text, or a pair."""
        desk.model_named(asked.model)
        found: dict[str, Any] = await _in_turn(
            request,
            desk.model_turns[asked.model],
            lambda work: describe_entry(
                desk.read(
                    asked.model,
                    asked.text,
                    asked.second,
                    work,
                    target=asked.target,
                    against=asked.against,
                    truncate=asked.truncate,
                )
            ),
        )
        return found

    lines: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
    }

    @app.post("/api/answers", response_class=StreamingResponse, responses=lines)
    async def answer(asked: AnswerRequest) -> StreamingResponse:
        """Answer a question about documents: lines of JSON, some with `text` so far, at last `answer` or `error`."""
        desk.model_named(asked.model)
        work = Work()
        making = desk.model_turns[asked.model].ask(
            work, lambda work: {"answer": describe_answer(desk.answer(asked, work))}
        )
        return StreamingResponse(_lines(work, making, stopping), media_type="application/x-ndjson")

    @app.post("/api/views", response_class=StreamingResponse, responses=lines)
    async def make_view(asked: ViewRequest) -> StreamingResponse:
        """Make a view: lines of JSON, some with `progress`, the last with `view` or `error`."""
        entry = desk.entry(asked.text)
        named_methods(asked.methods or [])  # an unknown one is refused before it waits
        work = Work()
        turns = desk.turns_for(entry, asked.view, asked.methods, asked.by, asked.drops)
        making = turns.ask(
            work,
            lambda work: {
                "view": _describe_view(
                    desk.draw(entry, asked.view, asked.methods, asked.queries, work, asked.by, asked.drops)
                )
            },
        )
        return StreamingResponse(_lines(work, making, stopping), media_type="application/x-ndjson")


def _add_made_views(app: FastAPI, desk: Desk) -> None:
    """What can be had of a view that was made."""
    binary: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    }

    @app.get("/api/views/{name}/blobs/{blob}", response_class=Response, responses=binary)
    def blob(name: Name, blob: Name) -> Response:
        """One array of a view, deflated."""
        _, view = desk.made_view(name)
        if blob not in view.blobs:
            raise Gone(f"This view has no array {blob!r}.")
        headers = {"cache-control": "private, max-age=3600, immutable"}
        return Response(view.blobs[blob], media_type="application/octet-stream", headers=headers)

    @app.post("/api/views/{name}/page", response_class=Response, responses={200: {"content": {"text/html": {}}}})
    async def page(name: Name, asked: StateRequest, request: Request) -> Response:
        """The view as one offline page."""
        entry, view = desk.made_view(name)
        chosen = _select(view, asked.state)
        title = view.title or f"attnscope: {view.name}" + (f" · {entry.model_name}" if entry.model_name else "")
        html = await _in_turn(request, desk.drawing, lambda _: page_html(chosen, title))
        return _attachment(html.encode(), "text/html; charset=utf-8", f"{view.file_name}.html")

    @app.post(
        "/api/views/{name}/figure",
        response_class=Response,
        responses={200: {"content": {kind: {} for kind in FIGURES.values()}}},
    )
    async def figure(name: Name, asked: FigureRequest, request: Request) -> Response:
        """The view as a figure for a paper."""
        _, view = desk.made_view(name)
        chosen = _select(view, asked.state)
        content = await _in_turn(request, desk.drawing, lambda _: _figure(chosen, asked.format))
        return _attachment(content, FIGURES[asked.format], f"{view.file_name}.{asked.format}")

    @app.post("/api/views/{name}/code")
    async def code(name: Name, asked: StateRequest) -> dict[str, str]:
        """The Python that makes the same view."""
        entry, view = desk.made_view(name)
        return {"python": python_of(entry, view, asked.state, entry.levels[name.partition(".")[2]])}


def _add_opening(app: FastAPI, desk: Desk) -> None:
    """Files that a client opens; one at a time, because they are large."""
    body = {
        "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    }

    @app.post("/api/files", openapi_extra=body)
    async def open_file(request: Request) -> dict[str, Any]:
        """Open a saved record: its bytes are the body."""
        content = await request.body()
        opened: dict[str, Any] = await _in_turn(request, desk.opening, lambda _: open_record(desk, content))
        return opened

    folders = APIRouter(route_class=FewMarks)

    @folders.post("/api/folders")
    async def open_saved_folder(asked: FolderRequest, request: Request) -> dict[str, Any]:
        """Open a saved survey or trust table."""
        try:
            files = {file.name: base64.b64decode(file.base64, validate=True) for file in asked.files}
        except (binascii.Error, ValueError):
            raise BadInput("A file of this folder is not base64.") from None
        opened: dict[str, Any] = await _in_turn(request, desk.opening, lambda _: open_folder(desk, files))
        return opened

    app.include_router(folders)


class FewMarks(APIRoute):
    """A place whose JSON is a few long texts: millions of small things are refused before Python makes them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Count first."""
        handle = super().get_route_handler()

        async def counting(request: Request) -> Response:
            body = await request.body()
            if sum(map(body.count, (b",", b"[", b"{"))) > MOST_MARKS:
                raise BadInput("A folder is brought as a few files, and this request has far more in it.")
            return await handle(request)

        return counting


async def _in_turn(request: Request, turns: Turns, run: Callable[[Work], Any]) -> Any:
    """What comes of work in its turn, as long as someone waits for it."""
    work = Work()
    result = turns.ask(work, run)
    try:
        while not (await asyncio.wait({result}, timeout=STEP))[0]:
            if await request.is_disconnected():
                raise Cancelled
        return result.result()
    finally:
        work.wanted.clear()


async def _lines(
    work: Work, making: "asyncio.Future[dict[str, Any]]", stopping: Callable[[], bool]
) -> AsyncIterator[str]:
    """How far the work is, what a model has written so far, and at last what came of it.

    Who stops reading ends the work.
    """
    said = ""
    try:
        while not (await asyncio.wait({making}, timeout=STEP))[0]:
            if stopping():
                work.wanted.clear()
            told: dict[str, Any] = {"progress": {"done": work.done, "of": work.whole, "doing": work.doing}}
            if work.said != said:
                told["text"] = said = work.said
            yield json.dumps(told) + "\n"
        yield json.dumps(making.result()) + "\n"
    except BadInput as error:
        yield json.dumps({"error": str(error)}) + "\n"
    except Cancelled:
        yield json.dumps({"error": "This work was stopped."}) + "\n"
    except Exception:
        log.exception("Long work failed.")  # the response has begun: its last line is where this can be said
        yield json.dumps({"error": MISTAKE}) + "\n"
    finally:
        work.wanted.clear()


def _describe_view(made: MadeView) -> dict[str, Any]:
    return {
        "id": made.id,
        "name": made.view.name,
        "values": dict(made.view.part.model),
        "blobs": list(made.view.blobs),
        "figures": made.view.draw is not None,
        "carried": made.carried,
        "warnings": list(made.warnings),
    }


def _select(view: View, state: dict[str, Any]) -> View:
    """The view with what a client says is selected there, as far as it is known."""
    return view.selecting(**{name: value for name, value in state.items() if name in view.state})


def _figure(view: View, kind: str) -> bytes:
    try:
        return file_bytes(view.figure(), kind)
    except BadInput:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise BadInput("What is selected does not fit this view.") from None


def _attachment(content: bytes, kind: str, name: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
