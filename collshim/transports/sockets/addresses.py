"""The address at which a process listens for connections from the other processes of its world."""

from __future__ import annotations

import socket
import struct
from ipaddress import ip_address

from collshim.errors import WorldError

LOOPBACK = "127.0.0.1"
_PORT = 9  # the discard service; nothing is sent
_SIOCGIFADDR = 0x8915  # Linux: an interface's address
_REQUEST = struct.Struct("256s")
_ADDRESS_AT = slice(20, 24)


def is_loopback(address: str) -> bool:
    """Return whether this address is only reachable from this machine itself."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address in ("localhost", "")


def loopback_of(address: str) -> str:
    """Return a loopback address in numbers, given one that can be a name."""
    return LOOPBACK if address in ("localhost", "") else address


def listening_host(master: str, interface: str) -> str:
    """Return this machine's numeric address as seen from ``master``, or the address of ``interface`` if it is named."""
    if interface:
        return _of_interface(interface)
    if is_loopback(master):
        return loopback_of(master)
    family, _, _, _, address = socket.getaddrinfo(master, _PORT, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)  # sends nothing, but selects the interface
        return str(probe.getsockname()[0])


def _of_interface(interface: str) -> str:
    import fcntl  # not on Windows, which has no interface names of this kind

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            reply = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, _REQUEST.pack(interface.encode()[:15]))
        except OSError as error:
            text = f"GLOO_SOCKET_IFNAME is {interface!r}, should be a network interface with an address"
            raise WorldError(f"{text}: {error.strerror}") from error
    return socket.inet_ntoa(reply[_ADDRESS_AT])
