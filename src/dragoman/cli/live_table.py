"""`LiveTable`: shows on a terminal the JSON of a schema as a table, while the model writes it.

The text goes through a `PartialReader`, so each piece costs what it is long. The table is drawn at
most ten times a second and has no more rows than the terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from dragoman.cli.terminal import to_one_line
from dragoman.codec.json_values import if_object
from dragoman.json_bytes import JsonMap
from dragoman.partial import Partial, Shape, view
from dragoman.partial_json import PartialReader
from dragoman.result import ChatResult

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

__all__ = ["LiveTable"]

_SECONDS = 0.1
_MAX_CHARACTERS = 200
_MAX_ELEMENTS = 5
_MAX_COLUMNS = 20


class LiveTable:
    """The values of an answer that is being written: a row for each field, or, of an object that
    holds one list of objects, a row for each element."""

    def __init__(
        self,
        schema: JsonMap,
        begin: Callable[[], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Creates the table of a schema. `begin`: called before the table is drawn first, to remove
        what the line shows."""
        self._shape = Shape.of(schema)
        self._rows_key, self._columns = _find_rows(schema)
        self._begin, self._clock = begin, clock
        self._drawn_time = float("-inf")
        self._live: Live | None = None
        self._reader = PartialReader(growing_text=True)

    def follow(self, chunk: ChatResult[str]) -> None:
        """Takes the next chunk of the answer."""
        if chunk.retracted:
            self._reader = PartialReader(growing_text=True)
        if not chunk.output or not self._reader.feed(chunk.output):
            return
        if self._clock() - self._drawn_time >= _SECONDS:
            self._drawn_time = self._clock()
            self._draw()

    def close(self) -> None:
        """Removes the table."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._begin()
            self._live = Live(
                console=Console(file=sys.stderr, markup=False, highlight=False),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        # The heading and the lines around it.
        height = max(self._live.console.height - 4, 1)
        self._live.update(self._make_table(height), refresh=True)

    def _make_table(self, height: int) -> Table:
        """Returns the table of what is certain so far. Of many rows the last ones count."""
        from rich.table import Table

        table = Table(*self._columns, box=None, pad_edge=False, header_style="bold")
        for row in self.list_rows(height):
            table.add_row(*row)
        return table

    def list_rows(self, height: int) -> Iterator[list[str]]:
        """Yields the cells of the last rows, at most `height`."""
        value = view(self._reader.slice(), self._shape)
        if not isinstance(value, Mapping):
            return
        fields = cast("Mapping[str, Any]", value)
        if self._rows_key is None:
            for key in islice(fields, height):
                yield [to_one_line(key), _format_cell(fields[key])]
            return
        if isinstance(fields.get(self._rows_key), Sequence):
            elements: Sequence[object] = fields[self._rows_key]
            for index in range(max(len(elements) - height, 0), len(elements)):
                yield [_format_cell(_get_field(elements[index], name)) for name in self._columns]


def _find_rows(schema: JsonMap) -> tuple[str | None, list[str]]:
    """Returns the key of the list whose elements are the rows of the table, and the columns."""
    # As `--schema-multi` makes it.
    properties = if_object(schema.get("properties"))
    if len(properties) == 1:
        key, list_schema = next(iter(properties.items()))
        names = if_object(if_object(if_object(list_schema).get("items")).get("properties"))
        if names:
            return key, [to_one_line(name) for name in islice(names, _MAX_COLUMNS)]
    return None, ["field", "value"]


def _get_field(element: object, name: str) -> object:
    if not isinstance(element, Mapping):
        return None
    return cast("Mapping[str, object]", element).get(name)


def _format_cell(value: object) -> str:
    """Returns a value as one line of a cell, shortened."""
    if isinstance(value, Partial):
        if isinstance(value, Mapping):
            return "{…}" if value else ""
        elements = cast("Partial[list[object]]", value)
        cells = [_format_cell(element) for element in islice(elements, _MAX_ELEMENTS)]
        return ", ".join(cells + ["…"] * (len(elements) > _MAX_ELEMENTS))
    if value is None:
        return ""
    text = str(value)
    return to_one_line(text if len(text) <= _MAX_CHARACTERS else f"…{text[-_MAX_CHARACTERS:]}")
