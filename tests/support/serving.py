"""A server whose model does what a test wants, in time that passes at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from dragoman import serve
from dragoman.event import Event
from dragoman.fold import unfold
from dragoman.message import Message
from dragoman.result import ModelInfo
from dragoman.serve.core.call import Call
from dragoman.serve.http.limits import ServerLimits
from dragoman.testing import ScriptedModel

__all__ = ["ASKS", "Scripted", "asking", "in_a_thread", "served"]

ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai_chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi."}]}),
    "openai_responses": ("/v1/responses", {"input": "Hi."}),
    "anthropic": (
        "/v1/messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]},
    ),
    "google": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]},
    ),
    "ollama": ("/api/chat", {"messages": [{"role": "user", "content": "Hi."}]}),
    "mistral": ("/mistral/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi."}]}),
    "cohere": ("/v2/chat", {"messages": [{"role": "user", "content": "Hi."}]}),
    "google_interactions": ("/v1beta/interactions", {"input": "Hi."}),
    "bedrock_converse": (
        "/model/m/converse",
        {"messages": [{"role": "user", "content": [{"text": "Hi."}]}]},
    ),
}
"""Wire → path and body of a chat, without model and stream."""


class Scripted:
    """A backend: steps are events, or seconds to wait, or an exception to raise."""

    edits = True
    detaches = references = False
    working_memories = ()
    has_threads_in_memory = False

    def __init__(self, *steps: Event | float | Exception | Message) -> None:
        self._steps = steps
        self.running = 0
        """Answers that are being made."""
        self.finished = 0
        """Answers that came to their end."""

    async def models(self) -> Sequence[ModelInfo]:
        return [ModelInfo("m", "scripted")]

    def serves(self, model: str) -> bool:
        return model == "m"

    def check_keys(self) -> dict[str, Any]:
        return {}

    def admit(self, call: Call) -> Call:
        return call

    def remembers(self, *_: object) -> bool:
        return True

    async def answer(self, *_: object) -> AsyncGenerator[list[Event], None]:
        self.running += 1
        try:
            for step in self._steps:
                if isinstance(step, (int, float)):
                    await asyncio.sleep(step)
                elif isinstance(step, Exception):
                    raise step
                else:
                    yield unfold([step]) if isinstance(step, Message) else [step]
            self.finished += 1
        finally:
            self.running -= 1

    async def embed(self, *_: object) -> Any:
        raise NotImplementedError


def served(
    *steps: Event | float | Exception | Message, limits: ServerLimits | None = None, **how: Any
) -> tuple[Any, Scripted]:
    """A server with such a backend."""
    app = serve.app(gateway=serve.Gateway({"m": ScriptedModel("x")}), limits=limits, **how)
    backend = Scripted(*steps)
    app.state.service.backends = (backend,)
    return app, backend


def asking(wire: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
    """Path and body of a chat."""
    path, body = ASKS[wire]
    if wire == "google":
        return path.replace(
            "generateContent", "streamGenerateContent?alt=sse"
        ) if stream else path, body
    if wire == "bedrock_converse":
        return f"{path}-stream" if stream else path, body
    return path, {"model": "m", "stream": stream, **body}


@contextmanager
def in_a_thread(app: Any, *, outside: Any = lambda app: app) -> Generator[str]:
    """Serves an application over HTTP in a thread → its URL. `outside`: puts something around it."""
    begun, urls = threading.Event(), []

    async def main() -> None:
        def ready(url: str) -> None:
            urls.append(url)
            begun.set()

        ends.append((asyncio.get_running_loop(), asyncio.current_task()))
        await serve.serve_http(outside(app), port=0, ready=ready)

    def work() -> None:
        try:
            asyncio.run(main())
        except asyncio.CancelledError:
            pass
        finally:
            begun.set()

    ends: list[Any] = []
    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    try:
        yield urls[0]
    finally:
        [(loop, task)] = ends
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
