"""Google, by the Gemini API of AI Studio. Models before Gemini 3 take no output schema together
with tools, so typed output comes in two phases where there are tools."""

from dragoman.capability import Capability
from dragoman.providers.media_way import MediaWay
from dragoman.providers.provider import Calls, Provider, TokenRates

__all__ = ["MEDIA", "PROVIDER"]

MEDIA = (
    MediaWay(
        mode="image_model",
        makes=("image/png", "image/jpeg", "image/webp"),
        options={"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}},
    ),
    MediaWay(
        mode="code_execution",
        makes=("*/*",),
        tool="code_execution",
        instructions=(
            "Use Python code execution to create the requested files. Their format must be one of "
            "{types}. Write PDFs with a library such as reportlab, and CSV files with the module "
            "csv. Save each file and return it as output."
        ),
        needs_media_model=False,
    ),
)
"""By a Gemini image model, and by code that Gemini runs."""

PROVIDER = Provider(
    name="google",
    display_name="Google",
    wire="google",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    base_url_names={"GOOGLE_GEMINI_BASE_URL": "/v1beta"},
    aliases=("gemini", "googleai", "google-gla"),
    key_names=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    key_header="x-goog-api-key",
    key_prefix="",
    chat_model="gemini-3.5-flash",
    embeddings_model="gemini-embedding-001",
    embeddings_batch=100,
    media_model="gemini-3.1-flash-image",
    media_ways=MEDIA,
    speech_model="gemini-3.8-flash-tts",
    voice="Kore",
    transcription_model="gemini-3.5-flash",
    models_path="/models?pageSize=1000",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.forced_tools,
            Capability.vision,
            Capability.audio,
            Capability.files,
            Capability.thinking,
            Capability.media,
            Capability.images,
            Capability.speech,
            Capability.transcription,
            Capability.server_tools,
            Capability.models,
        }
    ),
    calls=Calls("given or minted", "whole"),
    token_rates=TokenRates(0, 0.1, 1.05, 0, 0, 0.95, 10, "flat", 258, 0),
    priced_as="google",
    otel_name="gcp.gemini",
)
