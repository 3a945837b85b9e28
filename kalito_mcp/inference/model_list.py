"""Which models a server has: Ollama's `/api/tags` and the OpenAI-compatible `/models`. For `kalito-mcp doctor`."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.errors import ModelError, ModelReplyInvalid
from kalito_mcp.inference.http import HttpModel

_CHECK: Final = "models"
_SHOWN: Final = 5


class ModelList(HttpModel):
    """Asks one server for its models."""

    _METHOD = "GET"
    _LISTED: ClassVar[tuple[str, str]]
    """The fields of the list and of a model's name."""

    async def finding(self, wanted: Sequence[str]) -> Finding:
        """Whether the server answers, and has the models that the settings name."""
        try:
            names = await self._ask(None, ", ".join(wanted), self._names_in)
        except ModelReplyInvalid as error:
            return Finding(_CHECK, Verdict.WARNING, str(error))
        except ModelError as error:
            return Finding(_CHECK, Verdict.FAILED, str(error))
        missing = [one for one in wanted if one not in names and f"{one}:latest" not in names]
        if missing:
            shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
            remedy = f"name one that it has: {shown}" if names else "it has none yet"
            what = f"{self._where} has no model {missing[0]!r}; load it there, or {remedy}"
            return Finding(_CHECK, Verdict.FAILED, what)
        has = f" and has {', '.join(wanted)}" if wanted else ""
        return Finding(_CHECK, Verdict.OK, f"{self._where} answers{has}")

    def _names_in(self, answer: Any) -> list[str]:
        of_list, of_name = self._LISTED
        models = answer.get(of_list) if isinstance(answer, dict) else None
        if not isinstance(models, list):
            raise self._invalid("its answer is not a list of models")
        return [str(one.get(of_name)) for one in models if isinstance(one, dict)]


class OllamaModels(ModelList):
    """Of an Ollama."""

    _PATH = "/api/tags"
    _LISTED = ("models", "name")


class OpenAIModels(ModelList):
    """Of an OpenAI-compatible server."""

    _PATH = "/models"
    _LISTED = ("data", "id")
