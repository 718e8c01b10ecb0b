"""The messages of A2A's gRPC service: bytes ↔ the JSON of the methods that they stand for. Needs the extra `a2a`."""

from __future__ import annotations

from typing import Any

import msgspec
from a2a.types import a2a_pb2
from google.protobuf import json_format, message
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message_factory import GetMessageClass

from dragoman.codec.json_values import if_object

__all__ = ["Method", "methods"]


class Method(msgspec.Struct, frozen=True):
    """A method of the service."""

    name: str
    """As in JSON-RPC."""
    takes: type[message.Message]
    """Of its request."""
    gives: type[message.Message]
    """Of its answer, or of each of them."""
    streams: bool
    """Whether it answers with a stream."""

    def read(self, data: bytes) -> dict[str, Any] | None:
        """A request → its parameters; `None`: it is no message of that type, or holds what JSON has no form for."""
        request = self.takes()
        try:
            request.ParseFromString(data)
            return json_format.MessageToDict(request)
        except (message.DecodeError, json_format.Error, ValueError, RecursionError, OverflowError):
            return None

    def written(self, result: Any) -> bytes:
        """A result → the answer. Fields that the type does not have are left out."""
        made = self.gives()
        json_format.ParseDict(if_object(result), made, ignore_unknown_fields=True)
        return made.SerializeToString()


def methods() -> tuple[str, dict[str, Method]]:
    """The service's name, and its methods by theirs."""
    file: FileDescriptor = a2a_pb2.DESCRIPTOR
    service = file.services_by_name["A2AService"]
    found: dict[str, Method] = {}
    for each in service.methods:
        takes, gives = GetMessageClass(each.input_type), GetMessageClass(each.output_type)
        found[each.name] = Method(each.name, takes, gives, each.server_streaming)
    return service.full_name, found
