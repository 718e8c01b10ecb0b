"""The state that client and agent share: `SharedState`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from threading import Lock
from typing import Any

from dragoman.errors import ToolError
from dragoman.event import StateDelta, StateSnapshot
from dragoman.tools.outbox import Emission, Outbox
from dragoman.tools.outcome import as_json, words

__all__ = ["SharedState"]


class SharedState:
    """Any JSON value that changes while tools work; each change is an event at once. Safe in threads."""

    def __init__(self, value: Any = None, outbox: Outbox | None = None) -> None:
        """`outbox`: where changes are told; `None`: nowhere.

        Raises:
            ToolError: the value is not JSON.
        """
        self._value = None if value is None else as_json(value)
        self._outbox = Outbox() if outbox is None else outbox
        self._lock = Lock()

    @property
    def value(self) -> Any:
        """What it is now, as a copy: changing that changes nothing. `None`: there is no state."""
        return deepcopy(self._value)

    def snapshot(self) -> tuple[StateSnapshot, ...]:
        """The event that tells the whole of it; none where there is no state."""
        return () if self._value is None else (StateSnapshot(self.value),)

    def patch(self, operations: Iterable[Mapping[str, Any]]) -> Emission:
        """Changes it by operations of JSON Patch (RFC 6902), all of them or none, and tells so. Where there is no state yet, they
        are applied to `{}`, and the whole is told. May be awaited, see `ToolContext.emit`.

        Raises:
            ToolError: an operation cannot be applied; the state is as it was.
        """
        import jsonpatch  # lazily: few tools share state

        changes: list[dict[str, Any]] = as_json(list(operations))
        with self._lock:
            is_new = self._value is None
            try:
                changed = jsonpatch.apply_patch({} if is_new else self._value, changes)
            except Exception as error:  # the library raises KeyError, TypeError and more beside its own
                raise ToolError(f"the shared state cannot be patched by {changes!r:.300}: {words(error)}") from error
            self._value = changed
            return self._outbox.emit(StateSnapshot(self.value) if is_new else StateDelta(tuple(changes)))

    def replace(self, value: Any) -> Emission:
        """Makes it another value, and tells so. May be awaited, see `ToolContext.emit`.

        Raises:
            ToolError: the value is not JSON.
        """
        value = as_json(value)
        with self._lock:
            self._value = value
            return self._outbox.emit(StateSnapshot(self.value))

    def follow(self, event: StateSnapshot | StateDelta) -> None:
        """Becomes what an event says that was told already. A change that does not fit leaves it as it is."""
        import jsonpatch  # lazily, as above

        with self._lock:
            if isinstance(event, StateSnapshot):
                self._value = deepcopy(event.state)
                return
            try:
                self._value = jsonpatch.apply_patch({} if self._value is None else self._value, list(event.operations))
            except Exception:  # noqa: BLE001 - the library raises KeyError, TypeError and more beside its own
                return

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedState) and self._value == other._value

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes

    def __repr__(self) -> str:
        return f"SharedState({self._value!r})"
