"""The limit: no framework in the request's way. The same statements and the same bytes as the service's own.

Django compiles the statements when a worker starts; after that there are psycopg, msgspec and the server alone.
"""

import os
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

import django
import msgspec
import psycopg
from xxhash import xxh3_128_hexdigest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup()

from payments import api_keys, hal  # noqa: E402
from payments.access.authentication import key_statement  # noqa: E402
from payments.api.serializers import RecordLinksWriter, record  # noqa: E402
from payments.database.statements import Statement  # noqa: E402
from payments.hal import HAL, HTML, Link  # noqa: E402
from payments.links import Links  # noqa: E402
from payments.models import PAYMENT_ID  # noqa: E402
from payments.page import page_statement  # noqa: E402

Environment = dict[str, Any]

connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, prepare_threshold=2)
connection.execute("SET plan_cache_mode = force_generic_plan")
cursor = connection.cursor()
encode = msgspec.json.Encoder().encode


def rows(statement: Statement[Any], values: dict[str, Any]) -> list[tuple[Any, ...]]:
    cursor.execute(statement.sql, values)
    return cursor.fetchall()


@lru_cache
def links_writer(base: str) -> tuple[Links, RecordLinksWriter]:
    addresses = Links(base)
    return addresses, RecordLinksWriter(addresses)


def application(environment: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
    text = environment["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    found = api_keys.is_key(text) and rows(key_statement(), {"digest": api_keys.digest(text), "now": datetime.now(UTC)})
    if not found:
        start_response("401 Unauthorized", [("Content-Length", "0")])
        return []
    _, organization_id, mode, _ = found[0]
    query = parse_qs(environment["QUERY_STRING"])
    limit, start = int(query["limit"][0]), query.get("from", [None])[0]
    if start is not None and not re.fullmatch(PAYMENT_ID, start):
        start_response("400 Bad Request", [("Content-Length", "0")])
        return []
    values = {"organization_id": organization_id, "mode": mode, "start": start}
    page = rows(page_statement(limit=limit, from_start=start is not None), values)
    addresses, writer = links_writer(f"http://{environment['HTTP_HOST']}")

    def link(payment_id: str) -> Link:
        return Link(addresses.page(limit=limit, start=payment_id), HAL)

    shown = page[:limit]
    links = {
        "self": link(shown[0][0]),
        "previous": link(page[0][-1]) if page[0][-1] else None,
        "next": link(page[limit][0]) if len(page) > limit else None,
        "documentation": Link(addresses.documentation, HTML),
    }
    records = [record(row, links=writer.links(row[0])) for row in shown]
    body = encode(hal.page("payments", records, links=links))
    start_response(
        "200 OK",
        [
            ("Content-Type", HAL),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "private, no-cache"),
            ("Vary", "Accept, Authorization"),
            ("ETag", f'"{xxh3_128_hexdigest(body)}"'),
        ],
    )
    return [body]
