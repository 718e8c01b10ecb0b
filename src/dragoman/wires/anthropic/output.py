"""In which form to answer: `output_config.format` ↔ the output schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_dialect import Dialect, fit
from dragoman.codec.json_values import if_object
from dragoman.loss import Loss
from dragoman.request import ModelRequest
from dragoman.wires.anthropic.reasoning import take

__all__ = ["dump_format", "load_format"]

_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_DIALECT = Dialect(
    kept=frozenset({"title", "description", "enum", "const", "default", "format", "minItems"}),
    only={"format": frozenset(_FORMATS), "minItems": frozenset({0, 1})},
    closed=True,
    recursive=False,
    lists=False,
)


def load_format(body: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Takes the output schema out of a body → the schema, and its spelling."""
    config = body.get("output_config")
    for key, form in (
        ("output_config", cast("dict[str, Any]", config).get("format") if isinstance(config, dict) else None),
        ("output_format", body.get("output_format")),
    ):
        match form:
            case {"type": "json_schema", "schema": dict()}:
                form = cast("dict[str, Any]", form)
                rest = {name: value for name, value in form.items() if name not in ("type", "schema")}
                if key == "output_config":
                    take(body, "output_config", "format")
                else:
                    del body["output_format"]
                told = {**({"key": key} if key == "output_format" else {}), **({"fields": rest} if rest else {})}
                return form["schema"], {"output_schema": {"as is": True, **told}}
            case _:
                pass
    return None, {}


def dump_format(
    request: ModelRequest, effort: str | None, spelled: Mapping[str, Any], losses: list[Loss]
) -> dict[str, Any]:
    """The output schema and the effort → `output_config`, or `output_format` where it was spelled so. A loaded schema is sent
    as it was, any other in the API's dialect."""
    config = dict(if_object(request.options.get("output_config")))
    if effort is not None:
        config["effort"] = effort
    out: dict[str, Any] = {}
    told = cast("Mapping[str, Any]", spelled.get("output_schema", {}))
    schema = request.output_schema
    if schema is not None and "as is" not in told and (schema := fit(schema, _DIALECT)) is None:
        losses.append(Loss(None, None, "output_schema", "the API knows neither recursive schemas nor free keys"))
    if schema is not None:
        form = {**told.get("fields", {}), "type": "json_schema", "schema": schema}
        if told.get("key") == "output_format":
            out["output_format"] = form
        else:
            config["format"] = form
    return {**out, "output_config": config} if config else out
