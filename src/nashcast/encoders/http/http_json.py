"""Requests to model servers: JSON over HTTP, with a key, a timeout and retries."""

from __future__ import annotations

import http.client
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nashcast import validation as check
from nashcast.errors import InvalidInput, NashcastError

_FIRST_PAUSE_S = 0.1  # doubled with every retry


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the key to a server the user did not name."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


def post(url: str, body: bytes, api_key_variable: str | None) -> urllib.request.Request:
    """A request with JSON, and with the key if there is one."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if api_key_variable is not None:
        headers["Authorization"] = f"Bearer {_key(api_key_variable)}"
    return urllib.request.Request(url, body, headers, method="POST")


def send(
    request: urllib.request.Request, timeout: float, retries: int, hints: Mapping[int, str] = MappingProxyType({})
) -> bytes:
    """The answer's body. Requests are sent again after a timeout, a broken connection, HTTP 429 and 5xx.

    hints: what to do about an HTTP code.
    """
    opener = urllib.request.build_opener(_NoRedirect)
    problem = "was not asked"
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1))
        try:
            with opener.open(request, timeout=timeout) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            # Only the status code is reported: a server's own message may repeat the key.
            with error:
                problem = f"answered HTTP {error.code}"
            if error.code != 429 and error.code < 500:
                raise NashcastError(
                    f"{request.full_url}: {problem}. {hints.get(error.code) or _remedy(error.code)}"
                ) from None
        except TimeoutError:
            problem = f"did not answer within {timeout:g} s"
        except urllib.error.URLError as error:
            late = isinstance(error.reason, TimeoutError)
            problem = f"did not answer within {timeout:g} s" if late else f"could not be reached ({error.reason})"
        except (OSError, http.client.HTTPException) as error:
            problem = f"broke off the connection ({type(error).__name__})"
    remedy = "See that the server runs and is not overloaded, or raise timeout or retries."
    raise NashcastError(f"{request.full_url}: {problem}, asked {retries + 1} times. {remedy}")


def _remedy(code: int) -> str:
    if code in (401, 403):
        return "Put a key that the server accepts into the variable named by api_key_variable."
    return "Check url and model."


def check_key_variable(name: Any) -> None:
    # The value is not shown: it is likely to be the key itself.
    if name is not None and not (isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)):
        remedy = "Pass the name of the environment variable, never the key itself."
        raise InvalidInput("api_key_variable", "something that is no variable's name", remedy)


def _key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InvalidInput("api_key_variable", f"{variable}, which is not set", f"Set {variable} to the server's key.")
    # Refused here because http.client would refuse it with the key in its message.
    if not (key.isascii() and key.isprintable()):
        remedy = f"Set {variable} to the key alone, in plain characters."
        raise InvalidInput("api_key_variable", f"{variable}, whose value no key can have", remedy)
    return key


def check_url(url) -> None:
    if not isinstance(url, str):
        raise InvalidInput("url", check.describe(url), "Pass the server's address, for example https://host/v1.")
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise InvalidInput("url", "no address", "Pass the server's address, for example https://host/v1.") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: it may contain a password or a key.
        remedy = "Pass scheme, host and path only, and a key by api_key_variable."
        raise InvalidInput("url", "an address with a login, a query or a fragment", remedy)
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput("url", repr(url), "Pass an http or https address, for example https://host/v1.")
