"""An MCP server that does what tests need, of the library's making: it speaks the protocol of today
and of before 2026."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    ModelHint,
    ModelPreferences,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Size(BaseModel):
    """How big something is to be."""

    size: Literal["small", "large"]
    count: int = 1


class Point(BaseModel):
    """A place."""

    x: int
    y: int


FORM = Size.model_json_schema()


def server(name: str = "tests", log: Path | None = None) -> MCPServer:
    """The server. `log`: gets a line for each call."""
    made = MCPServer(name, instructions="for tests")

    def note(text: str) -> None:
        if log is not None:
            with log.open("a") as file:
                file.write(text + "\n")

    @made.tool(
        title="Add two numbers",
        annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False),
        structured_output=False,
    )
    def add(a: int, b: int) -> str:
        """Adds."""
        note(f"add {a} {b}")
        return str(a + b)

    @made.tool()
    def point(x: int, y: int) -> Point:
        """Gives a structured value."""
        return Point(x=x, y=y)

    @made.tool()
    def words() -> list[str]:
        """Gives a list of texts."""
        return ["a", "b"]

    @made.tool(structured_output=False)
    def picture() -> Image:
        """Gives an image."""
        return Image(data=PIXEL, format="png")

    @made.tool()
    def mixed(fails: bool = False) -> CallToolResult:
        """Gives one of everything."""
        return CallToolResult(
            content=[
                TextContent(text="look"),
                ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png"),
                AudioContent(data=base64.b64encode(b"RIFF").decode(), mime_type="audio/wav"),
                EmbeddedResource(
                    resource=TextResourceContents(
                        uri="memo://1", text="a memo", mime_type="text/plain"
                    )
                ),
                EmbeddedResource(
                    resource=BlobResourceContents(
                        uri="file:///x/data.bin", blob=base64.b64encode(b"\0\1").decode()
                    )
                ),
                ResourceLink(name="pic", uri="https://example.com/a.png", mime_type="image/png"),
                ResourceLink(name="memo", title="The memo", uri="memo://2", description="more"),
            ],
            structured_content={"n": 1},
            is_error=fails,
        )

    @made.tool(structured_output=False)
    def nothing() -> CallToolResult:
        """Gives nothing."""
        return CallToolResult(content=[])

    @made.tool(structured_output=False)
    def big(size: int) -> str:
        """Gives much."""
        return "x" * size

    @made.tool()
    def fail() -> str:
        """Fails."""
        raise ToolError("no luck")

    @made.tool(structured_output=False)
    async def slow(ctx: Context, seconds: float = 30.0) -> str:
        """Takes long."""
        note("slow begins")
        try:
            await ctx.report_progress(0.5, 1.0, "half")
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            note("slow is cancelled")
            raise
        return "done"

    @made.tool(structured_output=False)
    async def logs(ctx: Context) -> str:
        """Logs."""
        await ctx.warning("a\nwarning", logger_name="part")
        return "logged"

    @made.tool(structured_output=False)
    async def more_tools(ctx: Context) -> str:
        """Adds a tool."""

        def extra() -> str:
            """Came later."""
            return "extra"

        made.add_tool(extra, name="extra")
        if _is_legacy(ctx):
            await ctx.session.send_tool_list_changed()
        else:
            await ctx.notify_tools_changed()
        return "there is one more"

    @made.tool(structured_output=False)
    async def order(ctx: Context, what: str) -> str | InputRequiredResult:
        """Asks how big."""
        note(f"order {what}")
        message = f"How big is the {what} to be?"
        if _is_legacy(ctx):
            answer = await ctx.elicit(message, Size)
            note(f"order answered {answer.action}")
            if answer.action != "accept":
                return answer.action
            return f"{answer.data.count} {answer.data.size} {what}"
        given = (ctx.input_responses or {}).get("size")
        if given is None:
            asked = ElicitRequest(
                params=ElicitRequestFormParams(message=message, requested_schema=FORM)
            )
            return InputRequiredResult(input_requests={"size": asked}, request_state="s1")
        content: Any = getattr(given, "content", None)
        return f"{content.get('count', 1)} {content['size']} {what}"

    @made.tool(structured_output=False)
    async def pay(ctx: Context) -> str | InputRequiredResult:
        """Sends somebody to a page."""
        url = "https://pay.example.com/1"
        if _is_legacy(ctx):
            answer = await ctx.elicit_url("Please pay.", url, "e1")
            return answer.action
        given = (ctx.input_responses or {}).get("page")
        if given is None:
            asked = ElicitRequest(params=ElicitRequestURLParams(message="Please pay.", url=url))
            return InputRequiredResult(input_requests={"page": asked})
        return str(getattr(given, "action", None))

    @made.tool(structured_output=False)
    async def locked(ctx: Context, key: str) -> str:
        """Refuses until somebody went to a page."""
        if not os.path.exists(key):  # noqa: ASYNC240, PTH110 - a test's
            page = ElicitRequestURLParams(
                message="Unlock it.", url="https://lock.example.com", elicitation_id="l1"
            )
            raise UrlElicitationRequiredError([page])
        answer = await ctx.elicit("What then?", Size)
        return str(answer.data.size) if answer.action == "accept" else answer.action

    @made.tool(structured_output=False)
    async def summary(ctx: Context, text: str) -> str | InputRequiredResult:
        """Asks for a model."""
        params = CreateMessageRequestParams(
            messages=[SamplingMessage(role="user", content=TextContent(text=f"Sum up: {text}"))],
            system_prompt="Be brief.",
            max_tokens=50,
            temperature=0.5,
            stop_sequences=["END"],
            model_preferences=ModelPreferences(hints=[ModelHint(name="small")]),
        )
        if _is_legacy(ctx):
            made_ = await ctx.session.create_message(
                params.messages,
                max_tokens=50,
                system_prompt="Be brief.",
                temperature=0.5,
                stop_sequences=["END"],
                model_preferences=params.model_preferences,
                related_request_id=ctx.request_id,
            )
        else:
            made_ = (ctx.input_responses or {}).get("model")
            if made_ is None:
                return InputRequiredResult(
                    input_requests={"model": CreateMessageRequest(params=params)}
                )
        content: Any = getattr(made_, "content", None)
        return f"{getattr(made_, 'model', '')}: {content.text}"

    @made.tool(structured_output=False)
    async def roots(ctx: Context) -> str | InputRequiredResult:
        """Asks for the roots."""
        if _is_legacy(ctx):
            found = await ctx.session.list_roots()
        else:
            found = (ctx.input_responses or {}).get("roots")
            if found is None:
                return InputRequiredResult(input_requests={"roots": ListRootsRequest()})
        return " ".join(str(one.uri) for one in getattr(found, "roots", []))

    @made.tool(structured_output=False)
    def trace(ctx: Context) -> str:
        """Tells in which trace it is called."""
        meta: Any = ctx.request_context.meta or {}
        return str(meta.get("traceparent"))

    @made.resource(
        "memo://hello",
        name="hello",
        title="Hello",
        description="A greeting.",
        mime_type="text/plain",
    )
    def hello() -> str:
        return "hello"

    @made.resource("memo://pixel", name="pixel", mime_type="image/png")
    def pixel() -> bytes:
        return PIXEL

    @made.resource("memo://user/{who}", name="user")
    def user(who: str) -> str:
        return f"user {who}"

    @made.prompt(title="Review", description="Reviews code.")
    def review(code: Annotated[str, "what to review"], style: str = "kind") -> str:
        return f"Review this, {style}: {code}"

    return made


def _is_legacy(ctx: Context) -> bool:
    return (ctx.protocol_version or "") < "2026"
