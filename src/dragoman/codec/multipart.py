"""Forms with files (`multipart/form-data`, RFC 7578) ↔ fields as JSON has them, in which a file is a
`DataPart`.

`image[]`, or a name that stands twice, is a list; `svg[model]` is an object in an object. Reading is
strict: whoever sends a form chooses all of it, so each of its pieces is bounded, and what is no form
is an error. Writing gives the same bytes for the same fields: the boundary is a digest of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from dragoman.content import DataPart, guess_mime_type
from dragoman.errors import InvalidRequestError, RequestTooLargeError
from dragoman.json_bytes import Json, JsonMap

__all__ = ["FORM_TYPE", "FormBounds", "dump_form", "is_form", "load_form"]

FORM_TYPE = "multipart/form-data"
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")
"""A boundary as RFC 2046 has it, 70 characters at most."""
_NAME = re.compile(r"([^\[\]]{1,100})((?:\[[^\[\]]{0,100}\]){0,3})")
_LONGEST_HEAD = 4096
"""Bytes of the headers of one part."""
_ENCODINGS = ("", "7bit", "8bit", "binary")
_PARAMETER = re.compile(r';[ \t]*([A-Za-z]+\*?)=(?:"((?:[^"\\]|\\.)*)"|([^";\s]+))[ \t]*')
"""A parameter of a header: its name, and its value in quotes or as a word."""
_QUOTED = re.compile(r"\\([\"\\])")
_LONGEST_TYPE = 512
"""Characters of the header that names the boundary."""
_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n", "%5C": "\\"}
"""What browsers and client libraries write in names."""
_UNKNOWN_TYPE = "application/octet-stream"


class FormBounds(NamedTuple):
    """How much of a form is read. `None`: as much as there is."""

    parts: int | None = 100
    """Most fields and files."""
    field_bytes: int | None = 1024 * 1024
    """Most bytes of a field that is no file."""
    file_bytes: int | None = None
    """Most bytes of a file."""


def is_form(content_type: str) -> bool:
    """True if a header `content-type` names a form with files."""
    return content_type.partition(";")[0].strip().lower() == FORM_TYPE


def load_form(data: bytes, content_type: str, bounds: FormBounds = FormBounds()) -> Json:  # noqa: B008 - a frozen value
    """Reads a multipart form. `content_type`: the header, which holds the boundary.

    Raises:
        InvalidRequestError: it is none.
        RequestTooLargeError: it has too many parts, or a part is too large.
    """
    fields: Json = {}
    for count, (head, body) in enumerate(_split_parts(data, _read_boundary(content_type)), 1):
        if bounds.parts is not None and count > bounds.parts:
            raise RequestTooLargeError(f"the form has more than {bounds.parts} fields and files")
        _add_part(fields, head, body, bounds)
    return fields


def dump_form(fields: JsonMap) -> tuple[str, bytes]:
    """Writes fields as a multipart form. Returns its content type and its bytes. What is None is
    left out."""
    parts = [_dump_part(name, value) for name, value in _flatten_form_fields(fields)]
    boundary = blake2b(b"".join(parts), digest_size=16).hexdigest()
    line = b"--" + boundary.encode()
    body = b"".join([b"%b\r\n%b\r\n" % (line, part) for part in parts]) + line + b"--\r\n"
    return f"{FORM_TYPE}; boundary={boundary}", body


# reading


def _fault(problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"the form cannot be read: {problem}")


def _read_boundary(content_type: str) -> bytes:
    """Returns the boundary between the parts of a multipart form."""
    boundary = ""
    if len(content_type) <= _LONGEST_TYPE:
        boundary = _read_parameters(content_type)[1].get("boundary", "")
    if not _BOUNDARY.fullmatch(boundary):
        raise _fault("its content type needs a boundary of 1 to 70 characters")
    return boundary.encode()


def _read_parameters(header: str) -> tuple[str, dict[str, str]]:
    """Returns what a header of a multipart form says, in lower case, and its parameters.

    Raises:
        InvalidRequestError: a parameter is none, or stands twice.
    """
    header = header.rstrip("; \t")
    value = header.partition(";")[0]
    parameters: dict[str, str] = {}
    position = len(value)
    while position < len(header):
        match = _PARAMETER.match(header, position)
        if match is None or match[1].lower() in parameters:
            raise _fault(f"the header {header!r:.100} has a parameter that is none")
        parameters[match[1].lower()] = match[3] or _QUOTED.sub(r"\1", match[2] or "")
        position = match.end()
    return value.strip().lower(), parameters


def _split_parts(data: bytes, boundary: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields head and body of each part of a multipart form."""
    line = b"--" + boundary
    if not data.startswith(line):
        raise _fault("it does not begin with its boundary")
    # A part's end is the beginning of the next line, so the data is searched once.
    position = len(line)
    while data[position : position + 2] == b"\r\n":
        head_end = data.find(b"\r\n\r\n", position, position + _LONGEST_HEAD)
        if head_end < 0:
            raise _fault(f"a part has no headers, or more than {_LONGEST_HEAD} bytes of them")
        end = data.find(b"\r\n" + line, head_end + 4)
        if end < 0:
            raise _fault("a part has no end; was it sent whole?")
        yield data[position + 2 : head_end], data[head_end + 4 : end]
        position = end + 2 + len(line)
    if data[position : position + 2] != b"--" or data[position + 2 :].strip():
        raise _fault("it does not end with its boundary; was it sent whole?")


def _read_head(head: bytes) -> dict[str, str]:
    """Reads the headers of a part of a multipart form; their names are in lower case.

    Raises:
        InvalidRequestError: they are none, or say that the part is encoded.
    """
    headers: dict[str, str] = {}
    try:
        lines = head.decode().split("\r\n")
    except UnicodeDecodeError as error:
        raise _fault("the headers of a part are not in UTF-8") from error
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or "\r" in line or "\n" in line or "\0" in line or name != name.strip():
            raise _fault("a part has a line among its headers that is none")
        headers[name.lower()] = value.strip()
    if headers.get("content-transfer-encoding", "").lower() not in _ENCODINGS:
        raise _fault("a part is encoded; send it as it is")
    return headers


def _read_names(headers: dict[str, str]) -> tuple[str, str | None]:
    """Returns the name of a multipart form's part, and its file's name; `None` if it is no file.

    Raises:
        InvalidRequestError: the part has no name.
    """
    value, parameters = _read_parameters(headers.get("content-disposition", ""))
    name = _unescape(parameters.get("name", ""))
    if value != "form-data" or not name:
        raise _fault("a part has no name; each needs content-disposition: form-data; name=…")
    # `filename*=utf-8''…`: character set, language, text.
    encoded_name = parameters.get("filename*", "").rpartition("'")[2]
    if encoded_name:
        return name, unquote(encoded_name)
    file_name = parameters.get("filename")
    return name, file_name if file_name is None else _unescape(file_name)


def _unescape(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


def _add_part(fields: Json, head: bytes, body: bytes, bounds: FormBounds) -> None:
    """Adds one part of a multipart form to the fields."""
    headers = _read_head(head)
    name, file_name = _read_names(headers)
    match = _NAME.fullmatch(name)
    if match is None:
        raise _fault(f"{name!r:.100} is no name of a field")
    keys = [match[1], *re.findall(r"\[([^\[\]]*)\]", match[2])]
    most = bounds.field_bytes if file_name is None else bounds.file_bytes
    if most is not None and len(body) > most:
        raise RequestTooLargeError(
            f"{keys[0]} has more than {most} bytes, which is the most that is taken"
        ).at(field=keys[0])
    if file_name is None:
        value: str | DataPart = _decode_text(body, keys[0])
    else:
        value = DataPart(body, _find_type(headers, file_name, body), file_name or None)
    _put_form_value(fields, keys, value)


def _find_type(headers: dict[str, str], file_name: str, body: bytes) -> str:
    """Returns the media type of a file in a multipart form: that of its part, else by its name or
    first bytes."""
    mime_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if mime_type in ("", _UNKNOWN_TYPE):
        return guess_mime_type(file_name, body)
    return mime_type


def _decode_text(body: bytes, name: str) -> str:
    """Decodes a text field of a multipart form. Raises `InvalidRequestError` if it is no UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"{name} is not in UTF-8; a file needs a filename").at(
            field=name
        ) from error


def _put_form_value(fields: Json, keys: list[str], value: str | DataPart) -> None:
    """Puts a value of a multipart form where its keys say. A place that is taken becomes a list,
    and so does one whose last key is empty (`image[]`).

    Raises:
        InvalidRequestError: what is there is no object.
    """
    # `image[]` is a list even if it stands once.
    is_list = len(keys) > 1 and not keys[-1]
    *above, last = keys[:-1] if is_list else keys
    target = fields
    for key in above:
        inner: Any = target.setdefault(key, {})
        if not isinstance(inner, dict):
            raise _fault(f"{keys[0]} is a value and an object")
        target = cast("Json", inner)
    before: Any = target.get(last)
    if isinstance(before, dict):
        raise _fault(f"{keys[0]} is a value and an object")
    if isinstance(before, list):
        cast("list[Any]", before).append(value)
    elif before is not None:
        target[last] = [before, value]
    else:
        target[last] = [value] if is_list else value


# writing


def _flatten_form_fields(fields: JsonMap, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the name and value of each part of a multipart form."""
    for key, value in fields.items():
        name = f"{above}[{key}]" if above else key
        if isinstance(value, Mapping):
            yield from _flatten_form_fields(cast("JsonMap", value), name)
        elif isinstance(value, list | tuple):
            yield from [(f"{name}[]", item) for item in cast("list[Any]", value)]
        elif value is not None:
            yield name, value


def _dump_part(name: str, value: Any) -> bytes:
    """Returns one field as a part of a multipart form."""
    head = f'Content-Disposition: form-data; name="{_escape(name)}"'
    if isinstance(value, DataPart):
        file_name = value.name or "file"
        if "." not in file_name:
            # APIs tell the type of a recording by its name alone.
            subtype = value.mime_type.partition("/")[2].partition(";")[0]
            file_name += "." + subtype.removeprefix("x-")
        head += f'; filename="{_escape(file_name)}"\r\nContent-Type: {_escape(value.mime_type)}'
        body = value.data
    elif isinstance(value, bool):
        body = b"true" if value else b"false"
    else:
        body = str(value).encode()
    return f"{head}\r\n\r\n".encode() + body


def _escape(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(character, escape)
    return text
