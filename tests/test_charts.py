"""The charts of `docs/performance.md` are those of the numbers that the bench wrote."""

from __future__ import annotations

import importlib.util
import json
import re
from math import log10
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]
SVG = "{http://www.w3.org/2000/svg}"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_charts", ROOT / "bench" / "charts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


charts: Any = load()
TABLES = json.loads(charts.NUMBERS.read_text())


@pytest.mark.parametrize("file", charts.CHARTS)
def test_a_chart_is_that_of_the_numbers_and_says_so_to_everybody(file: str) -> None:
    chart = charts.CHARTS[file]
    text = (charts.IMAGES / file).read_text()
    assert text == charts.draw(chart, TABLES[chart.table])
    assert f"images/{file}" in (ROOT / "docs" / "performance.md").read_text()
    root = ET.fromstring(text)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text == chart.title
    assert description is not None and description.text
    assert root.get("aria-labelledby") == "title desc"
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"<script|href=|url\(", text)
    for wire, row in TABLES[chart.table].items():
        assert wire in description.text
        assert f"{row['client'] / row['dragoman']:.1f} × dragoman" in text


def test_bars_are_as_long_as_their_numbers() -> None:
    chart = charts.CHARTS["performance-chunks.svg"]
    root = ET.fromstring(
        charts.draw(chart, {"<a>": {"by hand": 1.0, "dragoman": 10.0, "client": 1000.0}})
    )
    bars = [
        float(bar.get("width", "0")) for bar in root.iter(f"{SVG}rect") if bar.get("height") == "15"
    ]
    assert bars[1] / bars[2] == pytest.approx(log10(10) / log10(1000), abs=0.01)
    assert max(bars) < 860
    assert "<a>" in [element.text for element in root.iter(f"{SVG}text")]


def test_the_bench_keeps_the_rows_of_other_wires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "NUMBERS", tmp_path / "numbers.json")
    monkeypatch.setattr(charts, "IMAGES", tmp_path)
    for chart in charts.CHARTS.values():
        charts.keep(chart.table, "ollama", {"by hand": 1.0, "dragoman": 2.0, "client": 3.0})
        charts.keep(chart.table, "cohere", {"by hand": 1.0, "dragoman": 2.0, "client": 9.12345})
    charts.write_all()
    (first, _) = charts.CHARTS
    assert "ollama" in (tmp_path / first).read_text()
    assert "9.12 µs, 4.6 × dragoman" in (tmp_path / first).read_text()


def test_the_numbers_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    rows = dict(
        re.findall(r"^\| `(\w+)` \|(.*)$", page.partition("## Fixed costs")[0], re.MULTILINE)
    )
    for wire, row in TABLES["µs a chunk, over HTTP"].items():
        cells = [cell.strip(" *") for cell in rows[wire].split("|")]
        assert [float(cells[3]), float(cells[4]), float(cells[6])] == [*row.values()]
