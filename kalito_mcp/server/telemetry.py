"""Spans for OpenTelemetry, if the standard variables name a collector: which method and tool was called, how long it
took, and whether it failed.

The SDK of MCP makes the spans. It puts into them what callers send (names of tools, ids of messages) and what errors
say, which may quote them. Only what is in the lists here leaves the process. Nothing is imported unless a collector is
named.
"""

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.version import __version__

_COLLECTORS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_METHODS: Final = frozenset(
    "initialize ping server/discover tools/list tools/call resources/list resources/read resources/templates/list "
    "resources/subscribe resources/unsubscribe prompts/list prompts/get completion/complete subscriptions/listen "
    "logging/setLevel notifications/initialized notifications/cancelled".split()
)
_VERSIONS: Final = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"})
_CODES: Final = frozenset({"tool_error", "-32700", "-32600", "-32601", "-32602", "-32603", "-32020", "-32021"})


def start_telemetry(environment: Mapping[str, str], tools: Collection[str]) -> bool:
    """Send spans to the collector that the standard variables name; whether they name one.

    Raises:
        ConfigurationError: they do, and the extra `telemetry` is not installed.
    """
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_off = is_off or environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none"
    if is_off or not any(environment.get(name) for name in _COLLECTORS):
        return False
    if find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter") is None:
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but spans cannot be sent; install kalito-mcp[telemetry], or unset it"
        )
    from opentelemetry import trace  # noqa: PLC0415 - only where a collector is named
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - the same
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - the same

    about = Resource.create({"service.name": environment.get("OTEL_SERVICE_NAME") or "kalito-mcp"})
    provider = TracerProvider(resource=about.merge(Resource({"service.version": __version__})))
    exporter: Any = WithoutContent(OTLPSpanExporter(), tools)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return True


class WithoutContent:
    """An exporter of the same spans, without anything that callers sent."""

    def __init__(self, exporter: Any, tools: Collection[str]) -> None:
        self._exporter = exporter
        self._known: Mapping[str, Collection[str]] = {
            "mcp.method.name": _METHODS,
            "mcp.protocol.version": _VERSIONS,
            "gen_ai.operation.name": ("execute_tool",),
            "gen_ai.tool.name": tools,
            "error.type": _CODES,
            "rpc.response.status_code": _CODES,
        }

    def export(self, spans: Sequence[Any]) -> Any:
        """As the exporter's."""
        return self._exporter.export([self._cleaned(span) for span in spans])

    def shutdown(self) -> None:
        """As the exporter's."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> Any:
        """As the exporter's."""
        return self._exporter.force_flush(timeout_millis)

    def _cleaned(self, span: Any) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - only where spans are sent
        from opentelemetry.trace import Status  # noqa: PLC0415 - the same

        given: Mapping[str, Any] = span.attributes or {}
        attributes = {name: str(given[name]) for name, values in self._known.items() if given.get(name) in values}
        named = [attributes.get("mcp.method.name", "other"), attributes.get("gen_ai.tool.name", "")]
        return ReadableSpan(
            name=" ".join(filter(None, named)),
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes=attributes,
            kind=span.kind,
            instrumentation_scope=span.instrumentation_scope,
            status=Status(span.status.status_code),
            start_time=span.start_time,
            end_time=span.end_time,
        )
