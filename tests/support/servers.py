"""Real HTTP servers with the failures that real ones have."""

import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """content: what it serves.   seen: the Range of every request, None for none."""

    daemon_threads = True

    def __init__(self, content, answer):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.answer, self.seen = content, answer, []
        self.closing = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/file.csv"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.headers.get("Range"))
        with suppress(ConnectionError):  # the client has seen enough
            self.server.answer(self, self.server.content)

    def log_message(self, *_):
        pass

    def start(self, code, length=None, **headers):
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def rest(self, content):
        """What is asked for, with the headers that say so."""
        asked = self.headers.get("Range")
        if asked is None:
            self.start(200, len(content))
            return content
        first = int(asked.removeprefix("bytes=").removesuffix("-"))
        if first >= len(content):
            self.start(416, 0, Content_Range=f"bytes */{len(content)}")
            return b""
        self.start(206, len(content) - first, Content_Range=f"bytes {first}-{len(content) - 1}/{len(content)}")
        return content[first:]


def good(request, content):
    request.wfile.write(request.rest(content))


def ignores_range(request, content):
    request.start(200, len(content))
    request.wfile.write(content)


def without_length(request, content):
    request.start(200)
    request.wfile.write(content)


def lies_about_range(request, content):
    """Says 206 but begins at the beginning."""
    request.start(206, len(content), Content_Range=f"bytes 0-{len(content) - 1}/{len(content)}")
    request.wfile.write(content)


def altered(request, content):
    request.wfile.write(request.rest(content[:-2] + b"#\n"))


def shorter(request, content):
    request.wfile.write(request.rest(content[:1000]))


def far_longer(request, content):
    """Without a length to warn of it."""
    request.start(200)
    for _ in range(20):
        request.wfile.write(content)


def silent(request, content):
    request.start(200, len(content))
    request.wfile.write(content[:5000])
    request.wfile.flush()
    request.server.closing.wait(10)


def refuses(code, until=10**6):
    """An error for the first `until` requests."""

    def answer(request, content):
        if len(request.server.seen) <= until:
            request.start(code, 0)
        else:
            good(request, content)

    return answer


def drops(until=10**6):
    """Closes the connection half-way through what is left, for the first `until` requests."""

    def answer(request, content):
        rest = request.rest(content)
        request.wfile.write(rest[: len(rest) // 2] if len(request.server.seen) <= until else rest)

    return answer


@contextmanager
def serving(content, answer=good):
    server = Server(content, answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
