"""Who may speak: the signed hello by which a process says which rank it is when it connects to another one."""

from __future__ import annotations

import errno
import hmac
import struct

from collshim.transports.sockets.connection import HELLO, Frame

_RANKS = struct.Struct("<II")
_SIGNATURE_BYTES = 32


def hello(secret: bytes, source: int, to: int, port: int) -> bytes:
    """What rank ``source`` says to rank ``to``, which listens at ``port``."""
    ranks = _RANKS.pack(source, to)
    return ranks + hmac.digest(secret, b"hello" + ranks + str(port).encode(), "sha256")


def source_of(frame: Frame, secret: bytes, to: int, port: int) -> int:
    """The rank that said hello to rank ``to``.

    Raises:
        ConnectionAbortedError: the frame is no hello, or is not signed with the world's secret.
    """
    header = frame.header
    if frame.kind != HELLO or len(header) != _RANKS.size + _SIGNATURE_BYTES:
        raise ConnectionAbortedError(errno.ECONNABORTED, "it said no hello")
    source, named = _RANKS.unpack_from(header)
    if named != to or not hmac.compare_digest(header, hello(secret, source, to, port)):
        raise ConnectionAbortedError(errno.ECONNABORTED, "it knows no secret")
    return int(source)
