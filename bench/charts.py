"""Charts of `docs/performance.md`, drawn from the numbers that `make bench` measured.

    python bench/charts.py     draws again what bench/numbers.json holds

`numbers.json` holds the tables of `bench/run.py`: title → wire → column → number. A run of some wires
replaces their rows alone. It says nothing of the machine.
"""

from __future__ import annotations

import json
from html import escape
from math import log10
from pathlib import Path
from typing import NamedTuple

__all__ = ["CHARTS", "IMAGES", "NUMBERS", "draw", "keep", "write_all"]

NUMBERS = Path(__file__).parent / "numbers.json"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
Table = dict[str, dict[str, float]]
"""Wire → column (`by hand`, `dragoman`, `client`) → number."""


class Chart(NamedTuple):
    """A chart of a table."""

    table: str
    title: str
    unit: str
    explanation: str


CHARTS = {
    "performance-chunks.svg": Chart(
        "µs a chunk, over HTTP",
        "CPU of a streamed chunk over HTTP",
        "µs",
        "Shorter is better. The scale is logarithmic: each line is ten times the one before.",
    ),
    "performance-answers.svg": Chart(
        "ms an answer of 3 chunks",
        "CPU of a short streamed answer",
        "ms",
        "Shorter is better. The scale is logarithmic: each line is ten times the one before.",
    ),
}
"""File → what it shows."""

_WIDTH, _LEFT, _RIGHT, _TOP, _BAR, _GROUP = 860, 160, 210, 92, 15, 60
_COLUMNS = ("by hand", "dragoman", "client")
_STYLE = """text{font:500 13px ui-sans-serif,system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1c1d1b}.head{font-size:17px;font-weight:650}.mute{fill:#5d5e57}
.line{stroke:#d3d4cc}.by-hand{fill:#a7a89f}.dragoman{fill:#0d6757}.client{fill:#d08a3c}
@media(prefers-color-scheme:dark){text{fill:#ecebe6}.mute{fill:#a9a9a0}.line{stroke:#3d3e39}.by-hand{fill:#75766e}.dragoman{fill:#6bcdb6}.client{fill:#dba45f}}"""


def keep(table: str, row: str, numbers: dict[str, float]) -> None:
    """Writes a row of a table into `numbers.json`."""
    tables = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    # Three digits count.
    tables.setdefault(table, {})[row] = {
        name: float(f"{value:.3g}") for name, value in numbers.items()
    }
    NUMBERS.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n")


def write_all() -> None:
    """Draws all charts of what `numbers.json` holds."""
    tables = json.loads(NUMBERS.read_text())
    for file, chart in CHARTS.items():
        (IMAGES / file).write_text(draw(chart, tables[chart.table]))


def draw(chart: Chart, table: Table) -> str:
    """Returns a chart as SVG: a group of bars for each wire."""
    numbers = [row[name] for row in table.values() for name in _COLUMNS]
    low = 10 ** _floor(log10(min(numbers)))
    decades = max(log10(max(numbers) / low), 1.0)
    scale = (_WIDTH - _LEFT - _RIGHT) / decades
    height = _TOP + len(table) * _GROUP + 14
    rows: list[str] = []
    for number, (wire, row) in enumerate(table.items()):
        top = _TOP + number * _GROUP
        rows.append(
            f'<text x="{_LEFT - 12}" y="{top + 27}" text-anchor="end">{escape(wire)}</text>'
        )
        for place, name in enumerate(_COLUMNS):
            width = max(log10(row[name] / low) * scale, 2.0)
            y = top + place * (_BAR + 1)
            label = f"{row[name]:.3g} {chart.unit}{_compare(name, row)}"
            rows.append(
                f'<rect class="{name.replace(" ", "-")}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>'
                f'<text x="{_LEFT + width + 7:.1f}" y="{y + 12}">{label}</text>'
            )
    lines = [
        f'<path class="line" d="M{_LEFT + step * scale:.1f} {_TOP - 6}V{height - 14}"/>'
        f'<text class="mute" x="{_LEFT + step * scale:.1f}" y="{_TOP - 10}" text-anchor="middle">{low * 10**step:g} {chart.unit}</text>'
        for step in range(int(decades) + 1)
    ]
    says = "; ".join(
        f"{wire}: by hand {row['by hand']:.3g}, dragoman {row['dragoman']:.3g}, client {row['client']:.3g} {chart.unit}"
        for wire, row in table.items()
    )
    legend = "".join(
        f'<rect class="{name.replace(" ", "-")}" x="{_LEFT + at}" y="38" width="12" height="12" rx="2"/>'
        f'<text x="{_LEFT + at + 18}" y="49">{what}</text>'
        for at, name, what in (
            (0, "by hand", "loop by hand"),
            (120, "dragoman", "dragoman"),
            (215, "client", "the provider's own client"),
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title desc">\n'
        f'<title id="title">{escape(chart.title)}</title>\n<desc id="desc">{escape(f"{says}. {chart.explanation}")}</desc>\n'
        f"<style>{_STYLE}</style>\n"
        f'<text class="head" x="{_LEFT}" y="24">{escape(chart.title)}, {chart.unit}</text>{legend}\n'
        + "\n".join([*lines, *rows])
        + "\n</svg>\n"
    )


def _compare(name: str, row: dict[str, float]) -> str:
    """Returns how a number compares with another one of its row."""
    if name == "dragoman":
        return f", {row['dragoman'] / row['by hand']:.1f} × by hand"
    if name == "client":
        return f", {row['client'] / row['dragoman']:.1f} × dragoman"
    return ""


def _floor(value: float) -> int:
    return int(value // 1)


if __name__ == "__main__":
    write_all()
