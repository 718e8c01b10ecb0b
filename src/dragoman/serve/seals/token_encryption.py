"""Encrypts and decrypts sealed tokens: texts that a server gives its clients to keep, and that only it
can read or make.

A token is base64 throughout, so that clients that hold such a field as bytes give it back as it
was: a mark, the key's id, a nonce, the content encrypted with AES-256-GCM-SIV for one owner, and
the mark again.
"""

from __future__ import annotations

import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from os import urandom

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dragoman.errors import SettingsError
from dragoman.serve.seals.token_content import MARK, is_sealed

__all__ = ["MOST_BYTES", "MOST_TOKEN", "Sealer"]

MOST_BYTES = 2**22
"""Bytes of content at most."""
MOST_TOKEN = 2**22
"""Characters of a token at most."""

_VERSION = b"\x01"
_LEAST_KEY = 16
_ID, _NONCE = 4, 12
_MARK = urlsafe_b64decode(MARK)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = len(_MARK) + len(_VERSION) + _ID
_PLAIN, _PACKED = b"\0", b"\1"


class Sealer:
    """Seals with the first of its keys and opens with all, so that keys can be changed while
    clients hold tokens. Immutable; of use from any thread."""

    def __init__(self, keys: Sequence[bytes | str], *, purpose: str = "thinking") -> None:
        """Args:
            keys: secrets of 16 bytes or more, the newest first; they should be random.
            purpose: what is sealed: a token of another purpose does not open.

        Raises:
            SettingsError: there is no key, or one is too short.
        """
        secrets = [key.encode() if isinstance(key, str) else bytes(key) for key in keys]
        if not secrets or isinstance(keys, str | bytes):
            raise SettingsError(
                "Sealer(keys=…) takes a list of one secret or more, the newest first"
            )
        if any(len(secret) < _LEAST_KEY for secret in secrets):
            raise SettingsError(
                f"a key of Sealer must have {_LEAST_KEY} bytes or more; secrets.token_bytes(32) makes one"
            )
        self._keys = [_derive(secret, purpose) for secret in secrets]
        self._purpose = purpose.encode()

    def seal(self, content: bytes, owner: str = "") -> str | None:
        """Returns a token of this content that only `owner` can bring back, or None if it is too
        long for one."""
        if len(content) > MOST_BYTES:
            return None
        # Compressed, since clients send tokens back with every request.
        packed = zlib.compress(content, 6)
        if len(packed) < len(content):
            plain = _PACKED + packed
        else:
            plain = _PLAIN + content
        key_id, cipher = self._keys[0]
        head, nonce = _MARK + _VERSION + key_id, urandom(_NONCE)
        sealed = head + nonce + cipher.encrypt(nonce, plain, self._bound(head, owner))
        token = urlsafe_b64encode(_frame(sealed)).decode() + MARK
        return token if len(token) <= MOST_TOKEN else None

    def open(self, token: str, owner: str = "") -> bytes | None:
        """Returns the content, or None for a token that was forged, cut or changed, is another
        owner's, or was sealed with a key that is not among these. Never raises."""
        sealed = _decode(token)
        if sealed is None:
            return None
        head, nonce = sealed[:_HEAD], sealed[_HEAD : _HEAD + _NONCE]
        encrypted = sealed[_HEAD + _NONCE :]
        if len(encrypted) < _ID or not head.startswith(_MARK + _VERSION):
            return None
        # The id of a key is short, so several keys may have it.
        for key_id, cipher in self._keys:
            if key_id == head[-_ID:]:
                try:
                    return _unpack(cipher.decrypt(nonce, encrypted, self._bound(head, owner)))
                except (InvalidTag, ValueError):
                    continue
        return None

    def _bound(self, head: bytes, owner: str) -> bytes:
        # Authenticated with the content: a token opens only for its owner, and for what it was
        # made.
        return b"\0".join([head, self._purpose, owner.encode("utf-8", "surrogatepass")])


def _decode(token: str) -> bytes | None:
    """Returns the bytes of a token, or None if it has not the form of one."""
    if len(token) > MOST_TOKEN or not is_sealed(token):
        return None
    # Clients that hold the field as bytes may write it again in the other alphabet of base64.
    text = token.replace("+", "-").replace("/", "_")
    if not text.endswith(MARK) or len(text) % 4 or not _TOKEN.fullmatch(text):
        return None
    framed = urlsafe_b64decode(text.removesuffix(MARK))
    fill = framed[-1] if framed else 0
    sealed = framed[: max(len(framed) - 3 - fill, 0)]
    return sealed if framed == _frame(sealed) else None


def _frame(sealed: bytes) -> bytes:
    """Returns the bytes padded to a multiple of three, with the number of those added, so that a
    token is base64 without padding."""
    fill = -len(sealed) % 3
    return sealed + bytes(fill) + bytes([0, 0, fill])


def _derive(secret: bytes, purpose: str) -> tuple[bytes, AESGCMSIV]:
    info = b"dragoman sealer 1 " + purpose.encode()
    material = HKDF(algorithm=SHA256(), length=32 + _ID, salt=None, info=info).derive(secret)
    return material[32:], AESGCMSIV(material[:32])


def _unpack(plain: bytes) -> bytes | None:
    """Returns the decompressed content of a token, or None if it is broken or too large."""
    if plain[:1] == _PLAIN:
        return plain[1:]
    # Bounded: a few bytes may stand for very many.
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(plain[1:], MOST_BYTES)
    except zlib.error:
        return None
    return content if unpacker.eof else None
