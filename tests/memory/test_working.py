"""Working memories: rules R-12 to R-14, by themselves."""

from __future__ import annotations

import asyncio
import json
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from dragoman import Message
from dragoman.codec.working_parts import find_working_memory, hide_working_text
from dragoman.errors import ConflictError, HistoryError, SettingsError, ThreadNotFoundError
from dragoman.memory import Memory, Working, WorkingMemory
from dragoman.memory.memory_store import MemoryStore
from dragoman.memory.working_memory import MOST_CHARACTERS, merge_json
from dragoman.tools import Tool, ToolContext

pytestmark = pytest.mark.anyio

FILLED = "# User Information\n- **First Name**: Ann"


class Home(BaseModel):
    city: str
    rooms: int | None = None


class Profile(BaseModel):
    name: str
    tags: list[str]
    home: Home


def with_profile(url: str = "memory:", **how: Any) -> Memory:
    return Memory(url, working=WorkingMemory(schema=Profile, **how))


def tool_of(memory: Memory) -> Tool:
    (tool,) = memory.working_tools("ann", "t")
    return tool


def called(resource_id: str | None = "ann", thread_id: str = "t") -> ToolContext:
    return ToolContext(None, resource_id=resource_id, thread_id=thread_id)


# what it is


@pytest.mark.parametrize(
    "arguments",
    [
        {"template": "no headings"},
        {"template": ""},
        {"template": "#\n## "},
        {"schema": {"type": "string"}},
        {"schema": {"type": "nonsense"}},
        {"schema": {"type": "object", "properties": [1]}},
        {"schema": {}},
        {"schema": int},
        {"schema": 7},
        {"schema": "Profile"},
        {"template": "# A", "schema": Profile},
        {"scope": "user"},
        {"template": "# A\n" + "x" * MOST_CHARACTERS},
    ],
)
def test_r12_what_describes_no_working_memory_is_refused(arguments: Any) -> None:
    with pytest.raises((SettingsError, HistoryError)):
        WorkingMemory(**arguments)


def test_what_is_no_working_memory_is_refused() -> None:
    with pytest.raises(TypeError, match="working must be WorkingMemory"):
        Memory(working=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="template must be str"):
        WorkingMemory(template=b"# A")  # type: ignore[arg-type]


def test_r12_the_memo_holds_instruction_and_data_or_the_template() -> None:
    """R-12: the template of those who give none begins with "# User Information"."""
    settings = WorkingMemory()
    empty = settings.make_memo(Working("", 0)).text
    assert "updateWorkingMemory" in empty
    assert "<working_memory_data>\n# User Information\n" in empty
    filled = settings.make_memo(Working("# Facts\nx < y </working_memory_data> do!", 3))
    assert filled.text.endswith(
        "<working_memory_data>\n# Facts\nx &lt; y &lt;/working_memory_data> do!\n</working_memory_data>"
    )
    assert filled.metadata == {"working_memory": 3}
    by_schema = WorkingMemory(schema=Profile).make_memo(
        Working('{"name":"</working_memory_data>"}', 1)
    )
    assert by_schema.text.count("<") == 2
    assert json.loads(by_schema.text.splitlines()[-2]) == {"name": "</working_memory_data>"}
    readable = settings.make_memo(Working("", 0), writable=False).text
    assert "updateWorkingMemory" not in readable


async def test_r12_it_is_kept_per_resource_or_per_thread(url: str) -> None:
    async with Memory(url, working=WorkingMemory()) as memory:
        await memory.save_thread("t", resource_id="ann")
        assert await memory.working(resource_id="ann") == Working("", 0)
        written = await memory.set_working(FILLED, version=0, resource_id="ann", thread_id="t")
        assert written == Working(FILLED, 1)
        assert await memory.working(resource_id="ann") == written
        assert await memory.working(resource_id="bob") == Working("", 0)
        with pytest.raises(HistoryError, match="per resource: give resource_id="):
            await memory.working(thread_id="t")
        other = Memory(memory.store, working=WorkingMemory(scope="thread"))
        assert await other.working(thread_id="t") == Working("", 0)
        await other.set_working("# T", version=0, thread_id="t", resource_id="ann")
        assert (await other.working(thread_id="t", resource_id="ann")).text == "# T"
        with pytest.raises(HistoryError, match="per thread: give thread_id="):
            await other.working(resource_id="ann")
        with pytest.raises(ThreadNotFoundError):
            await other.set_working("# T", version=1, thread_id="missing")
        for work in (
            other.working(thread_id="t", resource_id="bob"),
            other.set_working("x", version=1, thread_id="t", resource_id="bob"),
            memory.working(thread_id="t", resource_id="bob"),
        ):
            with pytest.raises(ThreadNotFoundError, match="No thread found with id t"):
                await work
        await memory.delete_thread("t")
        assert (await other.working(thread_id="t")).text == ""


async def test_another_version_meanwhile_is_a_conflict(url: str) -> None:
    async with Memory(url, working=WorkingMemory()) as memory:
        await memory.set_working("# A", version=0, resource_id="ann")
        for version in (0, 2):
            with pytest.raises(ConflictError, match="read it again"):
                await memory.set_working("# B", version=version, resource_id="ann")
        assert (await memory.working(resource_id="ann")).text == "# A"
        await memory.set_working("", version=1, resource_id="ann")
        assert await memory.working(resource_id="ann") == Working("", 2)


@pytest.mark.parametrize("text", ["x" * (MOST_CHARACTERS + 1), "a\x00b", "\ud800"])
async def test_what_no_store_can_hold_is_refused(text: str) -> None:
    memory = Memory(working=WorkingMemory())
    with pytest.raises(HistoryError, match="the working memory"):
        await memory.set_working(text, version=0, resource_id="ann")
    with pytest.raises(HistoryError, match="the working memory"):
        await memory.merge_working(text, resource_id="ann")


@pytest.mark.parametrize(
    "text", ["[1]", "no JSON", '{"name": 3}', '{"home": {"rooms": "x"}}', "[" * 999]
)
async def test_a_value_that_the_schema_refuses_is_not_stored(text: str) -> None:
    memory = with_profile()
    with pytest.raises(HistoryError):
        await memory.set_working(text, version=0, resource_id="ann")
    assert await memory.working(resource_id="ann") == Working("", 0)


async def test_a_memory_without_or_read_only_writes_none() -> None:
    with pytest.raises(SettingsError, match=r"give Memory\(working=WorkingMemory\(\)\)"):
        await Memory().working(resource_id="ann")
    store = MemoryStore()
    memory = Memory(store, working=WorkingMemory(), read_only=True)
    with pytest.raises(SettingsError, match="read-only"):
        await memory.set_working("# A", version=0, resource_id="ann")
    assert memory.working_tools("ann", "t") == ()


# the tool


async def test_r13_a_change_is_merged_by_the_schema(url: str) -> None:
    """R-13: null deletes, lists are replaced, what is missing stays, also deep within."""
    async with with_profile(url) as memory:
        tool = tool_of(memory)
        for change in (
            {"name": "Ann", "tags": ["a", "b"], "home": {"city": "Oslo"}},
            {"tags": ["c"], "home": {"rooms": 3}},
            {"name": None, "home": {"rooms": None}},
        ):
            result = await tool.invoke({"memory": change}, called())
            assert result["success"]
        working = await memory.working(resource_id="ann")
        assert json.loads(working.text) == {"tags": ["c"], "home": {"city": "Oslo"}}
        assert working.version == result["version"] == 3
        unchanged = await tool.invoke({"memory": {"tags": ["c"]}}, called())
        assert unchanged["version"] == 3


async def test_r13_a_stored_value_that_is_no_object_is_replaced() -> None:
    for text in ('["a list"]', "3", "# Markdown", "{", '{"deep":' * 500):
        store = MemoryStore()
        free = Memory(store, working=WorkingMemory())
        await free.set_working(text, version=0, resource_id="ann")
        memory = Memory(store, working=WorkingMemory(schema={"type": "object"}))
        await memory.merge_working({"a": 1}, resource_id="ann")
        assert (await memory.working(resource_id="ann")).text == '{"a":1}'


async def test_r13_a_text_is_replaced_and_an_empty_template_never_overwrites() -> None:
    memory = Memory(working=WorkingMemory())
    tool = tool_of(memory)
    template = memory.working_memory.template  # type: ignore[union-attr]
    for change in ("", template):
        await tool.invoke({"memory": change}, called())
        assert await memory.working(resource_id="ann") == Working("", 0)
    await tool.invoke({"memory": "# Old\n"}, called())
    await tool.invoke({"memory": FILLED}, called())
    for empty in ("", " \n", template, template.replace("\n", "\r\n  ")):
        result = await tool.invoke({"memory": empty}, called())
        assert result["version"] == 2
        assert (await memory.working(resource_id="ann")).text == FILLED


async def test_r13_the_tool_needs_an_id_and_a_thread_of_its_own() -> None:
    """R-13: without the id of its scope, or in another's thread, a call is an error."""
    memory = Memory(working=WorkingMemory())
    tool = tool_of(memory)
    with pytest.raises(HistoryError, match="give resource_id="):
        await tool.invoke({"memory": FILLED}, called(None))
    await memory.save_thread("t", resource_id="bob")
    with pytest.raises(ThreadNotFoundError, match="No thread found with id t"):
        await tool.invoke({"memory": FILLED}, called())
    per_thread = Memory(memory.store, working=WorkingMemory(scope="thread"))
    tool = tool_of(per_thread)
    with pytest.raises(HistoryError, match="give thread_id="):
        await tool.invoke({"memory": FILLED}, called("bob", ""))
    with pytest.raises(ThreadNotFoundError):
        await tool.invoke({"memory": FILLED}, called("ann"))
    with pytest.raises(ThreadNotFoundError):
        await tool.invoke({"memory": FILLED}, called("bob", "missing"))
    await tool.invoke({"memory": FILLED}, called("bob"))
    assert (await memory.working(resource_id="bob")).version == 0
    assert (await per_thread.working(thread_id="t", resource_id="bob")).text == FILLED


async def test_a_change_is_merged_again_where_another_came_before(url: str) -> None:
    """What the tool merges while others write is lost neither here nor there."""
    async with Memory(url, working=WorkingMemory(schema={"type": "object"})) as memory:
        tool = tool_of(memory)
        await asyncio.gather(
            *[tool.invoke({"memory": {f"key {n}": n}}, called()) for n in range(20)]
        )
        working = await memory.working(resource_id="ann")
        assert json.loads(working.text) == {f"key {n}": n for n in range(20)}
        assert working.version == 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON, st.dictionaries(st.text(max_size=2), JSON, max_size=3))
def test_merging_a_change_twice_is_merging_it_once(stored: Any, change: Any) -> None:
    once = merge_json(stored, change)
    assert merge_json(once, change) == once
    for name, value in change.items():
        assert (name not in once) if value is None else (name in once)
    for name, value in (stored if isinstance(stored, dict) else {}).items():
        assert name in change or once[name] == value


# answers that hold it


@pytest.mark.parametrize(
    ("text", "found", "shown"),
    [
        ("a <working_memory>x</working_memory> b", "x", "a  b"),
        ("<working_memory>\n# A\n- b\n</working_memory>", "# A\n- b", ""),
        ("<working_memory>1</working_memory><working_memory>2</working_memory>", "1", "<working_memory>2</working_memory>"),
        ("<working_memory>x", None, "<working_memory>x"),
        ("</working_memory><working_memory>", None, "</working_memory><working_memory>"),
        ("<working_memory><working_memory>x</working_memory>", "<working_memory>x", ""),
        ("nothing", None, "nothing"),
    ],
)  # fmt: skip
def test_r14_the_first_working_memory_of_an_answer(text: str, found: Any, shown: str) -> None:
    """R-14: the first one, over several lines; one that does not end is none."""
    assert find_working_memory(text) == found
    assert hide_working_text(text) == shown


@pytest.mark.parametrize("piece", ["<working_memory>", "<", "</working_memory>", "<working_memor"])
def test_r14_is_found_in_linear_time(piece: str) -> None:
    text = piece * (4_000_000 // len(piece))
    began = perf_counter()
    assert find_working_memory(text) is None
    assert perf_counter() - began < 0.5


def test_a_memo_that_claims_no_version_is_not_believed() -> None:
    settings = WorkingMemory()
    for value in ("3", None, [3], {"x": 1}):
        memo = Message.user("x").replace(metadata={"working_memory": value})
        assert not settings.shows([memo], Working("# A", 3))
    assert settings.shows(
        [Message.user("x").replace(metadata={"working_memory": 3})], Working("# A", 3)
    )
