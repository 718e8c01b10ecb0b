"""The events of AG-UI, streamed → events. Those of our own encoder come back as they were; of others' each message is told as the protocol has it.

Names of the time before 1.0 are read (`decode_old`), and chunks are what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.decoder import ResponseDecoder
from dragoman.codec.json_values import body_bytes, if_object
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import RunError
from dragoman.message import Origin
from dragoman.wires.ag_ui.decode_foreign import ForeignRun
from dragoman.wires.ag_ui.decode_old import Older
from dragoman.wires.ag_ui.decode_own import OwnRun
from dragoman.wires.ag_ui.errors import error_of
from dragoman.wires.ag_ui.quirks import unpacked

__all__ = ["Decoder", "decoder", "load_response"]


class _Content(msgspec.Struct, gc=False, rename="camel"):
    """What nearly all of a stream consists of, as far as it is read."""

    type: str
    delta: str
    message_id: str = ""
    tool_call_id: str = ""
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_content = msgspec.json.Decoder(_Content).decode


class Decoder(ResponseDecoder):
    """Reads one stream."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        super().__init__(origin, new_id)
        self._older = Older()
        self._own: OwnRun | None = None
        self._foreign = ForeignRun(self._events, origin, new_id)
        self._begun = False
        self._ended = False

    def ordinary(self, payload: bytes) -> bool:
        """Content of what is open, the shortest way."""
        if (
            b'"delta"' not in payload
            or self._ended
            or not self._begun
            or self._older.is_within_chunks
        ):
            return False
        try:
            content = _content(payload)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        if content.metadata is not msgspec.UNSET or not content.delta:
            return False
        id_ = content.tool_call_id if content.type == "TOOL_CALL_ARGS" else content.message_id
        return (self._own or self._foreign).content(content.type, id_, content.delta)

    def take(self, event: dict[str, Any]) -> None:
        """One object of the stream.

        Raises:
            DragomanError: it is not of this protocol.
        """
        for fields in self._older.read(event):
            self._take(fields)

    def _take(self, fields: dict[str, Any]) -> None:
        kind = fields.get("type")
        if not isinstance(kind, str):
            if fields.get("error") is not None or "message" in fields:
                raise error_of(fields)
            raise DecodeError("an event of AG-UI has a type, and this one has none")
        if not self._begun and kind not in ("RUN_STARTED", "RUN_ERROR"):
            raise DecodeError(f"a stream of AG-UI begins with RUN_STARTED, not {kind}")
        if self._ended and kind not in ("RUN_STARTED", "RUN_ERROR"):
            return
        if kind == "RUN_STARTED":
            self._begun, self._ended = True, False
            ours = unpacked(fields.get("metadata")).get("v") == 1
            self._own = OwnRun(self._events) if ours else None
        run = self._own or self._foreign
        run.take(kind, fields)
        self._ended = kind in ("RUN_FINISHED", "RUN_ERROR")

    def fail(self, error: DragomanError) -> None:
        """The stream ends with an error."""
        self._over = True
        (self._own or self._foreign).cut()
        self._events.append(RunError(error))

    def end(self) -> None:
        """The bytes are at their end."""
        if not self._ended:
            for fields in self._older.close():
                self._take(fields)
            self.fail(
                StreamCutError("the stream ended before the run did. Send the request again.")
            )
        self._over = True

    def body(self, body: bytes) -> None:
        """What came in place of a stream: an error's body, or a list of events."""
        try:
            value = json_bytes.decode(body)
        except ValueError:
            super().body(body)
            return
        if isinstance(value, list):
            for each in value:  # pyright: ignore[reportUnknownVariableType]
                self.read(body_bytes(if_object(each)))
            if not self._over:
                self.end()
        else:
            super().body(body)


decoder, load_response = Decoder.create, Decoder.load_response
