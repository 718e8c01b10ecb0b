"""The text stream of an object, which `useObject` of the AI SDK reads: the JSON of a typed answer
while the model writes it.

Nothing sent can be taken back. So text that is no JSON is held until the run succeeded, as
are answers that output checks may change. If an answer is void after some of it was sent, the stream
is cut, and never followed by another answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman import json_bytes
from dragoman.errors import InvalidRequestError, StreamCutError
from dragoman.event import Event, RunError, RunFinished
from dragoman.message import Message
from dragoman.orchestration.shown_output import ShownOutput
from dragoman.request import RunRequest
from dragoman.runs.visible import Visible
from dragoman.serve.apis.runs import begin_run
from dragoman.serve.core.agents import find_agent
from dragoman.serve.core.background import read_run
from dragoman.serve.core.call import Call
from dragoman.serve.core.client_events import ClientEvents

__all__ = ["ObjectText", "stream_object"]

_TEXT_TYPE = "text/plain; charset=utf-8"
_OPENINGS = ("{", "[")
"""How the text of a value begins that is sent while it is written. Words before a call of a tool, or
around a value, do not begin so."""


async def stream_object(call: Call) -> None:
    """Runs an agent with a typed answer on an input, and streams the JSON text of the answer. The run
    ends if its client leaves.

    Raises:
        InvalidRequestError: the agent's answers have no schema, there is no input, or the run waits for
            something that this stream cannot ask for.
        StreamCutError: the answer was withdrawn after some of it was sent.
        DragomanError: the run cannot begin, or failed.
    """
    served = find_agent(call, call.parameters.get("model", ""))
    if served.policy.output_schema is None:
        raise InvalidRequestError(
            "this agent answers with text; serve it with AgentPolicy(output_schema=…)"
        )
    request = RunRequest(messages=(Message.user(_read_input(call)),))
    run_id = await begin_run(call, request, served)
    text, events = ObjectText(is_held=bool(served.agent.output_checks)), ClientEvents(call)
    # No error can be told within the text: the stream is cut.
    call.connection.stream({"content-type": _TEXT_TYPE}, b"", None)
    async with read_run(call, run_id, cancel_on_leave=True) as pages:
        async for page in pages:
            call.observed.add(page)
            if data := text.feed(events.feed(page)):
                await call.connection.write(data.encode())
    await call.connection.end()


def _read_input(call: Call) -> str:
    """Returns the input of a client's `submit` as the text of a question: a text as it is, any other
    value as JSON."""
    sent = call.body.get("input")
    if sent in (None, "", {}):
        raise InvalidRequestError("there is no input; give submit(…) a text or an object")
    return sent if isinstance(sent, str) else json_bytes.encode(sent).decode()


class ObjectText:
    """Takes the events of a typed run and returns the text that may be sent."""

    def __init__(self, *, is_held: bool) -> None:
        """Starts the text of an object. `is_held`: none is sent before the run succeeded."""
        self._visible, self._shown = Visible(retractable=True), ShownOutput(typed=True)
        self._is_held = is_held
        self._unsent: list[str] = []
        self._sent: list[str] = []

    def feed(self, events: Sequence[Event]) -> str:
        """Returns the text to send after these events.

        Raises:
            StreamCutError: text that was sent is void.
            InvalidRequestError: the run waits for something.
            DragomanError: the run failed.
        """
        seen = [shown for event in events for shown in self._visible.feed(event)]
        pieces = self._shown.feed(seen)
        is_void = any(piece.retracted for piece in pieces)
        if is_void and self._sent:
            raise StreamCutError("the answer was not valid and began again; ask again")
        if is_void:
            self._unsent = [self._shown.text()]
        else:
            self._unsent += [piece.output for piece in pieces if piece.output]
        last = seen[-1] if seen else None
        if isinstance(last, RunError):
            raise last.error
        if isinstance(last, RunFinished):
            return self._finish(last)
        opening = next((text.lstrip() for text in self._unsent if not text.isspace()), "")
        if self._is_held or not (self._sent or opening.startswith(_OPENINGS)):
            return ""
        text = "".join(self._unsent)
        self._unsent.clear()
        self._sent.append(text)
        return text

    def _finish(self, last: RunFinished) -> str:
        """Returns the end of the text of a run that is over."""
        if last.outcome != "success":
            raise InvalidRequestError(
                f"the run ended as {last.outcome!r}, which a stream of an object cannot tell; use useChat"
            )
        if not self._sent:
            return json_bytes.encode(last.result).decode()
        rest = "".join(self._unsent)
        try:
            is_whole = json_bytes.decode("".join([*self._sent, rest])) == last.result
        except ValueError:
            is_whole = False
        if not is_whole:
            raise StreamCutError("the answer changed after it was sent; ask again")
        return rest
