"""`Tool`: a name, a schema and a handler; and `tool`, which makes one of a function.

The schema of a function's arguments is built when it is first read (`SignatureSchema`), since that
needs pydantic.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from datetime import timedelta
from functools import cached_property, partial
from types import CodeType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, cast, overload

import anyio
import anyio.to_thread
import msgspec
from typing_extensions import TypeIs, TypeVar

from dragoman.errors import ToolError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Native, ToolCallPart
from dragoman.request import ToolSpec
from dragoman.tools.context import PRELIMINARY, ToolContext
from dragoman.tools.outbox import Emission
from dragoman.tools.schema_check import check
from dragoman.tools.signature import arguments, context_name, describe, name_of
from dragoman.tools.tool_result import success_result

if TYPE_CHECKING:
    from dragoman.tools.argument_schema import Arguments

__all__ = [
    "FunctionTool",
    "PlainFunction",
    "SignatureSchema",
    "Tool",
    "is_tool",
    "tool",
    "tool_map",
]

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")
DepsContra = TypeVar("DepsContra", contravariant=True, default=Any)

Approval = Callable[[ToolCallPart, ToolContext[Any]], bool | Awaitable[bool]]
"""Says whether a call needs somebody's approval."""
_NO_ARGUMENTS: JsonMap = {"type": "object", "properties": {}}


class Tool(msgspec.Struct, Generic[DepsContra], frozen=True, eq=False, dict=True):
    """Something that the model may ask to be run. `Tool[Deps]` needs an agent whose runs have such
    `deps`.

    Raises:
        ToolError: it has no name, or a signature that no model can fill.
    """

    name: str
    """By which the model calls it. Names that a provider does not take are fitted in its requests
    alone."""
    description: str = ""
    """What it does and when to use it, for the model."""
    handler: Callable[..., Any] | None = None
    """Takes the arguments by name; a plain function runs in a worker thread. Of a generator, async
    or plain, each value is told at once as a preliminary result, and the last is the result.
    `None`: the client runs the tool."""
    input_schema: JsonMap = {}
    """JSON Schema of the arguments object. Default: what the handler's signature says, else no
    arguments."""
    sequential: bool = False
    """Runs alone: calls before it finish first, calls after it wait."""
    timeout: float | None = None
    """Seconds; then the model is told that it did not finish. A thread that is over its time is
    left to itself."""
    requires_approval: bool | Approval = False
    """The run ends with the call in `result.pending` until somebody approves. A function, plain or
    async, of the call and its `ToolContext` says it of each call: when the model makes it, and
    again before an approved one is run. What it raises then is the call's result; before, the call
    waits."""
    native: Native = None
    """What single wires add to the tool's entry in a request, such as a cache mark."""
    approval_expires: float | timedelta | None = None
    """Seconds after which a call can no longer be approved; `None`: never."""
    editable: bool = False
    """Whether an approval may come with other arguments than the model's."""
    idempotent: bool = False
    """Whether running a call once more does no harm: an approved one of which nobody knows how it
    ended."""
    original_name: str | None = None
    """Its name before a toolset gave it another; `None`: it has its own."""

    def __post_init__(self) -> None:
        """Checks a tool's name, and makes its JSON Schema from the handler's signature if none is
        given."""
        if not self.name or self.name == "<lambda>":
            raise ToolError(f"the tool for {self.handler!r} has no name; give it one with name=…")
        if not self.input_schema:
            if self.handler is None:
                schema = _NO_ARGUMENTS
            else:
                schema = SignatureSchema(self.handler)
            msgspec.structs.force_setattr(self, "input_schema", schema)

    async def needs_approval(self, call: ToolCallPart, context: ToolContext[Any]) -> bool:
        """True if somebody must allow this call of the tool.

        Raises:
            Exception: whatever a function in `requires_approval` raises.
        """
        if not callable(self.requires_approval):
            return self.requires_approval
        verdict = self.requires_approval(call, msgspec.structs.replace(context, call=call))
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)

    def convert_arguments(self, arguments: JsonMap) -> Any:
        """Returns the tool's arguments, checked and converted, as the handler takes them.

        Raises:
            ToolError: they do not fit; the text says what is wrong.
        """
        # A copy: the handler may change what it is given.
        copied = msgspec.to_builtins(arguments)
        if isinstance(self.input_schema, SignatureSchema):
            return self.input_schema.convert(copied)
        check(self.input_schema, copied)
        return copied

    @cached_property
    def spec(self) -> ToolSpec:
        """Returns the tool's entry in a model request.

        Raises:
            ToolError: the signature has a type without JSON Schema.
        """
        return ToolSpec(self.name, self.description, dict(self.input_schema), self.native)

    async def run(self, call: ToolCallPart, context: ToolContext[Any]) -> Any:
        """Checks and converts the call's arguments, runs the handler and returns what it returns.

        Raises:
            ToolError: there is no handler, or the arguments do not fit.
            TimeoutError: it did not finish in time.
            Exception: whatever the handler raises.
        """
        if self.handler is None:
            raise ToolError(f"{self.name} is run by the client, not here")
        checked_arguments = self.convert_arguments(call.arguments or {})
        if self._context_name:
            checked_arguments[self._context_name] = msgspec.structs.replace(context, call=call)
        if self._is_generator:
            tell = partial(_preliminary, call, context)
        else:
            tell = None
        if self.timeout is None:
            return await self._invoke_handler(self.handler, checked_arguments, tell)
        with anyio.move_on_after(self.timeout):
            return await self._invoke_handler(self.handler, checked_arguments, tell)
        raise TimeoutError(f"{self.name} did not finish within {self.timeout:g} seconds")

    async def invoke(self, arguments: JsonMap, context: ToolContext[Any] | None = None) -> Any:
        """Runs the tool outside of a run, such as in a test, and returns what the handler returns.
        `context`: default: one without `deps`.

        Raises:
            ToolError: there is no handler, or the arguments do not fit.
            Exception: whatever the handler raises.
        """
        call = ToolCallPart("", self.name, dict(arguments))
        return await self.run(call, ToolContext(None, "", ()) if context is None else context)

    async def _invoke_handler(
        self,
        handler: Callable[..., Any],
        arguments: JsonMap,
        tell: Callable[[Any], Emission] | None,
    ) -> Any:
        """Calls the tool's handler, in a thread if it is not async, and tells each preliminary
        result."""
        if self._is_async:
            if tell is None:
                return await handler(**arguments)
            return await _last_of(handler(**arguments), tell)
        if tell is None:
            work = partial(handler, **arguments)
        else:
            work = partial(_last_in_thread, handler, arguments, tell)
        value = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        if inspect.isawaitable(value):
            return await value
        return value

    @cached_property
    def _context_name(self) -> str | None:
        return context_name(cast("Callable[..., Any]", self.handler))

    @cached_property
    def _is_async(self) -> bool:
        return self._is(inspect.iscoroutinefunction) or self._is(inspect.isasyncgenfunction)

    @cached_property
    def _is_generator(self) -> bool:
        return self._is(inspect.isasyncgenfunction) or self._is(inspect.isgeneratorfunction)

    def _is(self, predicate: Callable[[Any], bool]) -> bool:
        return any(map(predicate, (self.handler, getattr(self.handler, "__call__", None))))  # noqa: B004 - an object's own __call__ may be the coroutine function


def _preliminary(call: ToolCallPart, context: ToolContext[Any], value: object) -> Emission:
    """Emits a preliminary result: a value that a generator yields before its last."""
    result = msgspec.to_builtins(success_result(call, value).part.result)
    return context.emit(PRELIMINARY, {"call_id": call.id, "name": call.name, "result": result})


async def _last_of(values: AsyncGenerator[Any, None], tell: Callable[[Any], Emission]) -> Any:
    """Consumes the async generator that a tool's handler returns, tells each value, and returns the
    last."""
    value = None
    async with aclosing(values):
        async for value in values:
            await tell(value)
    return value


def _last_in_thread(
    handler: Callable[..., Iterable[Any]],
    arguments: JsonMap,
    tell: Callable[[Any], Emission],
) -> Any:
    """Consumes the generator that a tool's handler returns in a thread, tells each value, and
    returns the last."""
    value = None
    for value in handler(**arguments):
        tell(value)
    return value


class FunctionTool(Tool[DepsContra], Generic[P, R, DepsContra], frozen=True, eq=False, dict=True):
    """A tool made of a function; calling it calls the function. In a class it is a method of the
    instance."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function directly: no check, no thread, no time limit."""
        return cast("Callable[P, R]", self.handler)(*args, **kwargs)

    def __get__(self, instance: object, owner: object = None) -> FunctionTool[..., R, DepsContra]:
        """Returns the tool bound to an instance, for a method that is a tool."""
        bind = getattr(self.handler, "__get__", None)
        bound = bind(instance, owner) if bind else self.handler
        if bound is self.handler:
            return self
        schema: JsonMap = (
            {} if isinstance(self.input_schema, SignatureSchema) else self.input_schema
        )
        return msgspec.structs.replace(self, handler=bound, input_schema=schema)


class PlainFunction(Protocol):
    """A function or method that can become a tool. Tools are excluded, since the type of a tool
    says which `deps` it needs."""

    @property
    def __code__(self) -> CodeType:
        """Returns the function's code, which every function has and no tool."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        ...


class ToolDecorator(Protocol):
    """The decorator that `tool(name=…)` returns: makes a tool of a function."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[ToolContext[D], P], R], /
    ) -> FunctionTool[Concatenate[ToolContext[D], P], R, D]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    function: Callable[Concatenate[ToolContext[D], P], R], /
) -> FunctionTool[Concatenate[ToolContext[D], P], R, D]: ...
@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    sequential: bool = False,
    timeout: float | None = None,
    requires_approval: bool | Approval = False,
    native: Native = None,
    approval_expires: float | timedelta | None = None,
    editable: bool = False,
    idempotent: bool = False,
) -> ToolDecorator: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a function or method, plain or async: `@tool`, or `@tool(timeout=10.0, …)`.

    Name, description and JSON Schema come from the signature, the annotations and the docstring
    (Google, NumPy or reST style); `name` and `description` win over them. The other options are the
    fields of `Tool`.

    Raises:
        ToolError: the signature has a parameter that no model can fill, or there is no name.
    """
    if function is None:
        return partial(_function_tool, **options)
    return _function_tool(function, **options)


def _function_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> FunctionTool[..., Any]:
    """Makes a tool of a function, described by its docstring."""
    if description is None:
        description = describe(function)[0]
    return FunctionTool(name or getattr(function, "__name__", ""), description, function, **options)


def is_tool(value: object) -> TypeIs[Tool]:
    """Returns whether a value is a tool."""
    return isinstance(value, Tool)


def tool_map(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Returns the tools (definitions) by their names.

    Raises:
        ToolError: two have one name.
    """
    by_name: dict[str, Tool] = {}
    for tool in tools:
        if by_name.setdefault(tool.name, tool) is not tool:
            raise ToolError(
                f"two tools are named {tool.name!r}; give one of them another name with name=…"
            )
    return by_name


class SignatureSchema(JsonMap):
    """JSON Schema of a handler's arguments, built when it is first read: that is what needs
    pydantic.

    Raises:
        ToolError: the signature has a parameter that a model cannot fill; at construction where its kind says so, at
            first reading where its type does.
    """

    def __init__(self, handler: Callable[..., Any]) -> None:
        arguments(handler)
        self._handler = handler

    @cached_property
    def _built(self) -> Arguments:
        from dragoman.tools.argument_schema import build

        return build(self._handler)

    def convert(self, arguments: JsonMap) -> Json:
        """Converts a model's arguments for a tool to those that the handler takes, without the
        defaults of the signature.

        Raises:
            ToolError: it does not fit; the text says which argument and what was expected.
        """
        return self._built.convert(arguments)

    def __getitem__(self, key: str) -> Any:
        return self._built.schema[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._built.schema)

    def __len__(self) -> int:
        return len(self._built.schema)

    def __bool__(self) -> bool:
        # Never empty, and asking must not build it.
        return True

    def __repr__(self) -> str:
        return f"<schema of {name_of(self._handler)}>"
