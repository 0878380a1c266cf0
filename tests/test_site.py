"""The site: pages that are generated, what is in its navigation, and examples on its pages."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

import nashcast
from nashcast.cli.main import parser
from nashcast.cli.shared.parsing import Misuse
from support.extras import skip_if
from support.page_examples import printed

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def hook(name):
    spec = importlib.util.spec_from_file_location(f"hooks_{name}", DOCS / "hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from pages([value] if isinstance(value, str) else value)


def test_every_page_and_notebook_is_in_the_navigation_once():
    skip_if("" if importlib.util.find_spec("yaml") else "needs PyYAML")
    import yaml

    found = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert len(found) == len(set(found))
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    written = {page for page in written if not page.startswith("decisions/0")}  # the hook adds these
    notebooks = {f"tutorials/notebook-{path.stem}.md" for path in (ROOT / "examples" / "notebooks").glob("*.ipynb")}
    assert set(found) == written | notebooks | {"decisions/index.md"}


def test_the_api_page_has_every_public_name():
    named = set(re.findall(r"^::: nashcast\.([\w.]+)$", (DOCS / "reference" / "api.md").read_text(), flags=re.M))
    expected = {name for name in nashcast.__all__ if name != "encoders"}
    assert named == expected | {f"encoders.{name}" for name in nashcast.encoders.__all__}


def test_the_command_line_page_has_every_command_and_option():
    reference = hook("cli_reference")
    assert reference.MARK in (DOCS / "reference" / "cli.md").read_text()
    page = reference.commands()
    assert "%(" not in page
    for each in [*parser().walk()][1:]:
        section = re.search(rf"^#+ `{each.prog}`\n(.*?)(?=^#|\Z)", page, flags=re.M | re.S)
        assert section, each.prog
        for action in each._actions:
            for name in action.option_strings if action.dest != "help" else ():
                assert f"| `{name}" in section[1], f"{each.prog} {name}"
    assert "`--window N` | look-back game: steps the decoder is fitted to (default: 5)" in page


def test_a_docstring_becomes_a_list_and_code():
    text = "Sum.\n\na, b: numbers.   c: a third\n    one.\n\nnote: no argument.\n\n>>> f(1, 2)\n3"
    expected = (
        "Sum.\n\n- `a`, `b`: numbers.\n- `c`: a third one.\n\nnote: no argument.\n\n```pycon\n>>> f(1, 2)\n3\n```"
    )
    assert hook("docstrings").as_markdown(text, {"a", "b", "c"}) == expected


def test_links_that_leave_the_docs_lead_to_the_repository():
    def links(text, page="how-to/x.md"):
        return hook("repository_links").rewritten(text, page, ROOT, "https://host/r")

    assert links("[a](../../Makefile)") == "[a](https://host/r/blob/main/Makefile)"
    assert links("[a](../../benchmarks#b)") == "[a](https://host/r/tree/main/benchmarks#b)"
    assert links("[a](../../examples/notebooks/texts.ipynb)") == "[a](../tutorials/notebook-texts.md)"
    for kept in (
        "[a](../glossary.md)",
        "[a](serve.md#b)",
        "[a](#b)",
        "[a](https://x.org/y)",
        "![a](../images/game.png)",
    ):
        assert links(kept) == kept
    with pytest.raises(FileNotFoundError, match=r"links to \.\./\.\./nothing, but there is no nothing"):
        links("[a](../../nothing)")


def test_a_notebook_becomes_a_page():
    code = {"cell_type": "code", "source": ["1 + ", "1"], "outputs": [{"data": {"text/plain": ["2"]}}]}
    cells = [{"cell_type": "markdown", "source": ["# Title\n", "\n", "Words."]}, code]
    page = hook("notebooks").page({"cells": cells}, "n.ipynb")
    assert page.startswith("# Title\n\nThis page is the notebook [n.ipynb](../../examples/notebooks/n.ipynb)")
    assert "\nWords.\n" in page
    assert "```python\n1 + 1\n```" in page
    assert "```text\n2\n```" in page
    for path in (ROOT / "examples" / "notebooks").glob("*.ipynb"):
        assert hook("notebooks").page(json.loads(path.read_text()), path.name).startswith("# ")


def test_the_index_of_decisions_has_all_of_them_in_order(tmp_path):
    decisions = hook("decisions")
    found = decisions.decisions(DOCS / "decisions")
    assert [int(each.number) for each in found] == list(range(1, len(found) + 1))
    page = decisions.index(found)
    assert (
        "| 1 | [NumPy and numba, nothing else in the core](0001-numpy-and-numba.md) | [14](0014-numpy-core.md) |"
        in page
    )
    (tmp_path / "0001-x.md").write_text("Title\n")
    with pytest.raises(ValueError, match=r"0001-x\.md begins with 'Title\\n'\. Begin it with '# NUMBER"):
        decisions.decisions(tmp_path)


def test_the_glossary_has_one_line_a_word_in_order():
    words = re.findall(r"^\| \*\*([^*]+)\*\* \|", (DOCS / "glossary.md").read_text(), flags=re.M)
    assert words == sorted(set(words))
    assert 18 <= len(words) <= 30


@pytest.mark.slow
def test_the_quick_start_prints_what_it_says(capsys):
    text = (DOCS / "quick-start.md").read_text()
    out, _, _ = printed(DOCS / "quick-start.md", capsys)
    said = re.findall(r"```python\n.*?```\n```\n(.*?)```", text, flags=re.S)
    assert len(said) == 3
    assert out == "".join(said)


def test_every_command_line_on_a_page_can_be_parsed():
    top, wrong, count = parser(), [], 0
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for block in re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(), flags=re.S | re.M):
            for line in re.findall(r"^nashcast (.+)$", block.replace("\\\n", " "), flags=re.M):
                words = [word for word in shlex.split(line, comments=True) if word != "&"]
                if "…" in words or "--help" in words:
                    continue
                count += 1
                try:
                    top.parse_args(words)
                except Misuse as misuse:
                    wrong.append(f"{page.name}: nashcast {line}: {misuse.message}")
    assert wrong == []
    assert count > 50
