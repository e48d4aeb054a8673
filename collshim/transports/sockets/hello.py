"""Authentication: the signed hello with which a connecting process says which rank it is."""

from __future__ import annotations

import errno
import hmac
import struct

from collshim.transports.sockets.connection import HELLO, Frame

_RANKS = struct.Struct("<II")
_SIGNATURE_BYTES = 32


def hello(secret: bytes, source: int, to: int, port: int) -> bytes:
    """Return the hello of rank ``source`` to rank ``to``, which listens at ``port``."""
    ranks = _RANKS.pack(source, to)
    return ranks + hmac.digest(secret, b"hello" + ranks + str(port).encode(), "sha256")


def source_of(frame: Frame, secret: bytes, to: int, port: int) -> int:
    """Return the rank that sent a hello to rank ``to``.

    Raises:
        ConnectionAbortedError: the frame is not a hello, or is not signed with the world's secret.
    """
    header = frame.header
    if frame.kind != HELLO or len(header) != _RANKS.size + _SIGNATURE_BYTES:
        raise ConnectionAbortedError(errno.ECONNABORTED, "it sent no hello")
    source, named = _RANKS.unpack_from(header)
    if named != to or not hmac.compare_digest(header, hello(secret, source, to, port)):
        raise ConnectionAbortedError(errno.ECONNABORTED, "its hello is not signed with the world's secret")
    return int(source)
