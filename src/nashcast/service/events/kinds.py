"""Kinds of log lines that are events: posted to webhooks, listed by /v1/events, counted in the metrics."""

from __future__ import annotations

DRIFT, DRIFT_OVER = "drift", "drift over"
COVERAGE_OFF, COVERAGE_BACK = "coverage off", "coverage back"
AGENT_GONE, AGENT_BACK = "agent gone", "agent back"
FAILED = "failed"
# True for a problem, False for the end of one.
EVENTS = {
    DRIFT: True, DRIFT_OVER: False, COVERAGE_OFF: True, COVERAGE_BACK: False, AGENT_GONE: True, AGENT_BACK: False,
    FAILED: True,
}  # fmt: skip
