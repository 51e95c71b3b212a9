"""Reads traces of agents' runs with the messages of OpenTelemetry itself, and holds their attributes against its conventions. Takes the
requests that a collector got, one a line, on the standard input. Prints `ok` or fails."""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, server_attributes
from opentelemetry.semconv.attributes import error_attributes, service_attributes

MODULES = [gen_ai_attributes, server_attributes, error_attributes, service_attributes]
KNOWN = {value for module in MODULES for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
DEPRECATED = {gen_ai_attributes.GEN_AI_SYSTEM, gen_ai_attributes.GEN_AI_PROMPT, gen_ai_attributes.GEN_AI_COMPLETION}
OPERATIONS = {value.value for value in gen_ai_attributes.GenAiOperationNameValues}
PROVIDERS = {value.value for value in gen_ai_attributes.GenAiProviderNameValues}


def with_bytes(value):
    """OTLP writes ids as hex digits where JSON of protobuf has base64."""
    if isinstance(value, list):
        return [with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {name: base64.b64encode(bytes.fromhex(item)).decode() if name in ids else with_bytes(item) for name, item in value.items()}


def plain(value):
    kind = value.WhichOneof("value")
    return [plain(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


operations = []
for line in sys.stdin:
    # Fields that the messages do not have are refused.
    request = json_format.ParseDict(with_bytes(json.loads(line)), ExportTraceServiceRequest())
    (resource,) = request.resource_spans
    service = {attribute.key: plain(attribute.value) for attribute in resource.resource.attributes}
    assert service["service.name"] == "toolyard" and service["service.version"], service
    spans = resource.scope_spans[0].spans
    root = spans[0]
    for span in spans:
        attributes = {attribute.key: plain(attribute.value) for attribute in span.attributes}
        assert len(attributes) == len(span.attributes), span
        assert (len(span.trace_id), len(span.span_id), span.trace_id) == (16, 8, root.trace_id), span
        assert span.parent_span_id == (b"" if span is root else root.span_id), span
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano, span
        unknown = {key for key in attributes if not key.startswith("toolyard.")} - (KNOWN - DEPRECATED)
        assert not unknown, unknown
        operation = attributes["gen_ai.operation.name"]
        assert operation in OPERATIONS and span.name.startswith(operation), span
        assert span.kind == (Span.SPAN_KIND_CLIENT if operation == "chat" else Span.SPAN_KIND_INTERNAL), span
        assert (span.status.code == Status.STATUS_CODE_ERROR) == ("error.type" in attributes), span
        if operation != "execute_tool":
            assert attributes["gen_ai.provider.name"] in PROVIDERS and attributes["gen_ai.request.model"], attributes
            assert attributes["gen_ai.usage.input_tokens"] > 0, attributes
        if operation == "chat":
            assert attributes["gen_ai.response.finish_reasons"] and attributes["server.port"] > 0, attributes
        operations.append(operation)
assert {"invoke_agent", "chat", "execute_tool"} <= set(operations), operations
print("ok")
