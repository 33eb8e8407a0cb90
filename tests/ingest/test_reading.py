"""The format of a file is detected, and each record has its line as its location."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from payments.ingest.formats.detection import read_records
from payments.ingest.formats.sources import Source, UnreadableSource
from tests.support.growth import LINEAR_MAX, growth
from tests.support.lines import CSV_CELLS, compact, record, source
from tests.support.streams import endless_source, read_in_parts

pytestmark = pytest.mark.once

ONE, TWO = (record(id=f"pt_{number}") for number in (1, 2))
LINK = {"self": {"href": "http://x/v2/payments?limit=2", "type": "application/hal+json"}}
PAGE = {"count": 2, "_embedded": {"payments": [ONE, TWO]}, "_links": LINK}
PRETTY: dict[str, Any] = {"indent": 2}
LEVELS_REFUSED = 1_000_000  # of nesting, by every version of Python
LINES = json.dumps(ONE, **PRETTY).count("\n") + 1


def read_all(content: bytes | Source) -> list[tuple[str, object]]:
    stream = source(content, "f") if isinstance(content, bytes) else content
    return [(str(raw.location), json.loads(raw.text)) for raw in read_records(stream)]


FORMATS: list[tuple[bytes, list[str]]] = [
    (compact(ONE) + b"\n" + compact(TWO) + b"\n", ["f:1", "f:2"]),
    (compact(ONE) + b"\r\n\r\n" + compact(TWO), ["f:1", "f:3"]),
    (b"\xef\xbb\xbf" + compact(ONE) + b"\n" + compact(TWO), ["f:1", "f:2"]),
    (b"\n  \n" + compact(ONE) + b"\n" + compact(TWO), ["f:3", "f:4"]),
    (compact([ONE, TWO]), ["f:1: record 1", "f:1: record 2"]),
    (b"\xef\xbb\xbf" + compact([ONE, TWO]), ["f:1: record 1", "f:1: record 2"]),
    (b" " + compact([ONE, TWO]), ["f:1: record 1", "f:1: record 2"]),
    (b"[\n" + compact(ONE) + b" ,\n\n " + compact(TWO) + b"\n]\n", ["f:2: record 1", "f:4: record 2"]),
    (json.dumps([ONE, TWO], **PRETTY).encode(), ["f:2: record 1", f"f:{2 + LINES}: record 2"]),
    (compact(PAGE), ["f:1: record 1", "f:1: record 2"]),
    (json.dumps(PAGE, **PRETTY).encode(), ["f:5: record 1", f"f:{5 + LINES}: record 2"]),
    (compact(PAGE) + b"\n" + compact(PAGE), ["f:1: record 1", "f:1: record 2", "f:2: record 1", "f:2: record 2"]),
    (json.dumps(ONE, **PRETTY).encode() + b"\n" + json.dumps(TWO, **PRETTY).encode(), ["f:1", f"f:{1 + LINES}"]),
    (compact([ONE]) + b"\n" + compact([TWO]), ["f:1: record 1", "f:2: record 1"]),
    (compact(PAGE) + compact(PAGE), ["f:1: record 1", "f:1: record 2", "f:1: record 1", "f:1: record 2"]),
    (compact(ONE) + compact(TWO), ["f:1", "f:1"]),
    (compact([{}, ONE, {}, TWO, {}]), ["f:1: record 2", "f:1: record 4"]),
    (b"{}\n" + compact(ONE) + b"\n{ }\n" + compact(TWO), ["f:2", "f:4"]),
    (compact({"_embedded": {"payments": [{}, ONE, TWO]}}), ["f:1: record 2", "f:1: record 3"]),
]


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize(("content", "expected"), FORMATS)
def test_every_format_gives_the_same_records_with_locations(
    content: bytes, expected: list[str], is_compressed: bool
) -> None:
    records = read_all(gzip.compress(content) if is_compressed else content)

    assert [location for location, _ in records][: len(expected)] == expected
    assert [value for _, value in records][:2] == [ONE, TWO]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_json_that_resembles_the_header_of_csv_is_read_as_json(separator: str) -> None:
    odd = record(description=separator.join(("a", "id", "b")), metadata={"id": "7"})
    content = json.dumps(odd, ensure_ascii=False).encode()

    assert read_all(content + b"\n" + compact(ONE)) == [("f:1", odd), ("f:2", ONE)]
    assert read_all(b"[" + content + b"]") == [("f:1: record 1", odd)]


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"[]", b"[ ]\n", b"{}", b"[{},{}]", compact({"_embedded": {"payments": []}})]
)
def test_file_without_records_gives_no_records(content: bytes) -> None:
    assert read_all(content) == []


@pytest.mark.parametrize("name", ["details", "_embedded", 'note":"_embedded","details'])
def test_deeply_nested_line_is_left_to_the_validation(name: str) -> None:
    deep = b'{"' + name.encode() + b'":' + b"[" * 10_000 + b"]" * 10_000 + b"}"

    texts = [raw.text for raw in read_records(source(deep + b"\n" + compact(ONE) + b"\n" + deep, "f"))]

    assert texts == [deep, compact(ONE), deep]


@pytest.mark.parametrize(
    "value",
    [
        {"_embedded": {"refunds": []}},
        {"_embedded": {"payments": {}}},
        {"_embedded": 1},
        {"metadata": {"_embedded": "x"}},
    ],
)
def test_value_that_resembles_a_page_is_left_to_the_validation(value: object) -> None:
    assert read_all(compact(value)) == [("f:1", value)]


@pytest.mark.parametrize(
    "beside", [b'"\xff"', b"[" * LEVELS_REFUSED + b"]" * LEVELS_REFUSED], ids=["encoding", "nesting"]
)
def test_page_with_an_unreadable_member_is_left_to_the_validation(beside: bytes) -> None:
    page = compact({"_embedded": {"payments": [ONE]}})[:-1] + b',"x":' + beside + b"}"

    assert [raw.text for raw in read_records(source(page, "f"))] == [page]


def test_records_of_a_page_are_located_beside_the_same_records_in_other_members() -> None:
    text = compact(ONE).decode()
    page = f'{{"first": {text},\n"_embedded": {{"payments": [\n{text},\n{text}]}},\n"last": [{text}]}}'

    assert read_all(page.encode()) == [("f:3: record 1", ONE), ("f:4: record 2", ONE)]


@given(st.integers(1, 1500), st.sampled_from([content for content, _ in FORMATS]))
def test_chunk_size_does_not_change_the_records(size: int, content: bytes) -> None:
    assert read_all(read_in_parts(content, size)) == read_all(content)


def test_large_pages_in_one_line_are_read() -> None:
    page = compact({"_embedded": {"payments": [record(description="x" * 10_000)] * 250}})

    assert len(read_all(page + page)) == 500


@pytest.mark.parametrize("size", [700, 701, 1500, 4000])
def test_brackets_and_quotes_within_strings_do_not_split_values(size: int) -> None:
    odd = record(description='}]{["\\"\\\\" , ' * 40)

    records = read_all(read_in_parts(compact([odd, ONE, odd]), size))

    assert [value for _, value in records] == [odd, ONE, odd]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (compact([ONE, TWO])[:-1], "f:1: the file ends before its array is closed"),
        (compact([ONE, TWO])[:-2], "f:1: record 2: the file ends in the middle of this record"),
        (
            b"[\n" + compact(ONE) + b",\n" + compact(TWO)[:99],
            "f:3: record 2: the file ends in the middle of this record",
        ),
        (json.dumps(ONE, **PRETTY).encode()[:-1], "f:1: the file ends in the middle of this record"),
        (b"[" + compact(ONE) + compact(TWO) + b"]", "f:1: expected a record here"),
        (b"[" + compact(ONE) + b",,\n" + compact(TWO) + b"]", "f:2: expected a record here"),
        (b"[" + compact(ONE) + b",]", "f:1: expected a record here"),
        (b"[," + compact(ONE) + b"]", "f:1: expected a record here"),
        (b"[1, 2]", "f:1: expected a record here"),
        (b'["a", {}]', "f:1: expected a record here"),
        (b"[[{}]]", "f:1: expected a record here"),
        (b"[]]", "f:1: expected a record here"),
        (compact([ONE]) + b"\nmore", "f:2: expected a record here"),
        (compact([ONE]) + b"\nmore\n\n", "f:2: expected a record here"),
        (compact([ONE]) + b"\nmore" + compact([TWO]), "f:2: expected a record here"),
        (b"[" + compact([ONE, TWO]), "f:1: expected a record here"),
        (b"[}", "f:1: expected a record here"),
    ],
)
def test_text_that_is_not_a_list_of_records_is_an_error_with_location(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableSource) as error:
        read_all(content)

    assert str(error.value) == message


def wide_csv(columns: int) -> bytes:
    names = [*CSV_CELLS, *(f"metadata.{'x' * 40}{number}" for number in range(columns))]
    return ",".join(names).encode() + b"\n" + b",".join([b"1"] * len(names))


def test_csv_can_have_a_longer_first_line_than_a_chunk() -> None:
    [(location, row)] = read_all(wide_csv(10_000))

    assert location == "f:2"
    assert isinstance(row, dict)
    assert len(row["metadata"]) == 10_000


def test_cost_of_csv_is_linear_in_its_columns() -> None:
    assert growth(lambda factor: partial(read_all, wide_csv(500 * factor))) < LINEAR_MAX


def test_names_in_csv_that_are_not_utf_8_are_an_error() -> None:
    content = ",".join([*CSV_CELLS, "metadata.Größe"]).encode("latin-1") + b"\n"

    with pytest.raises(
        UnreadableSource, match=r"^f:1: the names of the columns are not UTF-8\. Save the file as UTF-8$"
    ):
        read_all(content)


def damaged(content: bytes) -> bytes:
    return content[:-20] + b"x" * 12 + content[-8:]


@pytest.mark.parametrize("damage", [lambda stream: stream[:-9], damaged, lambda stream: stream[:-1] + b"x"])
def test_damaged_gzip_stream_is_an_error_with_location(damage: Callable[[bytes], bytes]) -> None:
    content = b"".join(compact(record(id=f"pt_{number}")) + b"\n" for number in range(500))

    with pytest.raises(UnreadableSource, match=r"f:\d+: the gzip stream is damaged after this"):
        read_all(damage(gzip.compress(content)))


@pytest.mark.parametrize("stream", [b"\x1f\x8bx", b"\x1f\x8b\x08" + b"\0" * 7 + b"\xff" * 20])
def test_stream_damaged_from_the_start_is_an_error_in_line_1(stream: bytes) -> None:
    with pytest.raises(UnreadableSource, match=r"^f:1: the gzip stream is damaged after this"):
        read_all(stream)


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"id": date}', b"2026-01-01;10.00", compact(ONE)],
        [compact(ONE)[:-1]],
        [compact(ONE)[:-1], compact(TWO)],
        [b'{"_embedded":"\xff"}', compact(ONE)],
    ],
)
def test_lines_that_are_not_json_are_left_to_the_validation(lines: list[bytes]) -> None:
    for separator in (b"\n", b"\n\n"):
        assert [raw.text for raw in read_records(source(separator.join(lines), "f"))] == lines


def test_blank_last_line_is_not_a_record() -> None:
    assert read_all(compact(ONE) + b"\n  ") == [("f:1", ONE)]


@pytest.mark.parametrize("content", [compact(ONE), compact([ONE, TWO])])
def test_value_of_maximum_length_is_accepted(content: bytes, settings: Settings) -> None:
    settings.PAYMENTS_IMPORT_VALUE_BYTES_MAX = len(compact(ONE))

    assert read_all(content)[0][1] == ONE


@pytest.mark.parametrize("begin", [b'{"id":"', b'[{"id":"'])
def test_endless_value_is_refused_before_it_fills_the_memory(begin: bytes, settings: Settings) -> None:
    settings.PAYMENTS_IMPORT_VALUE_BYTES_MAX = 5000

    with pytest.raises(UnreadableSource, match=r"^f:1(: record 1)?: longer than 5000 bytes$"):
        read_all(endless_source(begin))
