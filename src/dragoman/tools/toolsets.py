"""Sets of tools that are not written down: they are asked for their tools before each model call.
`Toolset`, and `toolset`, which makes one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast, overload

import anyio
import msgspec

from dragoman.arguments import expect, expect_callable, expect_each, wrong_type_error
from dragoman.errors import ToolError
from dragoman.logs import logger
from dragoman.tools.context import ToolContext
from dragoman.tools.definition import Approval, Tool, is_tool, tool, tool_map
from dragoman.tools.tool_result import describe_error

__all__ = ["CombinedToolset", "Toolset", "split_tools", "toolset"]

T = TypeVar("T")

_LOG = logger("tools")

_LEAVE_SECONDS = 10.0
"""So long sets may take to give back what they hold."""

Given = Tool | Callable[..., Any]
"""A tool, or a function that is made one."""
ListTools = Callable[[ToolContext[Any]], Iterable[Given] | Awaitable[Iterable[Given]]]
"""Says which tools there are next."""
Prepare = Callable[[Tool, ToolContext[Any]], Tool | Awaitable[Tool | None] | None]
"""Takes a tool → it, or another in its place, or `None`: it is left out."""


class Toolset:
    """Tools that come from somewhere else. Stands beside tools and functions in `Agent(tools=…)`
    and in `tools=` of a send.

    A run enters it before it first asks for its tools and leaves it at its end; `async with agent`
    and `async with toolset` do so too. It may be entered many times, from any task and event loop,
    and be left from another task of the same loop; what it opens, it opens when it is first needed,
    and gives back when the last one has left.

    Its methods give new sets: what is asked of them is asked of this one, and what is entered is
    this one.
    """

    name: str = ""
    """What errors call it; empty: the name of its class."""

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        """Returns the toolset's tools that the model may call next. Where one has not changed, it
        is best the same object as before. `context`: what tools may know of the run; its `call` is
        empty.

        Raises:
            ToolError: they cannot be told.
        """
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leaves the toolset, for a run that has ended."""
        return

    def filter(self, keep: Callable[[Tool, ToolContext[Any]], bool | Awaitable[bool]]) -> Toolset:
        """Returns a toolset with only those tools for which the function, plain or async, returns
        True in this step."""
        expect_callable("filter()", keep, "a function of a tool and a context")

        async def keep_tool(tool: Tool, context: ToolContext[Any]) -> Tool | None:
            if await _await_if_needed(keep(tool, context)):
                return tool
            return None

        return _Prepared(self, keep_tool)

    def prepare(self, change: Prepare) -> Toolset:
        """Returns the tools as the function, plain or async, gives them back, in this step; where
        that is `None`, not at all."""
        expect_callable("prepare()", change, "a function of a tool and a context")
        return _Prepared(self, change)

    def rename(self, names: Mapping[str, str]) -> Toolset:
        """Returns a toolset with renamed tools: old name to new name. A name that no tool has
        changes nothing."""
        expect("rename()", names, Mapping)
        expect_each("names", [name for pair in names.items() for name in pair], str)
        return _Changed(self, lambda tool: _with_name(tool, names.get(tool.name, tool.name)))

    def prefix(self, text: str) -> Toolset:
        """Returns all tools with this before their names, such as `github_`."""
        expect("prefix()", text, str)
        return _Changed(self, lambda tool: _with_name(tool, text + tool.name))

    def defer(self) -> Toolset:
        """Returns a toolset of the same tools, run by the client: their calls are in
        `result.pending`, and nobody runs them here."""
        return _Changed(
            self, lambda tool: msgspec.structs.replace(tool, handler=None, requires_approval=False)
        )

    def require_approval(
        self, needed: bool | Approval = True, *, editable: bool | None = None
    ) -> Toolset:
        """Returns a toolset of the same tools, whose calls somebody must allow. `needed` and
        `editable` as `Tool.requires_approval` and `Tool.editable`, in place of the tools' own; a
        function is given the call as the model made it, by the tool's last name."""

        if not isinstance(needed, bool):
            expect_callable(
                "require_approval()", needed, "a bool, or a function of a call and a context"
            )

        def with_approval(tool: Tool) -> Tool:
            """Returns the tool with the approval that it requires."""
            if editable is None:
                may_edit = tool.editable
            else:
                may_edit = editable
            return msgspec.structs.replace(tool, requires_approval=needed, editable=may_edit)

        return _Changed(self, with_approval)


class CombinedToolset(Toolset):
    """Tools and sets in one, in their order. All sets are entered, asked side by side, and left in
    reverse; one that raises then is logged.

    Raises:
        ToolError: a function can be no tool.
    """

    def __init__(self, tools: Iterable[Given | Toolset], name: str = "") -> None:
        """Creates a toolset of several tools and toolsets."""
        self.name = name
        self._tools = tuple(
            member if isinstance(member, Toolset) or is_tool(member) else _tool(index, member)
            for index, member in enumerate(tools)
        )
        self.sets = [member for member in self._tools if isinstance(member, Toolset)]
        """The sets among them."""

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        """Returns the tools of all toolsets. See `Toolset.list_tools`.

        Raises:
            ToolError: a set cannot tell its tools, or two tools have one name; each is named with the set that it comes from.
        """
        by_name: dict[str, tuple[Tool, Toolset | None]] = {}
        lists = iter(await _each_listed(self.sets, context))
        for member in self._tools:
            if isinstance(member, Toolset):
                source = member
            else:
                source = None
            for listed_tool in (member,) if is_tool(member) else next(lists):
                first, where = by_name.setdefault(listed_tool.name, (listed_tool, source))
                if first is not listed_tool:
                    raise ToolError(
                        f"two tools are named {listed_tool.name!r}, one {_from(where)} and one {_from(source)}; "
                        "give one of them another name, with prefix() or rename() of its set"
                    )
        return [listed_tool for listed_tool, _ in by_name.values()]

    async def __aenter__(self) -> Self:
        """Enters all toolsets, and leaves those that were entered if one fails."""
        entered: list[Toolset] = []
        try:
            for member in self.sets:
                try:
                    await member.__aenter__()
                except Exception as error:
                    raise ToolError(
                        f"the toolset {_label(member)} cannot be entered: {describe_error(error)}"
                    ) from error
                entered.append(member)
        except BaseException:
            await _leave_toolsets(entered)
            raise
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leaves all toolsets that were entered."""
        await _leave_toolsets(self.sets)


class _Derived(Toolset):
    """A set that is made of another."""

    def __init__(self, inner: Toolset) -> None:
        self.name = _label(inner)
        self._inner = inner

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leaves the toolset that this one is derived from."""
        await self._inner.__aexit__(error_type, error, traceback)


class _Prepared(_Derived):
    """Tools as a function gives them in each step."""

    def __init__(self, inner: Toolset, change: Prepare) -> None:
        super().__init__(inner)
        self._change = change

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        """Returns the inner toolset's tools as the function changed them, without those for which
        it returned None."""
        changed = [
            await _await_if_needed(self._change(listed_tool, context))
            for listed_tool in await self._inner.list_tools(context)
        ]
        return [listed_tool for listed_tool in changed if listed_tool is not None]


class _Changed(_Derived):
    """Tools that each become another, the same one as long as they are the same."""

    def __init__(self, inner: Toolset, change: Callable[[Tool], Tool]) -> None:
        super().__init__(inner)
        self._known = _Memory(change)

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        return self._known.each(await self._inner.list_tools(context))


class _FunctionToolset(Toolset):
    """Tools that a function of the context gives."""

    def __init__(self, function: ListTools, name: str = "") -> None:
        self.name = name or getattr(function, "__name__", "")
        self._function = function
        self._known = _Memory(self._tool)

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        return self._known.each(await _await_if_needed(self._function(context)))

    def _tool(self, value: Given) -> Tool:
        """Returns a value that a toolset function gave as a tool. Raises `ToolError` for anything
        else."""
        if is_tool(value):
            return value
        if isinstance(value, Toolset) or not callable(value):
            raise ToolError(
                f"{_label(self)} gave {value!r:.100} as a tool; it may give tools and functions. "
                "A set goes into toolset([…]), and filter() leaves its tools out"
            )
        return tool(value)


class _Memory:
    """What each of some values became, as long as they come again."""

    def __init__(self, change: Callable[[Any], Tool]) -> None:
        self._change = change
        self._known: Mapping[int, tuple[object, Tool]] = {}

    def each(self, values: Iterable[object]) -> list[Tool]:
        """Returns the toolset's tool for each value, made once and remembered by identity."""
        before = self._known
        pairs = [before.get(id(value)) or (value, self._change(value)) for value in values]
        # Holds them, so that no id is another's.
        self._known = {id(value): (value, changed) for value, changed in pairs}
        return [changed for _, changed in pairs]


@overload
def toolset(tools: ListTools, /, *, name: str = "") -> Toolset: ...
@overload
def toolset(tools: Iterable[Given | Toolset], /, *, name: str = "") -> Toolset: ...
@overload
def toolset(*, name: str = "") -> Callable[[ListTools], Toolset]: ...
def toolset(tools: Any = None, /, *, name: str = "") -> Any:
    """Makes a toolset of tools, functions and other sets: `toolset([search, fetch, mcp("…")])`; or,
    as a decorator, of a function, plain or async, that takes a `ToolContext` and gives the tools of
    the next step. A plain one runs in the event loop.

    `name`: what errors call it.

    Raises:
        ToolError: a function can be no tool.
        TypeError: it is neither a function nor a sequence of tools.
    """
    if tools is None:
        return partial(toolset, name=name)
    expect("name", name, str)
    if isinstance(cast(object, tools), str | bytes | Mapping) or not isinstance(tools, Iterable):
        expect_callable("toolset()", tools, "a sequence of tools, or a function")
        return _FunctionToolset(tools, name)
    return CombinedToolset(cast("Iterable[Given | Toolset]", tools), name)


def split_tools(tools: Iterable[Tool | Toolset]) -> tuple[dict[str, Tool], CombinedToolset | None]:
    """Returns the tools that are always there, by name, and all in one toolset, where some come
    from toolsets.

    Raises:
        ToolError: two have one name.
    """
    tools = tuple(tools)
    fixed_tools = [member for member in tools if isinstance(member, Tool)]
    return tool_map(fixed_tools), CombinedToolset(tools) if len(fixed_tools) < len(tools) else None


async def _leave_toolsets(sets: Sequence[Toolset]) -> None:
    """Leaves toolsets in reverse, all of them, also in the middle of a cancellation."""
    with anyio.move_on_after(_LEAVE_SECONDS, shield=True):
        for member in reversed(sets):
            try:
                await member.__aexit__(None, None, None)
            except Exception as error:  # noqa: BLE001 - code of the user's, after all is done
                _LOG.warning(
                    "the toolset %s could not be left: %s", _label(member), describe_error(error)
                )


async def _each_listed(sets: Sequence[Toolset], context: ToolContext[Any]) -> list[Sequence[Tool]]:
    """Returns the tools of each toolset. They are asked side by side: a set that must connect first
    keeps no other waiting."""
    if len(sets) == 1:
        return [await _list_one(sets[0], context)]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_list_one(member, context)) for member in sets]
    except ExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__
    return [task.result() for task in tasks]


async def _list_one(member: Toolset, context: ToolContext[Any]) -> Sequence[Tool]:
    """Lists the tools of one member of a toolset. Raises `ToolError` if it fails."""
    try:
        return expect_each("list_tools()", await member.list_tools(context), Tool)
    except Exception as error:
        raise ToolError(
            f"the tools of {_label(member)} cannot be listed: {describe_error(error)}"
        ) from error


async def _await_if_needed(value: T | Awaitable[T]) -> T:
    if inspect.isawaitable(value):
        return await cast("Awaitable[T]", value)
    return cast("T", value)


def _with_name(tool: Tool, name: str) -> Tool:
    if name == tool.name:
        return tool
    return msgspec.structs.replace(tool, name=name, original_name=tool.original_name or tool.name)


def _tool(index: int, function: object) -> Tool:
    if not callable(function):
        raise wrong_type_error(f"tools[{index}]", function, "a function, a Tool or a Toolset")
    return tool(function)


def _label(member: Toolset) -> str:
    return member.name or type(member).__name__


def _from(source: Toolset | None) -> str:
    if source is None:
        return "given by itself"
    return f"of {_label(source)}"
