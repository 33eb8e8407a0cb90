"""FastAPI with asyncpg, orjson and handwritten SQL."""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import asyncpg
import orjson
from fastapi import FastAPI, Header, HTTPException, Query, Request, Response

KEY = """
SELECT organization_id, mode FROM payments_apikey
WHERE digest = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)
"""
PAGE = """
SELECT * FROM payments_payment
WHERE organization_id = $1 AND mode = $2 AND (created_at, id) <= ($3, $4)
ORDER BY created_at DESC, id DESC LIMIT $5
"""
FIRST_PAGE = """
SELECT * FROM payments_payment
WHERE organization_id = $1 AND mode = $2
ORDER BY created_at DESC, id DESC LIMIT $3
"""
START = "SELECT created_at FROM payments_payment WHERE organization_id = $1 AND mode = $2 AND id = $3"
PREVIOUS = """
SELECT id FROM payments_payment
WHERE organization_id = $1 AND mode = $2 AND (created_at, id) > ($3, $4)
ORDER BY created_at, id LIMIT $5
"""

POOL_CONNECTIONS = 16  # of each process


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    url = os.environ["DATABASE_URL"]
    async with asyncpg.create_pool(url, min_size=POOL_CONNECTIONS, max_size=POOL_CONNECTIONS) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/v2/payments")
async def payments(
    request: Request,
    authorization: Annotated[str, Header()],
    limit: Annotated[int, Query(ge=1, le=250)] = 20,
    start: Annotated[str | None, Query(alias="from")] = None,
) -> Response:
    digest = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).hexdigest()
    base = f"http://{request.headers['host']}"
    async with request.app.state.pool.acquire() as connection:
        key = await connection.fetchrow(KEY, digest, datetime.now(UTC))
        if key is None:
            raise HTTPException(401)
        previous = None
        if start is None:
            rows = await connection.fetch(FIRST_PAGE, *key, limit + 1)
        else:
            created_at = await connection.fetchval(START, *key, start)
            if created_at is None:
                raise HTTPException(400)
            rows = await connection.fetch(PAGE, *key, created_at, start, limit + 1)
            newer = await connection.fetch(PREVIOUS, *key, created_at, start, limit)
            previous = newer[-1]["id"] if newer else None

    def link(payment_id: str) -> dict[str, str]:
        return {"href": f"{base}/v2/payments?limit={limit}&from={payment_id}", "type": "application/hal+json"}

    records = [record(row, base) for row in rows[:limit]]
    links = {"self": link(records[0]["id"])}
    if previous:
        links["previous"] = link(previous)
    if len(rows) > limit:
        links["next"] = link(rows[limit]["id"])
    links["documentation"] = {"href": f"{base}/docs/reference/#list-payments", "type": "text/html"}
    page = {"count": len(records), "_embedded": {"payments": records}, "_links": links}
    return Response(orjson.dumps(page), media_type="application/hal+json")


def record(row: Any, base: str) -> dict[str, Any]:
    payment_id = row["id"]
    members: dict[str, Any] = {"id": payment_id, "resource": "payment", "mode": row["mode"]}
    for name, column in (("amount", "amount"), ("amountNet", "amount_net"), ("amountRemaining", "amount_remaining")):
        if row[column] is not None:
            members[name] = {"value": str(row[column]), "currency": row[f"{column}_currency"]}
    members["description"] = row["description"]
    for name, column in (("method", "method"), ("redirectUrl", "redirect_url"), ("webhookUrl", "webhook_url")):
        if row[column]:
            members[name] = row[column]
    members["status"] = row["status"]
    members["organizationId"] = str(row["organization_id"])
    members["sequenceType"] = row["sequence_type"]
    members["metadata"] = orjson.Fragment(row["metadata"])
    if row["details"] is not None:
        members["details"] = orjson.Fragment(row["details"])
    for name, column in (("createdAt", "created_at"), ("expiresAt", "expires_at"), ("paidAt", "paid_at")):
        if row[column] is not None:
            members[name] = row[column].replace(tzinfo=None).isoformat(timespec="milliseconds")
    if row["customer_id"]:
        members["customerId"] = row["customer_id"]
    admin_id = payment_id.replace("_", "_5F")
    members["_links"] = {
        "self": {"href": f"{base}/v2/payments/{payment_id}", "type": "application/hal+json"},
        "dashboard": {"href": f"{base}/admin/payments/payment/{admin_id}/change/", "type": "text/html"},
        "documentation": {"href": f"{base}/docs/reference/#payment-record", "type": "text/html"},
    }
    return members
