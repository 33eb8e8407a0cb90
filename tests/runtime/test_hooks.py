"""Instrumentation hooks: their order, and what they are called with."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from payments.runtime.hooks import Hook, Hooks, Progress, Result

pytestmark = pytest.mark.once


@dataclass
class Imported:
    """The progress of an import."""

    read: int = 3
    refused: int = 0
    written: int = 2


class RecordingHook(Hook):
    """Records its calls."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    def request(self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
        self.calls.append(f"{self.name} starts")
        response = respond(request)
        self.calls.append(f"{self.name} ends")
        return response

    def statement(self, sql: str, run: Callable[[], Result]) -> Result:
        self.calls.append(f"{self.name}: {sql}")
        return run()

    def import_finished(self, progress: Progress, *, outcome: str) -> None:
        self.calls.append(f"{self.name}: {outcome}, {progress.written} written")


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def hooks(calls: list[str]) -> Hooks:
    hooks = Hooks()
    hooks.register(RecordingHook("first", calls))
    hooks.register(RecordingHook("last", calls))
    return hooks


def test_last_registered_hook_is_the_outermost(hooks: Hooks, calls: list[str]) -> None:
    response = hooks.respond(HttpRequest(), lambda request: HttpResponse(status=204))

    assert response.status_code == 204
    assert calls == ["last starts", "first starts", "first ends", "last ends"]


def test_nested_statement_is_reported_once(hooks: Hooks, calls: list[str]) -> None:
    result = hooks.run_statement("outer", lambda: hooks.run_statement("inner", lambda: 7))

    assert result == 7
    assert calls == ["last: outer", "first: outer"]


def test_statement_after_a_failed_one_is_reported(hooks: Hooks, calls: list[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        hooks.run_statement("failing", lambda: 1 / 0)
    hooks.run_statement("next", lambda: None)

    assert calls == ["last: failing", "first: failing", "last: next", "first: next"]


@pytest.mark.parametrize(("refused", "outcome"), [(0, "succeeded"), (1, "refused")])
def test_outcome_of_an_import_is_reported(hooks: Hooks, calls: list[str], refused: int, outcome: str) -> None:
    with hooks.importing(Imported(refused=refused)):
        pass

    assert calls == [f"first: {outcome}, 2 written", f"last: {outcome}, 2 written"]


def test_interrupted_import_is_reported_as_failed(hooks: Hooks, calls: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt), hooks.importing(Imported()):
        raise KeyboardInterrupt

    assert calls == ["first: failed, 2 written", "last: failed, 2 written"]


def test_hook_without_overrides_changes_nothing() -> None:
    hooks = Hooks()
    hooks.register(Hook())

    hooks.worker_started()
    assert hooks.respond(HttpRequest(), lambda request: HttpResponse(status=204)).status_code == 204
    assert hooks.run_statement("SELECT 7", lambda: 7) == 7
    with hooks.importing(Imported()):
        hooks.import_progressed(Imported())
    hooks.replica_lag_measured(1.5)
    hooks.replica_skipped("lag")
