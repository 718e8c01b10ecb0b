"""Sets of tools, and what is made of them: asked for their tools without a run."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import pytest

from dragoman import ToolCallPart
from dragoman.errors import ToolError
from dragoman.tools import Tool, ToolContext, ToolExecutor, Toolset, tool, toolset

pytestmark = pytest.mark.anyio
CONTEXT: ToolContext[Any] = ToolContext("me")


@tool
def look(place: str = "here") -> str:
    """Looks."""
    return f"nothing {place}"


@tool(requires_approval=True, editable=True)
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"


BOTH = toolset([look, delete], name="both")


class Noting(Toolset):
    """A set that counts who is in it."""

    inside = most = 0

    async def list_tools(self, context: ToolContext[Any]) -> list[Tool]:
        return [look]

    async def __aenter__(self) -> Self:
        self.inside += 1
        self.most = max(self.most, self.inside)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.inside -= 1


async def listed(tools: Toolset, deps: Any = "me") -> list[str]:
    return [each.name for each in await tools.list_tools(ToolContext(deps))]


async def run(tool: Tool, **arguments: Any) -> Any:
    return (
        await ToolExecutor().execute_single(
            ToolCallPart("1", tool.name, arguments), {tool.name: tool}, CONTEXT
        )
    ).part.result


async def test_a_set_holds_tools_functions_and_other_sets_in_order() -> None:
    def plain() -> int:
        """Plain."""
        return 1

    tools = toolset([plain, toolset([delete]), look])
    assert await listed(tools) == ["plain", "delete", "look"]
    first = (await tools.list_tools(CONTEXT))[0]
    assert (first.description, await run(first)) == ("Plain.", 1)
    assert first is (await tools.list_tools(CONTEXT))[0]
    assert await listed(toolset([])) == []
    with pytest.raises(
        TypeError, match=r"toolset\(\) must be a sequence of tools, or a function, not int"
    ):
        toolset(1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="a function, not Noting"):
        toolset(Noting())  # type: ignore[call-overload]


async def test_a_function_of_the_context_is_a_set() -> None:
    def plain() -> int:
        return 1

    @toolset
    def mine(context: ToolContext[str]) -> list[Any]:
        return [look, delete] if context.deps == "me" else [plain]

    @toolset(name="later")
    async def late(context: ToolContext[str]) -> tuple[Tool, ...]:
        return (look,)

    assert await listed(mine) == ["look", "delete"]
    assert await listed(mine, "you") == ["plain"]
    assert (await mine.list_tools(ToolContext("you")))[0] is (
        await mine.list_tools(ToolContext("you"))
    )[0]
    assert await listed(late) == ["look"]
    assert (mine.name, late.name) == ("mine", "later")

    @toolset
    def sets(context: ToolContext[Any]) -> Any:
        return [BOTH]

    with pytest.raises(ToolError, match=r"sets gave .*; it may give tools and functions"):
        await sets.list_tools(CONTEXT)


async def test_filter_keeps_by_tool_and_context_in_each_step() -> None:
    kept = BOTH.filter(lambda tool, context: not tool.requires_approval or context.deps == "me")
    assert await listed(kept) == ["look", "delete"]
    assert await listed(kept, "you") == ["look"]

    async def none(tool: Tool, context: ToolContext[Any]) -> bool:
        return False

    assert await listed(BOTH.filter(none)) == []
    assert (await kept.list_tools(CONTEXT))[0] is look


async def test_prepare_changes_each_tool_or_leaves_it_out() -> None:
    import msgspec

    async def known(tool: Tool, context: ToolContext[Any]) -> Tool | None:
        if tool.name == "delete":
            return None
        return msgspec.structs.replace(tool, description=f"{tool.description} For {context.deps}.")

    assert [
        (each.name, each.description) for each in await BOTH.prepare(known).list_tools(CONTEXT)
    ] == [("look", "Looks. For me.")]


async def test_rename_and_prefix_give_other_names_and_run_the_same() -> None:
    tools = BOTH.rename({"look": "see", "nobody": "x"}).prefix("disk_")
    first, second = await tools.list_tools(CONTEXT)
    assert (first.name, second.name) == ("disk_see", "disk_delete")
    assert (first.original_name, second.original_name, look.original_name) == (
        "look",
        "delete",
        None,
    )
    assert (first.spec.name, first.spec.input_schema) == ("disk_see", look.spec.input_schema)
    assert await run(first, place="there") == "nothing there"
    assert (await BOTH.rename({}).list_tools(CONTEXT))[0] is look


async def test_what_is_derived_is_the_same_tool_as_long_as_it_comes_of_the_same() -> None:
    for tools in (
        BOTH.prefix("a_"),
        BOTH.defer(),
        BOTH.require_approval(),
        BOTH.rename({"look": "see"}),
    ):
        once, again = await tools.list_tools(CONTEXT), await tools.list_tools(CONTEXT)
        assert [each is other for each, other in zip(once, again, strict=True)] == [True, True]
        assert once[0].spec is again[0].spec


@pytest.mark.slow
async def test_a_derived_set_forgets_tools_that_are_gone() -> None:
    import gc
    import weakref

    class Made:
        def __call__(self) -> str:
            return "x"

    handlers: list[Any] = []

    @toolset
    def fresh(context: ToolContext[Any]) -> list[Tool]:
        handler = Made()
        handlers.append(weakref.ref(handler))
        return [Tool("made", handler=handler)]

    tools = fresh.prefix("a_")
    for _ in range(5):
        await tools.list_tools(CONTEXT)
    gc.collect()
    assert [handler() is None for handler in handlers] == [True, True, True, True, False]


async def test_defer_leaves_running_to_the_client_with_the_same_schema() -> None:
    first, second = await BOTH.defer().list_tools(CONTEXT)
    assert (first.handler, first.input_schema, second.requires_approval) == (
        None,
        look.input_schema,
        False,
    )
    assert "is run by the client" in (await run(first))["error"]


async def test_require_approval_replaces_what_the_tools_say() -> None:
    first, second = await BOTH.require_approval().list_tools(CONTEXT)
    assert (first.requires_approval, first.editable, second.editable) == (True, False, True)
    first, second = await BOTH.require_approval(False, editable=False).list_tools(CONTEXT)
    assert (second.requires_approval, second.editable) == (False, False)


async def test_an_approval_function_is_given_the_call_by_the_last_name() -> None:
    seen: list[str] = []

    def needed(call: ToolCallPart, context: ToolContext[Any]) -> bool:
        seen.append(call.name)
        return True

    tools = BOTH.require_approval(needed).prefix("disk_")
    (first, _) = await tools.list_tools(CONTEXT)
    assert await first.needs_approval(ToolCallPart("1", "disk_look", {}), CONTEXT)
    assert seen == ["disk_look"]


async def test_entering_what_is_derived_enters_what_it_comes_of_once_each() -> None:
    noting = Noting()
    tools = toolset(
        [
            look,
            toolset([noting.prefix("a_").filter(lambda *_: True)]),
            noting.rename({"look": "see"}),
        ]
    )
    async with tools as entered:
        assert entered is tools
        assert noting.inside == 2
        async with tools:
            assert noting.inside == 4
        assert await listed(tools) == ["look", "a_look", "see"]
    assert (noting.inside, noting.most) == (0, 4)


async def test_names_twice_within_a_set_are_told_with_the_sets_within() -> None:
    tools = toolset([BOTH, toolset([Tool("look", handler=lambda: 1)], name="more")], name="all")
    with pytest.raises(ToolError, match="two tools are named 'look', one of both and one of more"):
        await tools.list_tools(CONTEXT)
    with pytest.raises(
        ToolError, match="the tools of all cannot be listed: two tools are named 'look'"
    ):
        await toolset([tools]).list_tools(CONTEXT)
    assert await listed(toolset([BOTH, look])) == ["look", "delete"]
    with pytest.raises(ToolError, match="of both and one of both"):
        await toolset([BOTH.rename({"delete": "look"})]).list_tools(CONTEXT)


async def test_sets_are_asked_side_by_side_and_one_that_fails_ends_the_others() -> None:
    met = asyncio.Barrier(2)
    ended: list[str] = []

    class Meeting(Toolset):
        def __init__(self, name: str, tools: list[Tool] | None) -> None:
            self.name, self._given = name, tools

        async def list_tools(self, context: ToolContext[Any]) -> list[Tool]:
            await met.wait()
            if self._given is None:
                raise OSError("no")
            try:
                await asyncio.sleep(0 if context.deps == "both" else 60)
            except asyncio.CancelledError:
                ended.append(self.name)
                raise
            return self._given

    tools = toolset([Meeting("a", [look]), Tool("b", handler=lambda: 1), Meeting("c", [delete])])
    assert await listed(tools, "both") == ["look", "b", "delete"]
    with pytest.raises(ToolError, match="the tools of c cannot be listed: no") as caught:
        await toolset([Meeting("a", [look]), Meeting("c", None)]).list_tools(CONTEXT)
    assert ended == ["a"]
    assert caught.value.__cause__ is not None


async def test_a_set_without_a_name_is_called_by_its_class() -> None:
    class Weather(Toolset):
        async def list_tools(self, context: ToolContext[Any]) -> list[Tool]:
            raise OSError("rain")

    with pytest.raises(ToolError, match="the tools of Weather cannot be listed: rain"):
        await toolset([Weather().prefix("w_")]).list_tools(CONTEXT)
