"""Hugging Face's router: models of many hosts under one token. What follows a colon in a model's name
chooses the host (`openai/gpt-oss-120b:cerebras`, `:fastest`)."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Calls, Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="huggingface",
    display_name="Hugging Face",
    wire="openai_chat",
    base_url="https://router.huggingface.co/v1",
    aliases=("hf",),
    base_url_names={"HF_ROUTER_BASE_URL": ""},
    key_names=("HUGGING_FACE_HUB_TOKEN", "HF_TOKEN"),
    chat_model="openai/gpt-oss-120b",
    capabilities=HOSTED | {Capability.vision},
    quirks=Quirks(thinking="reasoning", developer=False),
    calls=Calls("given", "in pieces"),
    relays=True,
)
