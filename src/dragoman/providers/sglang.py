"""An SGLang server. It answers with the model it was started with, whatever the name."""

import msgspec

from dragoman.providers import vllm
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    vllm.PROVIDER,
    name="sglang",
    display_name="SGLang",
    base_url="http://localhost:30000/v1",
    base_url_names={"SGLANG_BASE_URL": "/v1"},
    key_names=("SGLANG_API_KEY",),
    chat_model="default",
    embeddings_model="default",
    quirks=Quirks(developer=False, blocks={"video": "video_url", "audio": "audio_url"}),
)
