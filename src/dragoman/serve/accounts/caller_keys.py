"""Keys of callers in the database.

A key is 256 random bits, of which a digest is stored and nothing else. Nobody can guess so many bits,
so that the digest needs neither a salt nor many rounds, and a key is found by it with one read. The
digest is also the caller's id.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select, update

from dragoman.errors import SettingsError
from dragoman.serve.http.budget import parse_budgets
from dragoman.serve.http.callers import Caller, Key
from dragoman.serve.store.sql_tables import caller_keys

__all__ = [
    "CallerKey",
    "find_key",
    "find_owner",
    "insert_key",
    "is_key_form",
    "list_keys",
    "make_key",
    "revoke_key",
]

_PREFIX = "dgm_"
"""How every key begins."""
_SHOWN = len(_PREFIX) + 6
"""Characters of a key that lists show."""
_MOST_NAME, _MOST_MODELS = 64, 100
_SHORTEST_PREFIX = len(_PREFIX) + 2
_MOST_LISTED = 1000
_C = caller_keys.c


class CallerKey(msgspec.Struct, frozen=True):
    """A key as it is stored."""

    owner: str
    """Id of its caller: a digest of the key."""
    name: str
    """For people, logs and metrics."""
    prefix: str
    """How the key begins."""
    models: tuple[str, ...] | None
    """What its callers may name; `*` stands for any characters. `None`: all."""
    budgets: tuple[str, ...]
    """As `parse_budgets` takes them."""
    created_at: datetime
    """When it was made."""
    expires_at: datetime | None
    """When it ends; `None`: never."""
    revoked_at: datetime | None = None
    """When it was revoked; `None`: it was not."""

    def is_valid(self, now: datetime) -> bool:
        """True if the key may be used."""
        is_over = self.expires_at is not None and self.expires_at <= now
        return self.revoked_at is None and not is_over

    @property
    def caller(self) -> Caller:
        """Returns the caller with this key."""
        budgets = parse_budgets(self.budgets)
        return Caller(self.owner, self.name, self.models, budgets, self.prefix, self.expires_at)


def is_key_form(secret: str) -> bool:
    """True if a key may be one of these. Others are not looked up."""
    return secret.startswith(_PREFIX) and len(secret) < 100


def find_owner(secret: str) -> str:
    """Returns the id of a key's caller."""
    return Key(secret).caller.id


def make_key(
    name: str,
    models: list[str] | None,
    budgets: list[str],
    now: datetime,
    expires_at: datetime | None,
) -> tuple[str, CallerKey]:
    """Returns a new key, and what is stored of it.

    Raises:
        SettingsError: the name, a model or a budget cannot be used.
    """
    if not (name.strip() == name and name.isprintable() and 0 < len(name) <= _MOST_NAME):
        raise SettingsError(f"a key's name has 1 to {_MOST_NAME} characters, not {name!r:.80}")
    if name.startswith(_PREFIX):
        raise SettingsError(f"a key's name cannot begin with {_PREFIX}, as keys do")
    if models is not None and not (0 < len(models) <= _MOST_MODELS and all(models)):
        raise SettingsError(
            f"a key has 1 to {_MOST_MODELS} names of models; leave them out for all"
        )
    if expires_at is not None and expires_at <= now:
        raise SettingsError("a key cannot have expired before it is made")
    secret = _PREFIX + secrets.token_urlsafe(32)
    return secret, CallerKey(
        owner=find_owner(secret),
        name=name,
        prefix=secret[:_SHOWN],
        models=None if models is None else tuple(models),
        budgets=tuple([budget.text for budget in parse_budgets(budgets)]),
        created_at=now,
        expires_at=expires_at,
    )


def insert_key(connection: Connection, key: CallerKey) -> None:
    """Stores a new key.

    Raises:
        SettingsError: another key that is not revoked has its name.
    """
    same = select(_C.owner).where(_C.name == key.name, _C.revoked_at.is_(None))
    if connection.execute(same).first() is not None:
        raise SettingsError(f"there is a key {key.name!r} already; revoke it, or give another name")
    fields = msgspec.structs.asdict(key)
    for name in ("models", "budgets"):
        fields[name] = msgspec.json.encode(fields[name]).decode()
    if key.models is None:
        fields["models"] = None
    for name in ("created_at", "expires_at", "revoked_at"):
        fields[name] = _to_microseconds(fields[name])
    connection.execute(insert(caller_keys), fields)


def find_key(connection: Connection, owner: str) -> CallerKey | None:
    """Returns the key of a caller, also one that was revoked; None: there is none."""
    row = connection.execute(select(caller_keys).where(_C.owner == owner)).mappings().first()
    return None if row is None else _load_key(row)


def list_keys(connection: Connection) -> list[CallerKey]:
    """Returns the keys, those that were made first in front."""
    wanted = select(caller_keys).order_by(_C.created_at, _C.owner).limit(_MOST_LISTED)
    return [_load_key(row) for row in connection.execute(wanted).mappings()]


def revoke_key(connection: Connection, which: str, now: datetime) -> CallerKey:
    """Revokes the key of a name, or that begins with these characters, or that is this. Returns it.

    Raises:
        SettingsError: there is none, or several begin so.
    """
    is_open = _C.revoked_at.is_(None)
    condition = _C.name == which
    if which.startswith(_PREFIX) and len(which) > _SHOWN:
        condition = _C.owner == find_owner(which)
    elif which.startswith(_PREFIX) and len(which) >= _SHORTEST_PREFIX:
        condition = _C.prefix.startswith(which, autoescape=True)
    rows = connection.execute(select(caller_keys).where(is_open, condition)).mappings().all()
    if not rows:
        raise SettingsError(
            f"there is no key {which[:_SHOWN]!r} that could be revoked; dragoman keys list names them"
        )
    if len(rows) > 1:
        raise SettingsError(f"{len(rows)} keys begin with {which!r}; give more of it, or the name")
    key = _load_key(rows[0])
    revoked = update(caller_keys).where(_C.owner == key.owner)
    connection.execute(revoked.values(revoked_at=_to_microseconds(now)))
    return msgspec.structs.replace(key, revoked_at=now)


def _load_key(row: Any) -> CallerKey:
    fields = dict(row)
    for name in ("models", "budgets"):
        if fields[name] is not None:
            fields[name] = tuple(msgspec.json.decode(fields[name], type=list[str]))
    for name in ("created_at", "expires_at", "revoked_at"):
        if fields[name] is not None:
            fields[name] = datetime.fromtimestamp(fields[name] / 1_000_000, UTC)
    return CallerKey(**fields)


def _to_microseconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1_000_000)
