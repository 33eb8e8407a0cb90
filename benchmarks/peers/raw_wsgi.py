"""The upper limit: a WSGI function without a framework, which runs the service's statements and returns its bytes.

Django compiles the statements when a worker starts. Requests use only psycopg, msgspec and granian.
"""

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import django
import msgspec
import psycopg
from xxhash import xxh3_128_hexdigest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup()

from payments.access.keys import key_statement  # noqa: E402
from payments.api.links import cached_links  # noqa: E402
from payments.api.pagination import page_document  # noqa: E402
from payments.api.serializers import build_records  # noqa: E402
from payments.database.statements import Statement  # noqa: E402
from payments.hal import HAL, HTML, Link  # noqa: E402
from payments.listing.content import statement_with_key  # noqa: E402
from payments.listing.page import page_of_content, page_statement  # noqa: E402
from payments.listing.query import visible_payments  # noqa: E402
from payments.models import PAYMENT_ID, identifiers  # noqa: E402

Environment = dict[str, Any]

connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, prepare_threshold=2)
connection.execute("SET plan_cache_mode = force_generic_plan")
cursor = connection.cursor()
encode = msgspec.json.Encoder().encode


def fetch(statement: Statement, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    cursor.execute(statement.sql, values)
    return cursor.fetchall()


def application(environment: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
    text = environment["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    if not identifiers.is_key(text):
        start_response("401 Unauthorized", [("Content-Length", "0")])
        return []
    query = parse_qs(environment["QUERY_STRING"])
    limit, start = int(query["limit"][0]), query.get("from", [None])[0]
    if start is not None and not re.fullmatch(PAYMENT_ID, start):
        start_response("400 Bad Request", [("Content-Length", "0")])
        return []
    statement = page_statement(visible_payments(), visible_payments(), limit, start is not None)
    values = {"digest": identifiers.digest(text), "start": start}
    content = statement.content(fetch(statement_with_key(statement, key_statement().sql), values))
    if content.end is None:
        start_response("401 Unauthorized", [("Content-Length", "0")])
        return []
    page = page_of_content(content, start=start, limit=limit)
    urls = cached_links(f"http://{environment['HTTP_HOST']}")
    link = partial(urls.page, environment["PATH_INFO"], limit=limit)
    document = page_document(
        build_records(page.rows, links=urls),
        itself=link(start=page.first_id),
        previous=link(start=page.previous_from) if page.previous_from else None,
        next=link(start=page.next_from) if page.next_from else None,
        documentation=Link(urls.section("list-payments"), HTML),
    )
    body = encode(document)
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
