"""What Amazon Bedrock's Converse API takes: the types of AWS's SDK, with their enumerations, lengths
and patterns, and the rules that its documentation adds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from support.rules.pairing import Turn, misnamed, unpaired

__all__ = ["problems", "service"]


@cache
def service() -> Any:
    """The model of `bedrock-runtime` that botocore has."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    return ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))


def problems(body: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a body that is sent to `/model/MODEL/converse`."""
    from botocore.validate import ParamValidator

    shape = service().operation_model("Converse").input_shape
    whole = {"modelId": "m", **body}
    report = ParamValidator().validate(whole, shape)
    if report.has_errors():
        yield report.generate_report()
    yield from _faults(body, shape, "body")
    messages = body["messages"]
    if [message["role"] for message in messages][:1] != ["user"]:
        yield "the user does not speak first"
    for place, (before, message) in enumerate(pairwise(messages), 1):
        if before["role"] == message["role"]:
            yield f"[{place}]: the roles do not take turns"
    blocks = [block for message in messages for block in message["content"]]
    calls = [block["toolUse"] for block in blocks if "toolUse" in block]
    tools = body.get("toolConfig", {}).get("tools", [])
    declared = [tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool]
    yield from misnamed("the id", [call["toolUseId"] for call in calls], "[a-zA-Z0-9_.:-]{1,64}")
    yield from misnamed(
        "the name", [*declared, *(call["name"] for call in calls)], "[a-zA-Z0-9_-]{1,64}"
    )
    if calls and not tools:
        yield "there are calls and no toolConfig"
    yield from (
        f"{call['name']} is called and not declared"
        for call in calls
        if call["name"] not in declared
    )
    yield from unpaired([_turn(message) for message in messages])
    yield from _of_documents(messages)
    for place, message in enumerate(messages):
        if not message["content"]:
            yield f"[{place}]: it is empty"
        if any("text" in block and not block["text"].strip() for block in message["content"]):
            yield f"[{place}]: a text is blank"
        kinds = ["toolResult" in block for block in message["content"]]
        if kinds != sorted(kinds, reverse=True):
            yield f"[{place}]: a result stands behind something else"
    for block in body.get("system", []):
        if "text" in block and not block["text"].strip():
            yield "a system text is blank"


def _turn(message: dict[str, Any]) -> Turn:
    blocks = message["content"]
    calls = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
    results = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
    return Turn(message["role"], calls, results, not results and not calls)


def _of_documents(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Documents have names of few characters, each once, and stand beside a text."""
    found: list[str] = []
    for place, message in enumerate(messages):
        kinds = {kind for block in message["content"] for kind in block}
        if "document" in kinds and "text" not in kinds:
            yield f"[{place}]: a document stands without a text"
        found += [block["document"]["name"] for block in message["content"] if "document" in block]
    yield from misnamed("the document", found, r"[A-Za-z0-9()\[\]\-]+( [A-Za-z0-9()\[\]\-]+)*")
    if len(set(found)) < len(found):
        yield f"two documents have one name: {found}"


def _faults(value: Any, shape: Any, path: str) -> Iterator[str]:
    """What botocore's validator leaves to the server: enumerations, patterns, lengths, unions."""
    if shape.type_name == "structure" and not getattr(shape, "is_document_type", False):
        if getattr(shape, "is_tagged_union", False) and len(value) != 1:
            yield f"{path}: of a union one member is set, not {list(value)}"
        for name, inner in value.items():
            if name not in shape.members:
                yield f"{path}: there is no field {name}"
            else:
                yield from _faults(inner, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for place, inner in enumerate(value):
            yield from _faults(inner, shape.member, f"{path}[{place}]")
    elif shape.type_name == "string":
        metadata = shape.metadata
        if metadata.get("enum") and value not in metadata["enum"]:
            yield f"{path}: {value!r} is none of {metadata['enum']}"
        if len(value) > metadata.get("max", 1e9) or len(value) < metadata.get("min", 0):
            yield f"{path}: {len(value)} characters are too many or too few"
        if (pattern := metadata.get("pattern")) and re.fullmatch(pattern, value) is None:
            yield f"{path}: {value!r} does not match {pattern}"
