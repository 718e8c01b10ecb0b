"""Model strings: rules D-60…D-69 and the cases of the seed's `model_string_parser_test`."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.errors import SettingsError
from dragoman.model.resolve_model import ModelString, parse_model_string


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("openai", ModelString("openai"), id="D-60"),
        pytest.param("openai:gpt-4o", ModelString("openai", "gpt-4o"), id="D-61"),
        pytest.param(
            "openrouter:google/gemini-2.5-flash",
            ModelString("openrouter", "google/gemini-2.5-flash"),
            id="D-61 slash",
        ),
        pytest.param(
            "ollama:qwen2.5:7b-instruct",
            ModelString("ollama", "qwen2.5:7b-instruct"),
            id="D-61 colons",
        ),
        pytest.param(
            "local:/models/a b.gguf", ModelString("local", "/models/a b.gguf"), id="D-61 path"
        ),
        pytest.param("a:b//c", ModelString("a", "b//c"), id="D-61 empty segment after the colon"),
        pytest.param("openai/gpt-4o", ModelString("openai", "gpt-4o"), id="D-62"),
        pytest.param("openai?chat=gpt-4o", ModelString("openai", "gpt-4o"), id="D-63 chat"),
        pytest.param(
            "openai?embeddings=e", ModelString("openai", embeddings="e"), id="D-63 embeddings"
        ),
        pytest.param("openai?media=m", ModelString("openai", media="m"), id="D-63 media"),
        pytest.param("openai?other=m", ModelString("openai", media="m"), id="D-63 other"),
        pytest.param(
            "p?media=m&chat=c&embeddings=e",
            ModelString("p", "c", "e", "m"),
            id="D-63 all, any order",
        ),
        pytest.param("p?chat=a%2Fb%3Fc%26d", ModelString("p", "a/b?c&d"), id="D-63 URL-decoded"),
        pytest.param(
            "p?chat=a/b:c", ModelString("p", "a/b:c"), id="D-63 slash and colon as they are"
        ),
        pytest.param("OpenAI:GPT-4o", ModelString("openai", "GPT-4o"), id="D-64 colon"),
        pytest.param("OpenAI/GPT-4o", ModelString("openai", "GPT-4o"), id="D-64 slash"),
        pytest.param("OpenAI?chat=GPT", ModelString("openai", "GPT"), id="D-64 query"),
        pytest.param("CLAUDE", ModelString("claude"), id="D-64 alone; an alias stays an alias"),
        pytest.param("openai:", ModelString("openai"), id="D-65 colon"),
        pytest.param("openai/", ModelString("openai"), id="D-65 slash"),
        pytest.param("openai?chat=", ModelString("openai"), id="D-65 query"),
        pytest.param("openai?chat=c&embeddings=", ModelString("openai", "c"), id="D-65 one of two"),
        pytest.param("pro/vider:x", ModelString("pro", "vider:x"), id="D-67"),
        pytest.param("   ", ModelString("   "), id="D-67 whitespace"),
        pytest.param(
            "openai:gpt-4o?embeddings=e", ModelString("openai", "gpt-4o"), id="D-69 query ignored"
        ),
        pytest.param(
            "openai-compatible:m", ModelString("openai-compatible", "m"), id="D-69 legal: -"
        ),
        pytest.param("llama.cpp:m", ModelString("llama.cpp", "m"), id="D-69 legal: ."),
    ],
)
def test_parses(text, expected):
    assert parse_model_string(text) == expected
    assert parse_model_string(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a//b",
        "a/b/c",
        "google/models/gemini",
        "/gpt",
        "//x",
        ":gpt",
        "?chat=a",
        "a_b:c",
        "1a:c",
        "a b:c",
        "a?chta=b",
    ],
)
def test_d66_d69_rejects_what_has_none_of_the_forms(text):
    with pytest.raises(SettingsError) as caught:
        parse_model_string(text)
    assert caught.value.message.startswith(f'Invalid model string format: "{text}".')
    assert "provider:model" in caught.value.message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ModelString("openai"), "openai"),
        (ModelString("openai", "gpt-4o"), "openai:gpt-4o"),
        (ModelString("ollama", "qwen2.5:7b"), "ollama:qwen2.5:7b"),
        (ModelString("openai", embeddings="e"), "openai?embeddings=e"),
        (ModelString("openai", "c", "e", "m"), "openai?chat=c&embeddings=e&media=m"),
        (ModelString("openrouter", "a/b", media="m"), "openrouter?chat=a/b&media=m"),
        (ModelString("openai", "what?"), "openai?chat=what%3F"),
        (ModelString("my_provider", "m"), "my_provider?chat=m"),
        (ModelString("openai", media="m"), "openai?media=m"),
        (ModelString("openai", None, "a?b&c", ""), "openai?embeddings=a%3Fb%26c"),
        (ModelString("openai", "", "", ""), "openai"),
    ],
)
def test_d68_writes_the_shortest_form_that_holds_it(value, text):
    assert str(value) == text
    assert parse_model_string(text) == ModelString(
        value.provider, value.chat or None, value.embeddings or None, value.media or None
    )


_models = st.none() | st.text(min_size=1)


@given(st.text("az09+._-").map("p".__add__), _models, _models, _models)
def test_d68_parse_undoes_str(provider, chat, embeddings, media):
    value = ModelString(provider, chat, embeddings, media)
    assert parse_model_string(str(value)) == value


@given(st.text(alphabet=st.sampled_from("aZ0_ :/?&=%+#-") | st.characters(codec="utf-8")))
def test_d68_str_of_what_was_parsed_parses_to_the_same(text):
    try:
        value = parse_model_string(text)
    except SettingsError:
        assume(False)
    assert parse_model_string(str(value)) == value
    assert value.provider == value.provider.lower()
