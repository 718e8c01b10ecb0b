"""Servers whose callers have budgets, a clock that a test moves, and a model that tells its tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import event

from dragoman import serve
from dragoman.message import Message, Usage
from dragoman.sql.prepared import PreparedStatement
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange

__all__ = ["CI", "OTHER", "Clock", "Reply", "chat", "metered_app", "model", "usage_of"]

CI, OTHER = "key-ci-0123456789", "key-other-0123456789"
PRICED = "openai:gpt-4o"
"""A model whose price is known: 2.5 dollars a million tokens of prompts, and 10 of answers."""
Reply = Callable[[Any], Any]


class Clock:
    """A time that a test moves."""

    def __init__(self, at: str = "2026-11-26T12:00:00") -> None:
        self.now = datetime.fromisoformat(at).replace(tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


def told(text: str = "Hi.", input_tokens: int = 1000, output_tokens: int = 100) -> Message:
    """An answer whose provider tells its tokens: 3,500 millionths of a dollar."""
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    return Message.model(text).replace(usage=usage)


def model(reply: Reply | None = None, like: str = PRICED) -> ScriptedModel:
    return ScriptedModel.like(like, reply or (lambda _: told()), key_required=False)


def metered_app(
    url: str, *budgets: str, reply: Reply | None = None, clock: Clock | None = None, **options: Any
) -> Any:
    """An application with the gateway's model `small` and two callers, of whom `ci` has budgets."""
    auth = [serve.Key(CI, "ci", budgets=budgets), serve.Key(OTHER, "other")]
    gateway = serve.Gateway({"small": model(reply)})
    made = serve.app(**{"gateway": gateway, "auth": auth, "store": url, "page": True} | options)
    if clock is not None:
        made.state.service.accounts.clock = clock
    return made


async def chat(app: Any, key: str = CI, most: int | None = 100, **fields: Any) -> Exchange:
    """Asks the model `small`. `most`: tokens of the answer."""
    body: dict[str, Any] = {"model": "small", "messages": [{"role": "user", "content": "Hello."}]}
    if most is not None:
        body["max_tokens"] = most
    headers = {"authorization": f"Bearer {key}"}
    behaviour = {name: fields.pop(name) for name in ("leaves_after",) if name in fields}
    return await exchange(
        app, "POST", "/v1/chat/completions", {**body, **fields}, headers=headers, **behaviour
    )


async def usage_of(app: Any, key: str = CI) -> Any:
    """What the page shows a caller."""
    got = await exchange(app, "GET", "/page/usage", headers={"authorization": f"Bearer {key}"})
    assert got.status == 200, got.body
    return got.json


@contextmanager
def counted_statements(engine: Any) -> Iterator[list[str]]:
    """The SQL that an engine executes, and all prepared statements."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    def run(self: Any, connection: Any, compiled: Any, rows: Any) -> Any:
        if connection.engine is engine:
            seen.append(compiled.text)
        return before(self, connection, compiled, rows)

    before = PreparedStatement._run
    event.listen(engine, "before_cursor_execute", note)
    PreparedStatement._run = run
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)
        PreparedStatement._run = before
