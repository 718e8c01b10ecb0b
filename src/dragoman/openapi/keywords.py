"""Keywords of JSON Schema under which other schemas stand."""

from __future__ import annotations

__all__ = ["LISTS", "MAPS", "ONE"]

ONE = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""One schema."""
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""A list of them."""
MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Schemas by name."""
