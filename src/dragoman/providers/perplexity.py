"""Perplexity: the Sonar models, which search the web for each answer and call no tools."""

from dragoman.capability import Capability
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="perplexity",
    display_name="Perplexity",
    wire="openai_chat",
    base_url="https://api.perplexity.ai",
    base_url_names={"PERPLEXITY_BASE_URL": ""},
    key_names=("PERPLEXITY_API_KEY",),
    chat_model="sonar",
    embeddings_model="pplx-embed-v1-0.6b",
    embeddings_url="https://api.perplexity.ai/v1",
    models_path="/v1/models",
    capabilities=frozenset(
        map(Capability, ("chat", "embeddings", "typed_output", "vision", "files", "models"))
    ),
    quirks=Quirks(
        developer=False,
        thinking=None,
        alternates=True,
        refuses=("seed", "stream_options"),
        blocks={"application": "file_url", "video": "video_url"},
    ),
    priced_as="perplexity",
)
