"""The table of verbs."""

from typing import Final

from kalito_mcp.memory.verbs.conversation import CONTEXT, FINALIZE, RECORD, SUMMARIZE
from kalito_mcp.memory.verbs.forgetting import FORGET, FORGET_SUBJECT, PREVIEW, PURGE, PURGE_SUBJECT
from kalito_mcp.memory.verbs.records import PIN, READ, REMEMBER, RESTORE, TASKS, UPDATE
from kalito_mcp.memory.verbs.search import FEEDBACK, PAST_ANSWERS, SEARCH
from kalito_mcp.memory.verbs.verb import Verb

VERBS: Final[tuple[Verb, ...]] = (
    RECORD,
    CONTEXT,
    SEARCH,
    PAST_ANSWERS,
    PIN,
    SUMMARIZE,
    FEEDBACK,
    FINALIZE,
    REMEMBER,
    UPDATE,
    FORGET,
    PURGE,
    PREVIEW,
    FORGET_SUBJECT,
    PURGE_SUBJECT,
    RESTORE,
    READ,
    TASKS,
)
