"""Packages the service needs that are not installed with nashcast itself."""

from __future__ import annotations

from importlib.util import find_spec

from nashcast.errors import InvalidInput


def need_server() -> None:
    for package in ("starlette", "uvicorn", "httptools"):
        if find_spec(package) is None:
            raise InvalidInput("serve", f"no package {package}", "Install it: pip install 'nashcast[serve]'.")
