"""Where a pin is known, if nobody says so."""

import pytest

from kalito_mcp.domain.kinds import OF_ITS_SESSION, PASSING, Kind
from kalito_mcp.domain.records import Origin, PinType, Reach
from kalito_mcp.kinds.judged import PERSONAL_FROM, Judged
from kalito_mcp.pins.reach import reach_of

LASTING = [kind for kind in Kind if kind not in OF_ITS_SESSION | PASSING]


def test_in_a_project_only_what_is_plainly_the_person_s_leaves_it() -> None:
    for kind in LASTING:
        assert reach_of(Judged(kind, 1.0, PERSONAL_FROM), has_project=True) is Reach.PERSON
        assert reach_of(Judged(kind, 1.0, PERSONAL_FROM - 0.01), has_project=True) is Reach.PROJECT
        for is_personal in (0.0, 1.0):
            assert reach_of(Judged(kind, 1.0, is_personal), has_project=False) is Reach.PERSON


@pytest.mark.parametrize("has_project", [True, False])
def test_how_things_stood_and_code_stay_in_their_session(has_project: bool) -> None:
    for kind in OF_ITS_SESSION:
        assert reach_of(Judged(kind, 1.0, 1.0), has_project=has_project) is Reach.SESSION
    fact = Judged(Kind.FACT, 1.0, 1.0)
    assert reach_of(fact, has_project=has_project, pin_type=PinType.CODE) is Reach.SESSION


def test_words_of_tools_documents_and_imports_stay_in_their_session() -> None:
    for origin in list(Origin):
        stays = origin in (Origin.TOOL, Origin.DOCUMENT, Origin.IMPORT)
        found = reach_of(Judged(Kind.FACT, 1.0, 1.0), has_project=False, origin=origin)
        assert found is (Reach.SESSION if stays else Reach.PERSON)
