"""The bodies of imports: DRF's parsers for their media types, and their limits."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import Any, BinaryIO

from django.http import HttpRequest
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import APIException
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from payments.api.renderers import HALNegotiation
from payments.api.streams import BYTES_MAX, RECORDS_MAX, BodyTooLarge, LimitedStream, UnreadableBody
from payments.ingest import Source
from payments.ingest.formats import forms
from payments.ingest.formats.detection import read_records
from payments.ingest.formats.sources import CHUNK_BYTES, GZIP_MARK, InvalidHeader, RawRecord, UnreadableSource

UTF_8 = ("utf-8", "utf8")
GZIP = ("gzip", "x-gzip")

NAME = "request"  # of the source, for staff


class UnsupportedType(APIException):
    """The service reads no bodies of this media type."""

    status_code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    default_detail = (
        "Content-Type must be application/x-ndjson, application/jsonl, application/json or text/csv, in UTF-8."
    )


class UnsupportedEncoding(APIException):
    """The service does not decompress this encoding."""

    status_code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    default_detail = "Content-Encoding must be gzip, or absent."
    headers = {"Accept-Encoding": "gzip"}  # RFC 9110, section 12.5.3


@dataclass
class Body:
    """The decoded body of a request, and the form in which it has its records."""

    content: bytes
    form: Callable[[str, BinaryIO], Iterator[RawRecord]]

    @property
    def source(self) -> Source:
        return Source(NAME, BytesIO(self.content), self.form)

    def records(self) -> Iterator[RawRecord]:
        return read_records(self.source)


class BodyParser(BaseParser):
    """Reads the body of an import. A subclass says which form a media type has."""

    form: Any

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """Return the body. Its records are found, but not yet validated.

        :raises BodyTooLarge: it has too many bytes or records
        :raises UnreadableBody: it has another form, or its encoding is damaged
        """
        body = Body(decode(stream, is_compressed=(parser_context or {})["is_compressed"]), self.form)
        if body.content.startswith(GZIP_MARK):
            raise UnreadableBody("The body is compressed. Send Content-Encoding: gzip.")
        try:
            for number, _ in enumerate(body.records(), start=1):
                if number > RECORDS_MAX:
                    raise BodyTooLarge
        except InvalidHeader:
            pass  # the import reports it, as it reports invalid members
        except UnreadableSource as error:
            raise UnreadableBody(f"Line {error.location.line} of the body: {error.reason}.") from None
        return body


class JSONParser(BodyParser):
    """A record, an array of records, or a page."""

    media_type = "application/json"
    form = staticmethod(forms.json_document)


class JSONLinesParser(BodyParser):
    """A record on each line."""

    media_type = "application/x-ndjson"
    form = staticmethod(forms.json_lines)


class JSONLParser(JSONLinesParser):
    """JSON Lines under their other name."""

    media_type = "application/jsonl"


class CSVParser(BodyParser):
    """CSV with the names of members in its first line."""

    media_type = "text/csv"
    form = staticmethod(forms.csv)


class BodyNegotiation(HALNegotiation):
    """Selects the parser of exactly the media type of the body."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return the parser; None for another media type or character set."""
        media_type, parameters = parse_header_parameters(request.content_type or "")
        if parameters.get("charset", UTF_8[0]).lower() not in UTF_8:
            return None
        return next((parser for parser in parsers if parser.media_type == media_type), None)


def is_compressed(request: HttpRequest) -> bool:
    """Return whether the body is compressed with gzip.

    :raises UnsupportedEncoding: it has another encoding
    """
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in {"", "identity", *GZIP}:
        raise UnsupportedEncoding
    return encoding in GZIP


def decode(stream: LimitedStream, *, is_compressed: bool) -> bytes:
    """Return the body without its encoding.

    :raises BodyTooLarge: it is too long
    :raises UnreadableBody: it is damaged
    """
    content: Any = gzip.GzipFile(fileobj=stream, mode="rb") if is_compressed else stream  # type: ignore[call-overload]
    decoded = BytesIO()
    try:
        while chunk := content.read(CHUNK_BYTES):
            decoded.write(chunk)
            if decoded.tell() > BYTES_MAX:
                raise BodyTooLarge
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UnreadableBody("The body cannot be decompressed. Send it again.") from None
    return decoded.getvalue()
