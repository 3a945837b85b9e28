"""MCP's own conformance suite, in its short form: where its tools are there (`make conformance` installs them)."""

import pytest

from tests import conformance


@pytest.fixture(scope="module")
def installed() -> None:
    reason = conformance.missing()
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.usefixtures("installed")
def test_all_that_both_revisions_require_passes_on_our_server_with_the_fixtures() -> None:
    with conformance.fixtures() as url:
        for revision in conformance.REVISIONS:
            judged = conformance.of_the_suite(url, "--requirements", revision)
            assert judged.code == 0, judged.said[-4_000:]
