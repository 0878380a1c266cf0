"""Run the quick start and every command in an environment that has nashcast installed and none of its extras.

Usage: python .ci/check_install.py, with the python of that environment. Exit code 1 and a line for each failure.
"""

import contextlib
import importlib.util
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Without extras, a command does its work or says what to install.
WORKS = (["--version"], [], ["data", "list"], ["data", "show", "four-owners"], ["run", "federation.toml"])
NAMES_EXTRA = {
    "demo": ["demo"],
    "serve": ["serve", "federation.toml", "--no-auth"],
    "remote": ["hub", "hub.toml"],
    "report": ["report", "runs/four-owners-2024"],
    "completion": ["completion", "bash"],
}
CHECKOUT = (["bench", "game"], ["demo", "--live"], ["evaluate", "--private"])


def quick_start() -> list[str]:
    """What differs between the page's output and the one seen now."""
    page, names, seen = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8"), {}, io.StringIO()
    with contextlib.redirect_stdout(seen):
        for block in re.findall(r"```python\n(.*?)```", page, flags=re.S):
            exec(compile(block, "quick-start.md", "exec"), names)
    said = "".join(re.findall(r"```python\n.*?```\n```\n(.*?)```", page, flags=re.S))
    return [] if seen.getvalue() == said else [f"quick start: printed\n{seen.getvalue()}instead of\n{said}"]


def command(words: list[str], folder: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "nashcast", *words], cwd=folder, capture_output=True, text=True)


def commands() -> list[str]:
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "federation.toml").write_text((ROOT / "examples" / "federation.toml").read_text())
        (Path(folder) / "hub.toml").write_text((ROOT / "examples" / "federated" / "tide.toml").read_text())
        for words in WORKS:
            if (done := command(words, folder)).returncode != 0:
                wrong.append(f"nashcast {' '.join(words)}: {done.stderr}")
        for extra, words in NAMES_EXTRA.items():
            done = command(words, folder)
            if done.returncode != 1 or f"nashcast[{extra}" not in done.stderr or "Traceback" in done.stderr:
                wrong.append(
                    f"nashcast {' '.join(words)} does not name the extra {extra}: {done.stderr or done.stdout}"
                )
        for words in CHECKOUT:
            done = command(words, folder)
            if done.returncode != 1 or "source checkout" not in done.stderr:
                wrong.append(f"nashcast {' '.join(words)} does not ask for a source checkout: {done.stderr}")
    return wrong


def main() -> int:
    import nashcast

    if ROOT in Path(nashcast.__file__).parents and "site-packages" not in nashcast.__file__:
        sys.exit(f"{nashcast.__file__} is the checkout's. Install the wheel or the source archive first.")
    extras = ("numba", "starlette", "matplotlib", "nats", "currency_converter", "shtab")
    unwanted = [name for name in extras if importlib.util.find_spec(name)]
    if unwanted:
        sys.exit(f"{', '.join(unwanted)} are installed. Use an environment without extras.")
    wrong = [*quick_start(), *commands()]
    print(
        "\n".join(wrong) or f"nashcast {nashcast.__version__}: the quick start runs, commands work or name their extra"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
