"""A model server on this machine that speaks every wire, by way of our own encoders, and answers as
a function says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event as Flag
from threading import Thread
from typing import Any

import msgspec

from dragoman import (
    BatchEmbeddingsResult,
    Message,
    ModelRequest,
    ToolCallPart,
    ToolSpec,
    Usage,
    unfold,
    wires,
)
from dragoman.errors import DragomanError
from dragoman.request import EmbeddingsRequest
from support.embeddings import SIZE, made_up
from support.model import pieces, says

WIRES = {"/chat/completions": "openai_chat", "/messages": "anthropic"}
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7)

Reply = Callable[[ModelRequest], Message | DragomanError]


def echo(request: ModelRequest) -> Message:
    """Says what the user said."""
    return says(f"You said: {request.messages[-1].text}").replace(usage=USAGE)


def obliging(request: ModelRequest) -> Message:
    """Calls the first tool, fills the schema, or says something: whatever the request is made
    for."""
    tools = [tool for tool in request.tools if isinstance(tool, ToolSpec)]
    last = request.messages[-1]
    if tools and not (last.tool_results and tools[-1].name != "return_result"):
        tool = tools[-1] if last.tool_results else tools[0]
        return says(ToolCallPart("call-1", tool.name, example(tool.input_schema))).replace(
            usage=USAGE
        )
    if request.output_schema:
        return says(json.dumps(example(request.output_schema))).replace(usage=USAGE)
    return says("Gladly.").replace(usage=USAGE)


def example(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """A value that fits a JSON Schema."""
    root = root or schema
    if "$ref" in schema:
        return example(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], root)
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: example(value, root) for name, value in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"], root)]
    return {"string": "Oslo", "integer": 7, "number": 1.5, "boolean": True, "null": None}[kind]


class Llm:
    """The server. `held`: when set to a flag, the stream stops after its first half until the flag
    is set."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[ModelRequest] = []
        self.embedded: list[EmbeddingsRequest] = []
        self.headers: list[dict[str, str]] = []
        self.held: Flag | None = None
        self.half = Flag()
        self.cut = False
        self.models = ["tiny", "text-embedding-tiny", "dall-e-3", "text-moderation-1"]
        llm = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                models = [{"id": name} for name in llm.models]
                self._send(200, json.dumps({"data": models}).encode(), "application/json")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path.endswith("/embeddings"):
                    return self._send(200, json.dumps(llm.embed(body)).encode(), "application/json")
                wire = wires.get(
                    next(name for path, name in WIRES.items() if self.path.endswith(path))
                )
                request = wire.load_request(body)
                llm.requests.append(request)
                llm.headers.append({name.lower(): value for name, value in self.headers.items()})
                reply = llm.reply(request)
                if isinstance(reply, DragomanError):
                    error = wire.dump_error(reply)
                    return self._send(
                        error.status, json.dumps(error.body).encode(), "application/json"
                    )
                encoder = wire.encoder(id="answer", model=request.model)
                events = pieces(unfold([reply.replace(id="answer")]), 4)
                data = b"".join([*map(encoder.feed, events), encoder.close()])
                self._send(200, data, "text/event-stream")
                return None

            def _send(self, status: int, data: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                if llm.cut:
                    self.send_header("content-length", str(len(data)))
                self.end_headers()
                middle = len(data) // 2
                self.wfile.write(data[:middle])
                self.wfile.flush()
                if llm.held is not None:
                    llm.half.set()
                    llm.held.wait(20)
                if not llm.cut:
                    self.wfile.write(data[middle:])

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def embed(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """A vector for each text; texts that share words are near each other."""
        wire = wires.embeddings("openai_chat")
        assert wire is not None
        request = wire.load_request(body)
        self.embedded.append(request)
        vectors = [made_up(text, request.dimensions or SIZE) for text in request.texts]
        return wire.dump_response(
            BatchEmbeddingsResult(vectors, Usage(input_tokens=3, total_tokens=3)), request=request
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@contextmanager
def serving(reply: Reply) -> Iterator[Llm]:
    """A server for as long as the block lasts."""
    llm = Llm(reply)
    thread = Thread(target=llm.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield llm
    finally:
        if llm.held is not None:
            llm.held.set()
        llm.server.shutdown()
        llm.server.server_close()
        thread.join()


def decoded(text: str) -> Any:
    """JSON that a command printed."""
    return msgspec.json.decode(text)
