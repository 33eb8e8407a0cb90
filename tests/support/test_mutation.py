"""The list of the modules that mutation tests change."""

import pytest

from tests.support.mutation import ROOT, TESTS
from tests.support.placement import exists


@pytest.mark.parametrize("module", TESTS)
def test_module_and_its_tests_exist(module: str) -> None:
    assert (ROOT / "payments" / f"{module}.py").exists()
    assert [test for test in TESTS[module] if not exists(test.partition("[")[0])] == []
