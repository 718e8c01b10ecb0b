"""Counts what one request costs in files, carrying types and SQL statements.

    python scripts/walk.py                 every scene, one line each
    python scripts/walk.py responses       one scene, with its files, types and statements

A scene is one HTTP request through `serve.app`, in this process, before a provider that answers
with canned bytes. The first request of a scene warms caches and makes tables; the second is
measured. Three things are counted:

- files: modules of dragoman that a call entered (`sys.setprofile`, in all threads);
- types: classes whose instances carried the user's question between the request's arrival and the
  provider, however they held it: as its text, as a message, or as a list of messages;
- statements: SQL statements of all databases, with those that begin or end a transaction left out.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

import dragoman
from dragoman import Agent, Memory, serve, tool
from dragoman.message import Message, Role
from dragoman.request import HttpRequest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.asgi import exchange

ROOT = str(Path(dragoman.__file__).parent)
QUESTION = "Which way does the river flow?"
SKIPPED_TYPES = {"Message", "TextPart", "HttpRequest"}
"""What every conversation consists of, and what leaves for the provider."""


class Walk(msgspec.Struct, frozen=True):
    """What was counted while one request was answered."""

    files: tuple[str, ...]
    """Modules that were entered, as paths below the package."""
    types: tuple[str, ...]
    """Classes that carried the question to the provider, in the order in which they appeared."""
    statements: tuple[str, ...]
    """SQL statements, in order."""

    def __str__(self) -> str:
        return (
            f"{len(self.files)} files, {len(self.types)} types, {len(self.statements)} statements"
        )


class Response:
    """A provider's answer, in one read."""

    def __init__(self, body: bytes) -> None:
        self.status = 200
        self.headers = {"content-type": "text/event-stream"}
        self._reads = [body]

    async def read(self) -> bytes:
        """The whole body, then its end."""
        return self._reads.pop() if self._reads else b""

    async def close(self) -> None:
        """Nothing is open."""


class CannedProvider:
    """A transport that answers each request with the same bytes, and notes when one arrives."""

    def __init__(self, body: bytes, on_request: Callable[[], None]) -> None:
        self._body = body
        self._on_request = on_request

    async def send(self, request: HttpRequest) -> Response:  # noqa: ARG002 - the transport protocol
        """Answers a request."""
        self._on_request()
        return Response(self._body)

    async def close(self) -> None:
        """Nothing is open."""


class Recorder:
    """Counts while `active`. It stays installed in each thread, since a thread keeps its
    profiler."""

    def __init__(self) -> None:
        self.active = False
        self.files: dict[str, None] = {}
        self.types: dict[str, None] = {}
        self.statements: list[str] = []
        self.is_inbound = False

    def start(self) -> None:
        """Forgets what was counted before, and counts from here."""
        self.files, self.types, self.statements = {}, {}, []
        self.active = self.is_inbound = True

    def reach_provider(self) -> None:
        """Ends the way in: what carries the question from here on is an answer or a record."""
        self.is_inbound = False

    def stop(self) -> Walk:
        """Stops counting."""
        self.active = False
        return Walk(tuple(self.files), tuple(self.types), tuple(self.statements))

    def profile(self, frame: FrameType, event: str, value: Any) -> None:
        """The hook of `sys.setprofile`."""
        if not self.active or event not in {"call", "return"}:
            return
        path = frame.f_code.co_filename
        if not path.startswith(ROOT):
            return
        if event == "call":
            self.files[path[len(ROOT) + 1 :]] = None
        if self.is_inbound:
            values = frame.f_locals.values() if event == "call" else [value]
            for carrier in values:
                self._note_type(carrier)

    def note_statement(self, *arguments: Any) -> None:
        """The hook of SQLAlchemy, before a statement is sent."""
        statement: str = arguments[2]
        if self.active and not statement.upper().startswith(
            ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA")
        ):
            self.statements.append(" ".join(statement.split()))

    def _note_type(self, carrier: Any) -> None:
        module, name = type(carrier).__module__, type(carrier).__name__
        # With its module, since two classes of one name are two types.
        qualified_name = f"{module}.{name}"
        if qualified_name in self.types or name in SKIPPED_TYPES:
            return
        if module.startswith("dragoman") and carries_question(carrier):
            self.types[qualified_name] = None


def carries_question(carrier: Any) -> bool:
    """True if an attribute of `carrier` holds the question's text or message."""
    if isinstance(carrier, msgspec.Struct):
        names: tuple[str, ...] = carrier.__struct_fields__
    else:
        names = tuple(getattr(carrier, "__dict__", ())) or tuple(getattr(carrier, "__slots__", ()))
    return any(holds_question(getattr(carrier, name, None)) for name in names)


def holds_question(value: Any, depth: int = 2) -> bool:
    """True if `value` is the question, or a container at most `depth` levels above it."""
    if isinstance(value, str):
        return value == QUESTION
    if isinstance(value, bytes):
        return QUESTION.encode() in value
    if isinstance(value, Message):
        return value.role is Role.USER and value.text == QUESTION
    if not depth:
        return False
    if isinstance(value, Mapping):
        return any(holds_question(item, depth) for item in itertools.islice(value.values(), 30))
    if isinstance(value, (list, tuple)):
        return any(holds_question(item, depth - 1) for item in value[-30:])
    return False


CHAT_ANSWER = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"role":"assistant","content":"Down"}}]}\n\n'
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"content":"hill."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
GOOGLE_ANSWER = (
    b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Downhill."}]},'
    b'"finishReason":"STOP","index":0}],"modelVersion":"gemini-2.5-flash"}\n\n'
)


@tool
def look_up(place: str) -> str:
    """Looks a place up."""
    return place


def serve_agent(recorder: Recorder, folder: Path) -> Any:
    """An agent with a tool and a memory; memory and server share one SQLite file."""
    url = f"sqlite:///{folder}/walk.db"
    provider = CannedProvider(CHAT_ANSWER, recorder.reach_provider)
    model = Agent(
        "openai:gpt-4o", api_key="none", transport=provider, tools=[look_up], memory=Memory(url)
    )
    return serve.app(model, store=url)


def serve_gateway(recorder: Recorder, _folder: Path) -> Any:
    """A gateway from Anthropic's API to Gemini."""
    provider = CannedProvider(GOOGLE_ANSWER, recorder.reach_provider)
    models = {"small": "google:gemini-2.5-flash"}
    gateway = serve.Gateway(models, transport=provider, environment={"GEMINI_API_KEY": "none"})
    return serve.app(gateway=gateway, store=None)


def ask_responses(turn: int) -> tuple[str, Any]:
    """A question to the agent as a model of Responses, in a named conversation."""
    body = {"model": "default", "input": text_of(turn), "stream": True, "conversation": "conv_walk"}
    return "/v1/responses", body


def ask_ag_ui(turn: int) -> tuple[str, Any]:
    """A question over AG-UI, with the client's whole copy."""
    message = {"id": f"u{turn}", "role": "user", "content": text_of(turn)}
    body = {"threadId": "walk", "runId": f"run{turn}", "protocolVersion": "1.0"}
    return "/ag-ui", {
        **body,
        "messages": [message],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
    }


def ask_a2a(turn: int) -> tuple[str, Any]:
    """A question over A2A, in a context."""
    part = {"text": text_of(turn)}
    message = {"messageId": f"u{turn}", "contextId": "walk", "role": "ROLE_USER", "parts": [part]}
    return "/a2a", {
        "jsonrpc": "2.0",
        "id": turn,
        "method": "SendMessage",
        "params": {"message": message},
    }


def ask_anthropic(turn: int) -> tuple[str, Any]:
    """A question to the gateway over Anthropic's API."""
    messages = [{"role": "user", "content": text_of(turn)}]
    return "/v1/messages", {
        "model": "small",
        "max_tokens": 99,
        "stream": True,
        "messages": messages,
    }


def text_of(turn: int) -> str:
    """The measured question in the last turn; another one before."""
    return QUESTION if turn else "Is this a river?"


SCENES: dict[str, tuple[Callable[[Recorder, Path], Any], Callable[[int], tuple[str, Any]]]] = {
    "responses": (serve_agent, ask_responses),
    "ag_ui": (serve_agent, ask_ag_ui),
    "a2a": (serve_agent, ask_a2a),
    "gateway": (serve_gateway, ask_anthropic),
}
"""Name → what makes the server, and what makes the request of a turn."""


def measure(scene: str) -> Walk:
    """Answers two requests of a scene and counts the second.

    Raises:
        RuntimeError: the server refused a request.
    """
    from sqlalchemy import Engine, event

    recorder = Recorder()
    event.listen(Engine, "before_cursor_execute", recorder.note_statement)
    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(_measure(scene, recorder, Path(folder)))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType] - the stub lacks None
        event.remove(Engine, "before_cursor_execute", recorder.note_statement)


async def _measure(scene: str, recorder: Recorder, folder: Path) -> Walk:
    make, ask = SCENES[scene]
    app = make(recorder, folder)
    async with app.router.lifespan_context(app):
        for turn in (0, 1):
            path, body = ask(turn)
            if turn:
                recorder.start()
            answer = await exchange(
                app, "POST", path, body, headers={"content-type": "application/json"}
            )
            if answer.status != 200:
                raise RuntimeError(
                    f"{scene}: {path} answered {answer.status}: {answer.body[:400]!r}"
                )
        return recorder.stop()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("scene", nargs="?", choices=SCENES, help="print this one in full")
    chosen = parser.parse_args().scene
    for scene in [chosen] if chosen else SCENES:
        walk = measure(scene)
        print(f"{scene:10} {walk}")
        if chosen:
            print(*("", "types:", *walk.types), sep="\n  ")
            print(*("", "statements:", *walk.statements), sep="\n  ")
            print(*("", "files:", *walk.files), sep="\n  ")


if __name__ == "__main__":
    main()
