"""The state that client and agent share: `SharedState`."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any

from dragoman.errors import ProviderError, ToolError
from dragoman.event import StateDelta, StateSnapshot
from dragoman.json_bytes import Json, JsonMap
from dragoman.json_patch import PatchedValue, PatchError, PatchTooLargeError, copy_value
from dragoman.tools.outbox import Emission, Outbox
from dragoman.tools.tool_result import to_json_value

__all__ = ["SharedState"]


class SharedState:
    """Any JSON value that changes while tools work; each change is an event at once. Safe in
    threads."""

    def __init__(self, value: object = None, outbox: Outbox | None = None) -> None:
        """Creates the shared state of a run. `outbox`: where changes are reported; `None`: nowhere.

        Raises:
            ToolError: the value is not JSON.
        """
        self._state = _copy_for_state(to_json_value(value))
        if outbox is None:
            self._outbox = Outbox()
        else:
            self._outbox = outbox
        self._lock = Lock()
        self.changes = 0
        """How often it changed."""

    @property
    def value(self) -> Any:
        """Returns a copy of the current state, or None if there is no state. `None`: there is no
        state."""
        return copy_value(self._state.value)

    def snapshot(self) -> tuple[StateSnapshot, ...]:
        """Returns the event that tells the whole shared state; none where there is no state."""
        if self._state.value is None:
            return ()
        return (StateSnapshot(self.value),)

    def patch(self, operations: Iterable[JsonMap]) -> Emission:
        """Changes the shared state by operations of JSON Patch (RFC 6902), all of them or none, and
        tells so. Where there is no state yet, they are applied to `{}`, and the whole is told. May
        be awaited, see `ToolContext.emit`.

        Raises:
            ToolError: an operation cannot be applied, or the state would be too large; it is as it was.
        """
        changes: list[Json] = to_json_value(list(operations))
        with self._lock:
            is_new = self._state.value is None
            # A failed patch undoes itself, so the state is assigned only once it held.
            changed = PatchedValue({}) if is_new else self._state
            try:
                changed.patch(changes)
            except PatchError as error:
                raise ToolError(
                    f"the shared state cannot be patched by {changes!r:.300}: {error}"
                ) from error
            self._state = changed
            self.changes += 1
            return self._outbox.emit(
                StateSnapshot(self.value) if is_new else StateDelta(tuple(changes))
            )

    def replace(self, value: object) -> Emission:
        """Replaces the shared state by another value, and tells so. May be awaited, see
        `ToolContext.emit`.

        Raises:
            ToolError: the value is not JSON, or larger than a state may be.
        """
        state = _copy_for_state(to_json_value(value))
        with self._lock:
            self._state = state
            self.changes += 1
            return self._outbox.emit(StateSnapshot(self.value))

    def follow(self, event: StateSnapshot | StateDelta) -> None:
        """Changes the shared state to what an event of a remote agent says. A change that does not
        fit leaves it as it is.

        Raises:
            ProviderError: the state would be larger than a state may be.
        """
        with self._lock:
            self.changes += 1
            try:
                if isinstance(event, StateSnapshot):
                    self._state = PatchedValue(copy_value(event.state))
                    return
                if self._state.value is None:
                    self._state = PatchedValue({})
                self._state.patch(event.operations)
            except PatchTooLargeError as error:
                raise ProviderError(f"the agent's shared state is refused: {error}") from error
            except PatchError:
                return

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedState) and self._state.value == other._state.value

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes

    def __repr__(self) -> str:
        return f"SharedState({self._state.value!r})"


def _copy_for_state(value: object) -> PatchedValue:
    """Returns a copy of a value for the shared state. Raises `ToolError` if it is too large."""
    try:
        return PatchedValue(value)
    except PatchTooLargeError as error:
        raise ToolError(f"the shared state is refused: {error}") from error
