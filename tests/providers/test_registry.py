"""Records and the registry: rule D-76, the seed's `provider_discovery_test`, and plug-ins."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dragoman.providers
from dragoman import providers, wires
from dragoman.capability import Capability
from dragoman.errors import SettingsError
from dragoman.model.resolve_model import ModelString, parse_model_string
from dragoman.providers.provider import Provider
from dragoman.providers.registry import BUILT_IN, ENTRY_POINTS, Registry

ACME = Provider(
    name="acme",
    display_name="Acme",
    wire="openai_chat",
    base_url="https://api.acme.example/v1",
    aliases=("wile",),
)

NO_USUAL_EMBEDDINGS = {"azure", "azure-responses", "together", "openai-compatible", "vllm"}
"""Whose embeddings have no default model: one names a deployment, or what the server has."""


@pytest.fixture
def registry():
    return Registry(plug_ins=lambda: ())


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution with one module and one entry point, as pip would."""

    def install(entry, code, module):
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entry} = {module}:PROVIDER\n")

    yield install
    for name in [name for name in sys.modules if name.startswith("acme_dist")]:
        del sys.modules[name]


RECORD = """
from dragoman.providers import Provider
PROVIDER = Provider(name="acme", display_name="Acme", wire="openai_chat", base_url="https://a.example/v1", aliases=("wile",))
"""


def test_every_record_is_in_the_registry_under_its_own_name():
    folder = Path(dragoman.providers.__file__).parent
    records = {
        f"dragoman.providers.{path.stem}"
        for path in folder.glob("*.py")
        if "\nPROVIDER = " in path.read_text("utf-8")
    }
    assert set(BUILT_IN.values()) == records
    assert {import_module(module).PROVIDER.name: module for module in records} == dict(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_record_is_found_by_name_and_alias_in_any_case(name, registry):
    provider = registry.get(name)
    assert provider.name == name
    for alias in (name, *provider.aliases):
        assert registry.get(alias.upper()) is provider
        assert parse_model_string(f"{alias}:m") == ModelString(alias, "m")


def test_the_seeds_names_and_aliases_are_found(registry):
    assert registry.get("claude").name == "anthropic"
    assert [
        registry.get(n).chat_model for n in ("openai", "anthropic", "ollama", "openrouter")
    ] == [
        "gpt-4o",
        "claude-sonnet-4-6",
        "qwen2.5:7b-instruct",
        "google/gemini-2.5-flash",
    ]
    assert registry.get("openai").embeddings_model == "text-embedding-3-small"


def test_records_are_distinct_and_all_of_them_chat(registry):
    records = registry.providers()
    names = [name for record in records for name in (record.name, *record.aliases)]
    assert len(names) == len(set(names))
    assert len({record.display_name for record in records}) == len(records)
    for record in records:
        assert Capability.chat in record.capabilities
        able = Capability.embeddings in record.capabilities
        assert (record.embeddings_model is not None) == (
            able and record.name not in NO_USUAL_EMBEDDINGS
        )
        assert wires.embeddings(record.wire) is not None or not able
        assert (record.models_path is not None) == (Capability.models in record.capabilities)


def test_d79_is_superseded_by_decision_11_together_has_tools(registry):
    assert Capability.tools in registry.get("together").capabilities


def test_d76_an_unknown_name_lists_the_known_ones(registry):
    with pytest.raises(SettingsError) as caught:
        registry.get("nobody")
    assert caught.value.message.startswith('no provider is named "nobody"')
    assert all(name in caught.value.message for name in BUILT_IN)
    assert "did you mean" not in caught.value.message


@pytest.mark.parametrize(
    ("typed", "meant"), [("opnai", "openai"), ("Antropic", "anthropic"), ("cluade", "claude")]
)
def test_d76_a_misspelt_name_is_told_the_right_one(registry, typed, meant):
    with pytest.raises(SettingsError, match=f'did you mean "{meant}"'):
        registry.get(typed)


def test_d76_a_models_name_is_told_its_provider_and_a_name_of_no_family_none(registry):
    """`gpt-4o` is of the family of the model that a provider has by default; `q9` is of none, as is
    a record without a model."""
    known = ", ".join(sorted(provider.name for provider in registry.providers()))
    for name, hint in (
        ("gpt-4o", '; did you mean "openai:gpt-4o"? There are '),
        ("q9", "; there are "),
    ):
        with pytest.raises(SettingsError) as caught:
            registry.get(name)
        assert caught.value.message == f'no provider is named "{name}"{hint}{known}'


@pytest.mark.parametrize("name", ["", "   "])
def test_d67_d76_an_empty_name_is_unknown(registry, name):
    with pytest.raises(SettingsError, match="no provider is named"):
        registry.get(name)


def test_a_provider_registered_in_code_is_found_here_and_nowhere_else(registry):
    registry.register(ACME)
    assert registry.get("Acme") is registry.get("wile") is ACME
    assert ACME in registry.providers()
    with pytest.raises(SettingsError):
        Registry(plug_ins=lambda: ()).get("acme")


@pytest.mark.parametrize(
    "names",
    [
        {"name": "openai"},
        {"name": "claude"},
        {"name": "new", "aliases": ("openai",)},
        {"name": "n", "aliases": ("claude",)},
    ],
)
def test_a_name_that_is_taken_is_not_taken_away(registry, names):
    with pytest.raises(SettingsError, match="is taken by"):
        registry.register(Provider(display_name="New", wire="openai_chat", **names))
    assert registry.get("openai").display_name == "OpenAI"


def test_a_provider_is_replaced_where_that_is_said(registry):
    mine = Provider(name="openai", display_name="Mine", wire="openai_chat")
    registry.register(mine, replace=True)
    assert registry.get("openai") is mine
    with pytest.raises(SettingsError, match="claude is taken"):
        registry.register(
            Provider(name="openai", display_name="M", wire="openai_chat", aliases=("claude",)),
            replace=True,
        )


@pytest.mark.parametrize("name", ["", "Acme", "ac_me", "1a", "a:b", "a/b"])
def test_a_name_that_no_model_string_can_hold_is_refused(registry, name):
    with pytest.raises(SettingsError, match="provider name"):
        registry.register(Provider(name=name, display_name="Acme", wire="openai_chat"))


def test_a_plug_in_is_found_by_name_and_alias(install):
    install("acme", RECORD, "acme_dist")
    registry = Registry()
    assert registry.get("ACME").display_name == "Acme"
    assert registry.get("wile") is registry.get("acme")
    assert "acme" in [provider.name for provider in registry.providers()]
    assert registry.broken() == []


def test_a_plug_in_is_loaded_when_it_is_looked_up(install):
    install("acme", RECORD, "acme_dist_lazy")
    registry = Registry()
    registry.get("openai")
    registry.get("claude")
    assert "acme_dist_lazy" not in sys.modules
    registry.get("acme")
    assert "acme_dist_lazy" in sys.modules


@pytest.mark.parametrize(
    ("entry", "code", "why"),
    [
        pytest.param("acme", "1 / 0", "cannot be loaded: ZeroDivisionError", id="raises"),
        pytest.param(
            "acme", "import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3", id="exits"
        ),
        pytest.param(
            "acme",
            "import no_such_module_at_all",
            "cannot be loaded: ModuleNotFoundError",
            id="misses a module",
        ),
        pytest.param("acme", "", "cannot be loaded: AttributeError", id="holds no record"),
        pytest.param(
            "acme", "PROVIDER = 'acme'", "must be a dragoman Provider, not str", id="is no record"
        ),
        pytest.param(
            "other", RECORD, 'has a provider of another name, "acme"', id="has another name"
        ),
        pytest.param(
            "acme",
            RECORD.replace("wile", "W ile"),
            'provider name "W ile"',
            id="has an illegal alias",
        ),
    ],
)
def test_a_broken_plug_in_names_its_distribution_and_harms_nobody_else(install, entry, code, why):
    install(entry, code, "acme_dist_broken")
    registry = Registry()
    with pytest.raises(SettingsError) as caught:
        registry.get(entry)
    assert "acme_dist_broken" in caught.value.message
    assert why in caught.value.message
    assert registry.get("claude").name == "anthropic"
    assert len(registry.providers()) == len(BUILT_IN)
    assert [error.message for error in registry.broken()] == [caught.value.message]
    with pytest.raises(SettingsError, match="acme_dist_broken"):
        registry.get("nobody")


def test_a_plug_in_does_not_take_a_built_in_name(install):
    install("openai", RECORD.replace('"acme"', '"openai"'), "acme_dist_thief")
    registry = Registry()
    assert registry.get("openai").display_name == "OpenAI"
    assert [p.display_name for p in registry.providers() if p.name == "openai"] == ["OpenAI"]


def test_looking_up_a_built_in_loads_its_record_alone():
    code = (
        "import sys; from dragoman import providers; providers.get('openai');"
        "print(*(name for name in sys.modules if name.startswith('dragoman.providers.') or name == 'importlib.metadata'))"
    )
    env = {"PYTHONPATH": str(Path(dragoman.providers.__file__).parents[2])}
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert set(loaded.split()) == {
        f"dragoman.providers.{name}"
        for name in ("auth", "media_way", "openai", "provider", "registry")
    }


def test_the_documented_record_registers_and_is_found(registry):
    text = (Path(__file__).parents[2] / "docs" / "providers.md").read_text("utf-8")
    block = text.split("```python\n")[1].split("```")[0]
    names = {}
    exec(block, names)
    registry.register(names["acme"])
    assert registry.get("acme").base_url.startswith("https://")
    assert providers.get("openai").wire == names["acme"].wire


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"key_names": "ACME_API_KEY"}, r'write key_names=\("ACME_API_KEY",\)'),
        ({"aliases": "wile"}, r'write aliases=\("wile",\)'),
        ({"auth_names": "ACME_TOKEN"}, r'write auth_names=\("ACME_TOKEN",\)'),
        (
            {"quirks": {"max_tokens": "n"}},
            "a record of the wire openai_chat and is a dict; write quirks=Quirks",
        ),
        ({"quirks": "strict"}, "is a str; write quirks=Quirks"),
        ({"name": "acme two"}, 'the provider name "acme two" cannot stand in a model string'),
        ({"aliases": ("Wile",)}, 'the provider name "Wile" cannot stand in a model string'),
    ],
)
def test_a_record_that_would_be_misread_is_refused_when_it_is_made(record, words):
    with pytest.raises(SettingsError, match=words) as caught:
        Provider(**{"name": "acme", "display_name": "Acme", "wire": "openai_chat", **record})
    assert caught.value.message.startswith("the record of Acme: ")
