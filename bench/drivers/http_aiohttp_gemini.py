"""aiohttp, a split and msgspec by hand, as http_aiohttp_chat does it for Chat Completions."""

WIRE, VENV, DISTS, IMPORT = "gemini", "limit", "aiohttp msgspec", "import aiohttp, msgspec"
from _decode import GEM_BODY, gem
from _http_common import events
from http_aiohttp_chat import raw


async def text_stream(base_url, n):
    async for event in events(
        raw(base_url + "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", GEM_BODY),
        b"\r\n\r\n",
    ):
        for part in gem(event).candidates[0].content.parts:
            if part.text:
                yield part.text
