"""Irregular English forms and their base: went is go, children are child. Pure.

Only forms that the rules of `kalito_mcp.text.analysis.stem` cannot join: irregular verbs and nouns, a British doubled
l (travelled), and regular forms too short or too much like another word for its rules (used, dying, seeing, quizzes).

A form that is just as often another word is left out, because two words in one term cost more than two terms for one
word: rose, wound, bore, lay, bit, bound, ground, stuck, shot, dove, sprang, leaves, lives, bases, data, dice, people.
These are kept despite a second meaning, because the verb is usually meant: found, left, saw, felt, thought, met, fell,
spoke, won, lit, drunk.
"""

from collections import defaultdict
from collections.abc import Mapping, Set
from functools import cache
from typing import Final


def base_form(word: str) -> str:
    """The base of an irregular form; any other word unchanged. The word must be lower case and without `'s`."""
    return _BASES.get(word, word)


def irregular_heads(head: str) -> Set[str]:
    """The first two letters of the irregular forms of all words that begin with `head`: `go` has `we`, from went."""
    return _heads().get(head, frozenset())


_VERBS: Final = """
arise arose arisen; awake awoke awoken awaking; beat beaten; become became; begin began begun; bend bent; bite bitten;
bleed
bled bleeding; blow blew blown; break broke broken; breed bred breeding; bring brought; build built; burn burnt; buy
bought; catch caught; choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug; draw drew drawn;
dream dreamt; drink drank drunk; drive drove driven; dwell dwelt; eat ate eaten; fall fell fallen; feed fed; feel
felt; fight fought; find found; flee fled; fling flung; fly flew flown; forbid forbade forbidden; foresee foresaw
foreseen foreseeing; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave
given; go went gone goes going; grow grew grown; hang hung; hear heard; hide hidden; hold held; keep kept; kneel
knelt; know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent; light lit;
lose lost; make made; mean meant; meet met; mislead misled; mistake mistook mistaken; misunderstand misunderstood; mow
mown; outgrow outgrew outgrown; overcome overcame; overhear overheard; oversee oversaw overseen overseeing; oversleep
overslept; overtake overtook overtaken; overthrow overthrew overthrown; pay paid; plead pled; prove proven; rebuild
rebuilt; redo redid redone redoes; repay repaid; resell resold; retake retook retaken; rethink rethought;
rewrite rewrote
rewritten; ride rode ridden; ring rang rung; rise risen; run ran; say said; see saw seen seeing; seek sought; sell
sold; send sent; sew sewn; shake shook shaken; shine shone; show shown; shrink shrank shrunk; sing sang sung; sink
sank sunk; sit sat; sleep slept; sling slung; smell smelt; sneak snuck; sow sown; speak spoke spoken; speed sped
speeding; spell spelt; spend spent; spill spilt; spin spun; spit spat; spoil spoilt; stand stood; steal stole stolen;
sting stung; stink stank stunk; strike struck stricken; strive strove striven; swear swore sworn; sweep swept; swell
swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought; throw
threw thrown; tread trod trodden; undergo underwent undergone; understand understood; undertake undertook undertaken;
undo undid undone undoes; uphold upheld; wake woke woken; wear wore worn; weave wove woven; weep wept; win won; withdraw
withdrew withdrawn; withhold withheld; withstand withstood; wring wrung; write wrote written
"""
_NOUNS: Final = """
man men; woman women; child children; grandchild grandchildren; stepchild stepchildren; schoolchild schoolchildren;
godchild godchildren; foot feet; tooth teeth; goose geese; mouse mice; ox oxen; wife wives; housewife housewives;
midwife midwives; knife knives; wolf wolves; werewolf werewolves; half halves; shelf shelves; bookshelf bookshelves;
loaf loaves; thief thieves; calf calves; scarf scarves; hoof hooves; elf elves; dwarf dwarves; policeman policemen;
policewoman policewomen; fireman firemen; businessman businessmen; businesswoman businesswomen; salesman salesmen;
fisherman fishermen; gentleman gentlemen; snowman snowmen; freshman freshmen; chairman chairmen; spokesman spokesmen;
craftsman craftsmen; sportsman sportsmen; criterion criteria; phenomenon phenomena; bacterium bacteria; index indices;
vertex vertices; matrix matrices; appendix appendices; analysis analyses; crisis crises; diagnosis diagnoses;
prognosis prognoses; thesis theses; hypothesis hypotheses; synthesis syntheses; parenthesis parentheses; synopsis
synopses; oasis oases; emphasis emphases; cactus cacti; fungus fungi; alumnus alumni; stimulus stimuli; nucleus
nuclei; radius radii; syllabus syllabi; curriculum curricula; memorandum memoranda; millennium millennia; quiz quizzes
quizzed; ski skis; taxi taxis
"""
_SHORT_OR_DOUBLED: Final = """
use used using; die died dying; lie lied lying; tie tied tying; add added adding; owe owed owing; age aged aging; dye
dyed; travel travelled travelling; cancel cancelled cancelling; control controlled controlling; label labelled
labelling; model modelled modelling; level levelled levelling; signal signalled signalling; fuel fuelled fuelling;
quarrel quarrelled quarrelling; patrol patrolled patrolling; rebel rebelled rebelling; compel compelled compelling;
expel expelled expelling; propel propelled propelling; excel excelled excelling; marvel marvelled marvelling; counsel
counselled counselling; channel channelled channelling
"""


def _bases(*tables: str) -> dict[str, str]:
    entries = [entry.split() for entry in ";".join(tables).split(";")]
    return {form: base for base, *forms in entries for form in forms}


_BASES: Final = _bases(_VERBS, _NOUNS, _SHORT_OR_DOUBLED)


@cache
def _heads() -> Mapping[str, Set[str]]:
    heads: defaultdict[str, set[str]] = defaultdict(set)
    for form, base in _BASES.items():
        heads[base[:2]].add(form[:2])
    return dict(heads)
