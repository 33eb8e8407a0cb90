"""A server that imports payments as the service's reference says."""

import http.client
import json
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from payments.ingest.errors import InvalidRecord
from payments.ingest.validation import validate_record
from payments.record import encode
from tests.examples.http_server import HttpServer, Reply, Request
from tests.support.service import Service

RECORDS_MAX = 10_000
BODY_BYTES_MAX = 16 * 2**20
RELAYED = {"Retry-After"}


@dataclass
class ServiceServer(HttpServer):
    """The payments of an organization by ID. `repeated` counts records that stand twice in a body, and `older` ones
    that replace a newer version."""

    key: str = "pk_service0123456789"
    organization: str = "7"
    records: dict[str, Any] = field(default_factory=dict)
    body_bytes_max: int = BODY_BYTES_MAX
    repeated: int = 0
    older: int = 0

    def respond(self, request: Request) -> Reply:
        if (request.method, request.path) != ("POST", "/v2/payments/imports"):
            return Reply(404, {"detail": "Not found."})
        if request.token != self.key:
            return Reply(401, {"detail": "This API key is invalid."})
        if request.headers.get("Content-Type") != "application/x-ndjson":
            return Reply(415, {"detail": "Unsupported media type."})
        lines = request.body.splitlines()
        if len(lines) > RECORDS_MAX or len(request.body) > self.body_bytes_max:
            return Reply(413, {"detail": "The body is too large."})
        errors = [error for number, line in enumerate(lines, start=1) for error in self.findings(number, line)]
        if errors:
            return Reply(422, {"detail": "Some records are invalid.", "errors": errors[:100]})
        written = sum(map(self.apply, map(json.loads, lines)))
        self.repeated += len(lines) - len({json.loads(line)["id"] for line in lines})
        return Reply(200, {"read": len(lines), "written": written, "unchanged": len(lines) - written})

    def findings(self, number: int, line: bytes) -> list[Any]:
        try:
            validate_record(line)
        except InvalidRecord as error:
            return [finding(number, field, reason) for field, reason in error.errors]
        if json.loads(line)["organizationId"] != self.organization:
            return [finding(number, "organizationId", "must be the organization of the key")]
        return []

    def apply(self, record: Any) -> bool:
        """Store a record. Return whether it differs."""
        old = self.records.get(record["id"])
        self.older += old is not None and version_of(record) < version_of(old)
        self.records[record["id"]] = record
        return bool(record != old)


@dataclass
class RelayedService(ServiceServer):
    """A server that passes requests to the deployed service. Its own copy of the payments must be the same."""

    deployed: Service = field(kw_only=True)

    def respond(self, request: Request) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.deployed.port)
        with closing(connection):
            connection.request(request.method, request.path, request.body, dict(request.headers))
            response = connection.getresponse()
            reply = Reply(response.status, json.load(response), dict(response.headers))
        if reply.status == 200:
            own = super().respond(request)
            assert own.document.items() <= reply.document.items(), (own, reply)
        return Reply(reply.status, reply.document, {name: reply.headers[name] for name in RELAYED & {*reply.headers}})

    def exported(self) -> list[str]:
        return self.deployed.exported(organization=int(self.organization)).splitlines()

    def expected(self) -> list[str]:
        """Return the lines of an export of the copy."""
        records = [validate_record(json.dumps(record).encode()).record for record in self.records.values()]
        return [encode(record).decode() for record in records]


def version_of(record: Any) -> int:
    return int(record["metadata"]["version"])


def finding(number: int, field: str | None, detail: str) -> Any:
    return {"line": number, "record": number, "field": field, "detail": detail}
