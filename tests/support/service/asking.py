"""Requests with nothing between the test and the socket's HTTP."""

import json
from http.client import HTTPConnection

ONE = "/v1/streams/federation"
SCOPES = {"reader": "read", "writer": "read,write", "poster": "write", "boss": "admin"}


def ask(served, method, path, body=None, token="boss", headers=None):
    """Status, headers and content."""
    connection = HTTPConnection("127.0.0.1", served.port, timeout=20)
    secret = served.secrets.get(token, token)
    sent = {} if token is None else {"Authorization": f"Bearer {secret}"}
    if body is not None:
        sent["Content-Type"] = "application/json"
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, {**sent, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def refused(served, *arguments, **options):
    status, _, content = ask(served, *arguments, **options)
    error = json.loads(content)["error"]
    return status, error["code"], error["message"]
