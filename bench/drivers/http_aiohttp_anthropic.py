"""aiohttp, a split and msgspec by hand, as http_aiohttp_chat does it for Chat Completions."""

WIRE, VENV, DISTS, IMPORT = "anthropic", "limit", "aiohttp msgspec", "import aiohttp, msgspec"
from _decode import ANTH_BODY, anth
from _http_common import events
from http_aiohttp_chat import raw


async def text_stream(base_url, n):
    async for event in events(raw(base_url + "/v1/messages", ANTH_BODY)):
        read = anth(event[event.index(b"data: ") + 6 :])
        if read.type == "content_block_delta" and read.delta.text:
            yield read.delta.text
