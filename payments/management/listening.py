"""Check that a server can listen on an address. The servers themselves report an error with a long traceback."""

import errno
import socket
from ipaddress import ip_address

from django.core.management.base import CommandError

# The next step by error code.
STEPS = {
    errno.EACCES: "Set PORT to 1024 or higher.",
    errno.EADDRINUSE: "Stop the program that uses it, or set another PORT.",
    errno.EADDRNOTAVAIL: "Set HOST to an IP address of this machine, or to 0.0.0.0 for all of them.",
}


def check_address(host: str, *, port: int) -> None:
    """Listen on the address for a moment.

    :raises CommandError: if that is not possible
    """
    try:
        version = ip_address(host).version
    except ValueError:
        raise CommandError("HOST must be an IP address, such as 127.0.0.1 or 0.0.0.0.") from None
    try:
        with socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET) as listener:  # noqa: PLR2004
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier server may end
            listener.bind((host, port))
            listener.listen()
    except OSError as error:
        step = STEPS.get(error.errno or 0, "Set other values of HOST and PORT.")
        raise CommandError(f"Cannot listen on {host}, port {port}: {error.strerror}. {step}") from error
