"""Requests whose host is not in ALLOWED_HOSTS."""

import logging
import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from payments.api.links import HOST_LENGTH_MAX

# A name or an address, as ALLOWED_HOSTS can contain it, and a port.
HOST = re.compile(r"([a-z0-9.-]+|\[[0-9a-f.]*:[0-9a-f:.]+\])(:[0-9]+)?")

NOT_ALLOWED = "This host is not allowed. Check the URL, or add the host to ALLOWED_HOSTS."
MALFORMED = "This request is malformed. Check the Host header and the URL."

logger = logging.getLogger(__name__)


def describe_refused_host(variables: Mapping[str, Any]) -> str:
    """Return the text of the error for a refused host. Log a well-formed host, because it may be the service's own.

    A malformed host is not logged: ALLOWED_HOSTS cannot allow it, and it can contain any characters.
    """
    host = find_host(variables)
    match = HOST.fullmatch(host.lower()) if len(host) <= HOST_LENGTH_MAX else None
    name = match[1].removesuffix(".") if match else ""
    if not name:
        return MALFORMED
    logger.warning("Refused a request to the host %s. If it is this service, add it to ALLOWED_HOSTS.", name)
    return NOT_ALLOWED


def find_host(variables: Mapping[str, Any]) -> str:
    """Return the host in the variables of a WSGI request, as Django reads it."""
    if settings.USE_X_FORWARDED_HOST and "HTTP_X_FORWARDED_HOST" in variables:
        return str(variables["HTTP_X_FORWARDED_HOST"])
    return str(variables.get("HTTP_HOST", variables.get("SERVER_NAME", "")))
