"""The OpenAPI document: every path, field and status. Array sizes depend on the stream."""

from __future__ import annotations

from typing import Any

from nashcast import __version__
from nashcast.service.http.bodies import LARGEST, LARGEST_STEP, LONGEST_KEY, MOST_ITEMS
from nashcast.service.http.documents.openapi_answers import ANSWERS, ref
from nashcast.service.streams.limits import Limits
from nashcast.service.streams.settings import LARGEST_DIM

_REFUSALS = {
    400: "The body is not JSON, or is ambiguous JSON.",
    401: "No token, or one that is unknown, expired or revoked.",
    403: "The token lacks the scope, or the request is from a page of another origin.",
    404: "No resource has this name.",
    408: "The body took too long to arrive.",
    409: "The post contradicts the journal: a step out of order, or other numbers for the same step or key.",
    413: "The body is too large.",
    415: "The content type is not application/json.",
    422: "A value is missing, unknown or out of range; the message says which and what to pass.",
    429: "Too many requests; Retry-After says when.",
    503: "Busy, damaged or stopped; the message says which.",
    507: "The journal cannot be written. Nothing was stored.",
}
_ALWAYS = (401, 403, 429)
_BODY = (400, 408, 413, 415, 422)
_STORED = (409, 503, 507)


def document(limits: Limits, *, tokens: bool) -> dict[str, Any]:
    """tokens: whether requests need a token."""
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if tokens else {}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nashcast",
            "version": __version__,
            "description": "Federations of forecasters behind HTTP, one for each stream. Observation n reveals the "
            "target of step n and brings the inputs known then; the forecast after it is for the target "
            f"of step n + 1 and the steps after it. A body has at most {limits.body} bytes. `at` is seconds since "
            "1970, `time` is ISO 8601.",
        },
        "security": [{"token": []}] if tokens else [],
        "paths": _paths(),
        "components": {**schemes, "schemas": {**_posted(), **ANSWERS}},
    }


def _numbers(null: bool) -> dict[str, Any]:
    kind: Any = ["number", "null"] if null else "number"
    one = {"type": kind, "minimum": -LARGEST, "maximum": LARGEST}
    return {"anyOf": [{"type": "array", "items": one, "minItems": 1, "maxItems": LARGEST_DIM}, one]}


def _posted() -> dict[str, Any]:
    """Schemas of request bodies."""
    step = {"type": "integer", "minimum": 0, "maximum": LARGEST_STEP}
    target = _numbers(null=False)
    maybe_target = {"anyOf": [target, {"type": "null"}]}
    key = {"type": ["string", "null"], "pattern": f"^[!-~]{{1,{LONGEST_KEY}}}$", "description": "Idempotency key."}
    observation = {
        "type": "object",
        "properties": {
            "x": _numbers(null=True) | {"description": "Inputs known at this step; null if missing."},
            "y": maybe_target | {"description": "Target of this step; null if not known yet."},
            "step": {"anyOf": [step, {"type": "null"}], "description": "Last step + 1 (default: the next step)."},
            "key": key,
            "time": {
                "anyOf": [
                    {"type": "number", "minimum": 0, "maximum": 32_503_680_000},
                    {"type": "string", "format": "date-time"},
                    {"type": "null"},
                ],
                "description": "Time of the observation: seconds since 1970, or ISO 8601 with an offset.",
            },
        },
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    label = {
        "type": "object",
        "properties": {"step": step, "y": target},
        "required": ["step", "y"],
        "additionalProperties": False,
    }
    name = {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"}
    return {
        "Observation": observation,
        "Observations": _one_or_many("observations", "Observation"),
        "Label": label,
        "Labels": _one_or_many("labels", "Label"),
        "StreamName": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"},
        "StreamSettings": {
            "type": "object",
            "description": "As a federation file: a table serve, and agents, horizon, season, mixing, game, seed.",
            "properties": {"serve": {"type": "object"}},
            "required": ["serve"],
        },
        "SavePointName": name,
        "NewSavePoint": {
            "type": "object",
            "properties": {"name": ref("SavePointName")},
            "required": ["name"],
            "additionalProperties": False,
        },
    }


def _one_or_many(name: str, schema: str) -> dict[str, Any]:
    items = {"type": "array", "items": ref(schema), "minItems": 1, "maxItems": MOST_ITEMS}
    many = {"type": "object", "properties": {name: items}, "required": [name], "additionalProperties": False}
    return {"anyOf": [ref(schema), many]}


def _paths() -> dict[str, Any]:
    def whole(name: str, text: str, least: int, most: int = 2**53, default: int | None = None) -> dict:
        schema = {"type": "integer", "minimum": least, "maximum": most}
        if default is not None:
            schema["default"] = default
        return {"name": name, "in": "query", "description": text, "schema": schema}

    limit = whole("limit", "Maximum number of rows.", 1, 1000, 100)
    name = {"name": "name", "in": "path", "required": True, "schema": ref("SavePointName")}
    history = [
        whole("from", "First step (default: the newest rows).", 0),
        whole("to", "Last step.", 0),
        limit,
        whole("every", "Only steps divisible by this.", 1, default=1),
    ]
    log = [whole("after", "Only rows with a larger id (default: the newest).", 0), limit]
    wait = {
        "name": "wait", "in": "query", "description": "Seconds to wait for the forecast that follows the post.",
        "schema": {"type": "number", "minimum": 0, "maximum": 60, "default": 0},
    }  # fmt: skip
    replay = {
        "name": "replay", "in": "query", "description": "Recompute everything if the settings change the forecasts.",
        "schema": {"type": "boolean", "default": False},
    }  # fmt: skip
    stream = {"name": "stream", "in": "path", "required": True, "schema": ref("StreamName")}
    get, post = _get, _post
    own = {
        "": {
            "get": get("stream", "One stream: state, errors, settings. Scope read.", "Stream", 404),
            "put": post("make", "Create or change it. Scope admin.", "StreamSettings", "StreamMade", 200, 201, 404,
                        *_BODY, *_STORED) | {"parameters": [replay]},
            "delete": post("remove", "Remove a stream and all its data. Scope admin.", None, "StreamRemoved", 200, 404,
                           *_STORED),
        },
        "/observations": {
            "post": post("observe", "Post observations. Scope write.", "Observations", "Receipt", 200, 404, *_BODY,
                         *_STORED) | {"parameters": [wait]},
        },
        "/labels": {
            "post": post("label", "Post missing targets. Scope write.", "Labels", "Receipt", 200, 404, *_BODY,
                         *_STORED) | {"parameters": [wait]},
        },
        "/forecast": {"get": get("forecast", "The current forecast. Scope read.", "Forecast", 404, 503)},
        "/agents": {"get": get("agents", "Agents, their states, weights and errors. Scope read.", "Agents", 404, 503)},
        "/status": {"get": get("status", "Errors, games, settings. Scope read.", "Status", 404, 503)},
        "/history": {
            "get": get("history", "Past steps. Scope read.", "History", 404, 422, 503)
            | {"parameters": history}
        },
        "/log": {"get": get("log", "The stream's log. Scope read.", "Log", 404, 422, 503) | {"parameters": log}},
        "/events": {"get": get("events", "Server-sent events. Scope read.", "text/event-stream", 404, 503)},
        "/savepoints": {
            "get": get("savePoints", "The save points. Scope read.", "SavePoints", 404, 503),
            "post": post("save", "Make one. Scope admin.", "NewSavePoint", "SavePointMade", 201, 404, *_BODY, *_STORED),
        },
        "/savepoints/{name}": {
            "parameters": [name],
            "delete": post("drop", "Delete a save point. Scope admin.", None, "SavePointMade", 200, 404, 422, *_STORED),
        },
        "/savepoints/{name}/restore": {
            "parameters": [name],
            "post": post(
                "restore", "Restore a save point: later entries are withdrawn. Scope admin.", None, "Restored",
                200, 404, 422, *_STORED,
            ),
        },
    }  # fmt: skip
    return {
        "/healthz": {"get": get("healthz", "Whether the process runs.", "Alive", public=True)},
        "/readyz": {"get": get("readyz", "Whether observations are accepted.", "Ready", 503, public=True)},
        "/metrics": {"get": get("metrics", "Figures for Prometheus. Scope read.", "text/plain", 503)},
        "/v1/openapi.json": {"get": get("openapi", "This document.", None, public=True)},
        "/v1/streams": {"get": get("streams", "Every stream. Scope read.", "Streams")},
        "/v1/events": {
            "get": get("allEvents", "Events of all streams. Scope read.", "Events", 422, 503) | {"parameters": log}
        },
        **{
            f"/v1/streams/{{stream}}{path}": methods | {"parameters": [stream, *methods.get("parameters", [])]}
            for path, methods in own.items()
        },
    }


def _get(operation: str, text: str, schema: str | None, *refusals: int, public: bool = False) -> dict[str, Any]:
    answers = _answers(200, schema, (403,) if public else _ALWAYS, refusals)
    return {"operationId": operation, "summary": text, "responses": answers} | ({"security": []} if public else {})


def _post(
    operation: str, text: str, body: str | None, schema: str, status: int, *refusals: int
) -> dict[str, Any]:  # fmt: skip
    found = {"operationId": operation, "summary": text, "responses": _answers(status, schema, _ALWAYS, refusals)}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    return found


def _answers(status: int, schema: str | None, always: tuple[int, ...], refusals: tuple[int, ...]) -> dict[str, Any]:
    if schema is None:
        content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    elif "/" in schema:
        content = {schema: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": ref(schema)}}
    answers = {str(status): {"description": "As asked.", "content": content}}
    if 201 in refusals:
        answers["201"] = {"description": "Made.", "content": content}
    for code in sorted({*always, *refusals} - {201}):
        refused = {"application/json": {"schema": ref("Error")}}
        answers[str(code)] = {"description": _REFUSALS[code], "content": refused}
        if code == 429:
            answers["429"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return answers
