"""aiohttp, a split and msgspec by hand, as http_aiohttp_chat does it for Chat Completions."""

WIRE, VENV, DISTS, IMPORT = "responses", "limit", "aiohttp msgspec", "import aiohttp, msgspec"
from _decode import RESP_BODY, resp
from _http_common import events
from http_aiohttp_chat import raw


async def text_stream(base_url, n):
    async for event in events(raw(base_url + "/v1/responses", RESP_BODY)):
        read = resp(event[event.index(b"data: ") + 6 :])
        if read.type == "response.output_text.delta":
            yield read.delta
