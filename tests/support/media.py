"""A transport that answers by path, and answers of media models."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n-and-so-on"
IMAGE = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "output_format": "png",
    "result": b64encode(PNG).decode(),
}


class Stub:
    """A transport that answers by the path after the base URL."""

    def __init__(self, answers: dict[str, tuple[int, dict[str, str], bytes]]) -> None:
        self.answers = answers
        self.asked: list[Any] = []

    async def send(self, request: Any) -> Any:
        self.asked.append(request)
        status, headers, body = self.answers[request.path.partition("/v1")[2]]
        return Answer(status, headers, body)

    async def close(self) -> None:
        pass


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    async def read(self) -> bytes:
        data, self.body = self.body[:3], self.body[3:]
        return data

    async def close(self) -> None:
        pass


def stream(*events: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """An answer of server-sent events."""
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return 200, {"content-type": "text/event-stream"}, body


def said(text: str, *files: str) -> dict[str, Any]:
    """A message item that cites files of a container."""
    annotations = [
        {
            "type": "container_file_citation",
            "container_id": "cntr_1",
            "file_id": file_id,
            "filename": f"{file_id}.csv",
            "start_index": 0,
            "end_index": 1,
        }
        for file_id in files
    ]
    block = {"type": "output_text", "text": text, "annotations": annotations}
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [block],
    }


def responded(*items: dict[str, Any], id: str = "resp_1") -> tuple[int, dict[str, str], bytes]:
    """An answer of the Responses API with these items."""
    response = {
        "id": id,
        "object": "response",
        "status": "completed",
        "model": "gpt-5",
        "output": list(items),
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    }
    return stream({"type": "response.completed", "response": response})


def held(file_id: str) -> str:
    """The path of a file in the container of `said`."""
    return f"/containers/cntr_1/files/{file_id}/content"
