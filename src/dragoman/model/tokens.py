"""Estimates the tokens of a prompt from kinds of characters and sizes of files, with measured rates
for each provider.

No tokenizer: what a text of a script comes to is nearly the same with all of them; what a provider
adds to messages, tools and calls is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import error, unpack_from
from typing import Any, NamedTuple, cast
from weakref import ref

import msgspec

from dragoman.codec.media import Media, describe_as_text, guess_media_type, read_media_text
from dragoman.fold import arguments_text
from dragoman.json_bytes import JsonMap
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.providers.provider import TokenRates
from dragoman.providers.registry import REGISTRY
from dragoman.request import ModelRequest, ServerTool, ToolSpec

__all__ = [
    "DEFAULT_PIXELS",
    "FileSize",
    "TokenCount",
    "estimate_tokens",
    "measure_file",
    "request_tokens",
    "text_tokens",
]


class TokenCount(NamedTuple):
    """How many tokens a prompt has."""

    tokens: int
    """As the model counts them."""
    is_estimate: bool = False
    """Whether nobody counted them."""


_FAMILIES: Mapping[str, str | TokenRates] = {
    "gpt-oss": TokenRates(68, 1, 1, 10, 0, 1, 6),
    "gpt-": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "grok": TokenRates(4.7, 2.9, 0.83, 147, 0, 0.98, 8),
    "deepseek": "deepseek",
    "llama": TokenRates(36, 2, 1, 135, 25, 1, 10),
    "qwen": "llamacpp",
    "mistral": "mistral",
}
"""Part of a model's name → the rates of this family, or the provider with the same rates. For
providers that offer models of many makers."""
_DEFAULT_RATES = TokenRates()


def estimate_tokens(
    messages: Iterable[Message],
    tools: Iterable[ToolSpec | ServerTool] = (),
    *,
    provider: str = "",
    model: str = "",
    output_schema: JsonMap | None = None,
) -> int:
    """Returns about how many tokens a provider counts for a conversation. `tools` and
    `output_schema` are added. Thinking is not counted: providers drop it from earlier answers or do
    not say what it costs."""
    rates = _find_rates(provider, model)
    total, count = rates.request, 0
    for message in messages:
        counts = _count_once(message)
        count += 1
        total += rates.text * counts.text + rates.call * counts.calls
        for size in counts.files:
            total += _file_tokens(size, rates)
    total += rates.message * count
    specs = [tool for tool in tools if isinstance(tool, ToolSpec)]
    if specs:
        written = [
            _dump_json(
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }
            )
            for tool in specs
        ]
        total += (
            rates.tools + rates.tool * len(specs) + rates.schema * text_tokens("".join(written))
        )
    if output_schema is not None:
        total += rates.answer * text_tokens(_dump_json(output_schema))
    return round(total)


def request_tokens(request: ModelRequest, provider: str = "", model: str = "") -> int:
    """Returns the estimated tokens of a request's prompt."""
    schema = request.output_schema
    return estimate_tokens(
        request.messages, request.tools, provider=provider, model=model, output_schema=schema
    )


def _find_rates(provider: str, model: str) -> TokenRates:
    """Returns the token rates of a provider, otherwise of the model's family, otherwise the
    default."""
    if provider and (record := REGISTRY.find(provider)) is not None and record.token_rates:
        return record.token_rates
    for name_part, rates in _FAMILIES.items():
        if name_part in model:
            return _find_rates(rates, "") if isinstance(rates, str) else rates
    return _DEFAULT_RATES


# ------------------------------------------------------------------ text


def _byte_table(first: int, last: int, *more: int) -> bytes:
    """Returns a table for `bytes.translate` that maps the given bytes to `x` and all others to
    spaces, so that tokens can be counted."""
    members = {*range(first, last + 1), *more}
    return bytes(120 if byte in members else 32 for byte in range(256))


_LETTERS = _byte_table(97, 122, *range(65, 91))
_DIGITS = _byte_table(48, 57)
_MARKS = _byte_table(33, 47, *range(58, 65), *range(91, 97), *range(123, 127))
_TWO = bytes(range(0xC0, 0xE0))
_THREE = bytes(range(0xE0, 0xF0))
_FOUR = bytes(range(0xF0, 0x100))


def text_tokens(text: str) -> float:
    """Returns the estimated tokens of a text before a provider's rate: by words, runs of digits and
    punctuation; other scripts by characters of two UTF-8 bytes (Greek, Arabic), three (Chinese) or
    four (emoji)."""
    data = b" " + text.encode("utf-8", "surrogatepass")
    letters, digits, marks = (
        data.translate(_LETTERS),
        data.translate(_DIGITS),
        data.translate(_MARKS),
    )
    lengths = letters.count(b"x")
    word_tokens = max(0.85 * letters.count(b" x") + 0.04 * lengths, lengths / 8)
    tokens = word_tokens + marks.count(b" x") + 0.5 * data.count(b"\n")
    if numbers := digits.count(b"x"):
        tokens += 0.6 * digits.count(b" x") + 0.4 * numbers
    if len(data) == len(text) + 1:
        return tokens
    length = len(data)
    two, three, four = (
        length - len(data.translate(None, leading)) for leading in (_TWO, _THREE, _FOUR)
    )
    return tokens + 0.5 * two + 0.9 * three + 2 * four


# ------------------------------------------------------------------ messages


class _Counts(NamedTuple):
    """Counts of a message that an estimate needs."""

    text: float = 0
    calls: int = 0
    files: tuple[FileSize, ...] = ()
    size: int = 0
    """Characters and bytes that were counted."""


_LARGE = 64
"""Characters and bytes from which counts are cached: below it counting is faster than caching."""
_counts_by_id: dict[int, tuple[ref[Message], _Counts]] = {}
"""Id of a large living message → a reference to it, and its counts."""


def _count_once(message: Message) -> _Counts:
    """Returns the token counts of a message, from the cache if it is large."""
    key = id(message)
    memo = _counts_by_id.get(key)
    if memo is not None and memo[0]() is message:
        return memo[1]
    counts = _count_content(message.content)
    if counts.size >= _LARGE:
        _counts_by_id[key] = ref(message, lambda _, memo=_counts_by_id: memo.pop(key, None)), counts
    return counts


def _count_content(pieces: Iterable[Content]) -> _Counts:
    """Counts the texts, calls and files of content, to estimate its tokens."""
    texts: list[str] = []
    files: list[FileSize] = []
    calls = _collect_texts(pieces, texts, files)
    text = " ".join(texts)
    return _Counts(
        text_tokens(text), calls, tuple(files), len(text) + sum([size.length for size in files])
    )


def _collect_texts(pieces: Iterable[Content], texts: list[str], files: list[FileSize]) -> int:
    """Adds the texts and files of content, whose tokens are to be counted, to the lists. Returns
    the number of tool calls and results."""
    calls = 0
    for piece in pieces:
        if isinstance(piece, TextPart):
            texts.append(piece.text)
        elif isinstance(piece, ToolCallPart):
            calls += 1
            texts += piece.name, arguments_text(piece)
        elif isinstance(piece, ToolResultPart):
            calls += 1
            result: Any = piece.result
            if piece.is_content:
                _collect_texts(result, texts, files)
            else:
                texts.append(result if isinstance(result, str) else _dump_json(result))
        elif isinstance(piece, DataPart) and read_media_text(piece) is not None:
            texts.append(describe_as_text(piece))
        elif isinstance(piece, DataPart | LinkPart | FilePart):
            files.append(measure_file(piece))
    return calls


# ------------------------------------------------------------------ files


def _file_tokens(size: FileSize, rates: TokenRates) -> float:
    """Returns the estimated tokens of a file."""
    if size.media_type == "image":
        return _IMAGES[rates.image](size.width, size.height)
    if size.media_type == "document":
        return size.pages * rates.page
    # Sound and film, by bytes: durations would need a decoder for each format.
    return size.length / 800 if size.length else _UNKNOWN_TOKENS


def _tile_tokens(width: int, height: int) -> float:
    """Returns OpenAI's tokens of an image: within 2048 pixels, the shorter side at most 768, in
    tiles of 512."""
    width, height = _fit(width, height, 2048)
    scale = min(1.0, 768 / min(width, height))
    return 85 + 170 * _count_tiles(width * scale, 512) * _count_tiles(height * scale, 512)


def _crop_tokens(width: int, height: int) -> float:
    """Returns Gemini's tokens of an image: one tile if small, otherwise tiles of 768 pixels."""
    if max(width, height) <= 384:
        return 258.0
    return 258.0 * _count_tiles(width, 768) * _count_tiles(height, 768)


def _area_tokens(width: int, height: int) -> float:
    """Returns Anthropic's tokens of an image: within 1568 pixels, by area."""
    width, height = _fit(width, height, 1568)
    return max(16.0, min(1600.0, width * height / 750))


def _fit(width: int, height: int, most: int) -> tuple[int, int]:
    """Returns the size of an image scaled down to `most` pixels."""
    scale = min(1.0, most / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _count_tiles(length: float, tile: int) -> int:
    """Returns how many tiles cover a length."""
    return int(-(-length // tile))


_UNKNOWN_TOKENS = 258.0
"""Tokens of a sound or film whose bytes are not known."""
_IMAGES = {"tiles": _tile_tokens, "flat": _crop_tokens, "area": _area_tokens}


def _dump_json(value: Any) -> str:
    """Returns a value as JSON text, as token estimates count it."""
    try:
        return _encode(value).decode()
    # Half of a surrogate pair, which UTF-8 cannot hold.
    except UnicodeEncodeError:
        return str(value)


def _plain_value(value: Any) -> Any:
    return dict(cast("JsonMap", value)) if isinstance(value, Mapping) else str(value)


_encode = msgspec.json.Encoder(enc_hook=_plain_value).encode


# sizes of files


DEFAULT_PIXELS = (1024, 1024)
"""Assumed size of an image whose bytes are not known, such as one behind a URL."""
_PAGE = b"/Type /Page", b"/Type/Page"
_SEARCH_BYTES = 1 << 20
"""Bytes at the start of a file in which pages or dimensions are searched for."""
_SIZE_MARKERS = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
"""JPEG markers that are followed by the dimensions."""


class FileSize(NamedTuple):
    """Dimensions of a file that decide its tokens."""

    media_type: str
    """`image`, `audio`, `video`, or `document`."""
    width: int = 0
    """Width of an image, in pixels."""
    height: int = 0
    """Height of an image, in pixels."""
    pages: int = 0
    """Pages of a document."""
    length: int = 0
    """Bytes of the file; 0: unknown."""


def measure_file(part: Media) -> FileSize:
    """Returns the size of a file whose tokens are estimated, as far as its bytes are known,
    otherwise a usual size."""
    mime_type, data = part.mime_type, b""
    if isinstance(part, DataPart):
        data = part.data
    elif isinstance(part, LinkPart) and not mime_type:
        mime_type = guess_media_type(part.url)
    media_type = (mime_type or "image/*").partition("/")[0]
    if media_type == "image":
        width, height = _find_pixels(data) or DEFAULT_PIXELS
        return FileSize(media_type, width, height, length=len(data))
    if media_type in ("audio", "video"):
        return FileSize(media_type, length=len(data))
    return FileSize("document", pages=_count_pages(data), length=len(data))


def _count_pages(data: bytes) -> int:
    """Returns the pages of a PDF whose tokens are estimated, at least 1."""
    head = data[:_SEARCH_BYTES]
    # "/Type /Pages" is a node of the page tree, not a page.
    return max(1, sum(head.count(mark) - head.count(mark + b"s") for mark in _PAGE))


def _find_pixels(data: bytes) -> tuple[int, int] | None:
    """Returns width and height of an image whose tokens are estimated, or None if they cannot be
    read."""
    try:
        width, height = _read_pixels(data)
    except (error, ValueError, IndexError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _read_pixels(data: bytes) -> tuple[int, int]:
    """Reads width and height, which decide an image's tokens, from the header of a PNG, GIF, JPEG
    or WebP image.

    Raises:
        ValueError: it is of no known format.
        struct.error: it ends before them.
    """
    if data.startswith(b"\x89PNG"):
        return unpack_from(">II", data, 16)
    if data.startswith(b"GIF8"):
        return unpack_from("<HH", data, 6)
    if data.startswith(b"\xff\xd8"):
        return _read_jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _read_webp_size(data)
    raise ValueError("no known image")


def _read_jpeg(data: bytes) -> tuple[int, int]:
    """Reads width and height, which decide an image's tokens, from the segments of a JPEG. Raises
    `ValueError` if there are none."""
    offset = 2
    while offset < min(len(data), _SEARCH_BYTES):
        if data[offset] != 0xFF:
            raise ValueError("no marker")
        if data[offset + 1] in _SIZE_MARKERS:
            height, width = unpack_from(">HH", data, offset + 5)
            return width, height
        # 0xFF may fill the space between segments; otherwise a segment tells its own length.
        if data[offset + 1] == 0xFF:
            offset += 1
        else:
            offset += 2 + max(2, unpack_from(">H", data, offset + 2)[0])
    raise ValueError("no size")


def _read_webp_size(data: bytes) -> tuple[int, int]:
    """Reads width and height, which decide an image's tokens, from the header of a WebP image."""
    chunk_type = data[12:16]
    if chunk_type == b"VP8 ":
        width, height = unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if chunk_type == b"VP8L":
        bits = unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = (
        unpack_from("<I", data, 24)[0] & 0xFFFFFF,
        unpack_from("<I", data + b"\0", 27)[0] & 0xFFFFFF,
    )
    return width + 1, height + 1
