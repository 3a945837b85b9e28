"""`RevisionCache` returns only entries that are recent and of the current revision."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kalito_mcp.contexts.cache import CachePolicy, RevisionCache


def test_a_value_is_served_while_it_is_young_and_nothing_was_written() -> None:
    cache: RevisionCache[str, str] = RevisionCache(CachePolicy(ttl_s=5.0))
    cache.put("a", "value", revision=7, now_s=100.0)
    assert cache.get("a", revision=7, now_s=104.999) == "value"
    assert cache.get("b", revision=7, now_s=100.0) is None
    off: RevisionCache[str, str] = RevisionCache(CachePolicy(ttl_s=0))
    off.put("a", "value", revision=7, now_s=100.0)
    assert off.get("a", revision=7, now_s=100.0) is None


def test_a_value_of_another_revision_or_too_old_is_gone_for_good() -> None:
    for revision, now_s in ((8, 100.0), (6, 100.0), (7, 105.0), (7, 1e9)):
        cache: RevisionCache[str, str] = RevisionCache(CachePolicy(ttl_s=5.0))
        cache.put("a", "value", revision=7, now_s=100.0)
        assert cache.get("a", revision=revision, now_s=now_s) is None
        assert len(cache) == 0
        assert cache.get("a", revision=7, now_s=100.0) is None


def test_the_least_recently_used_goes_first() -> None:
    cache: RevisionCache[str, int] = RevisionCache(CachePolicy(max_entries=2))
    cache.put("a", 1, revision=1, now_s=0)
    cache.put("b", 2, revision=1, now_s=0)
    cache.get("a", revision=1, now_s=0)
    cache.put("c", 3, revision=1, now_s=0)
    assert [cache.get(key, revision=1, now_s=0) for key in "abc"] == [1, None, 3]


def test_a_key_can_be_dropped_whether_it_is_known_or_not() -> None:
    cache: RevisionCache[str, int] = RevisionCache(CachePolicy())
    cache.put("a", 1, revision=1, now_s=0)
    cache.drop_where(lambda key: key == "a")
    cache.drop_where(lambda key: key == "never there")
    assert cache.get("a", revision=1, now_s=0) is None


@given(st.integers(0, 5), st.lists(st.text(max_size=3), max_size=30))
def test_there_are_never_more_entries_than_allowed(most: int, keys: list[str]) -> None:
    cache: RevisionCache[str, int] = RevisionCache(CachePolicy(max_entries=most))
    for number, key in enumerate(keys):
        cache.put(key, number, revision=1, now_s=0)
        assert len(cache) <= most


class NeverStale(RuleBasedStateMachine):
    """Reads through the cache, and writes behind its back that move the revision."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: RevisionCache[int, int] = RevisionCache(CachePolicy(ttl_s=5.0, max_entries=3))
        self.stored = dict.fromkeys(range(5), 0)
        self.revision = 0
        self.now_s = 0.0

    @rule(key=st.integers(0, 4))
    def write(self, key: int) -> None:
        self.stored[key] += 1
        self.revision += 1

    @rule(key=st.integers(0, 4), written_meanwhile=st.booleans())
    def read(self, key: int, written_meanwhile: bool) -> None:
        revision = self.revision
        if self.cache.get(key, revision=revision, now_s=self.now_s) is None:
            value = self.stored[key]
            if written_meanwhile:
                self.write(key)
            self.cache.put(key, value, revision=revision, now_s=self.now_s)

    @rule(seconds=st.floats(0, 6))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    @invariant()
    def what_is_served_is_what_is_stored(self) -> None:
        for key, stored in self.stored.items():
            assert self.cache.get(key, revision=self.revision, now_s=self.now_s) in (None, stored)


TestNeverStale = NeverStale.TestCase
