"""What outsiders rely on: versions that agree, workflows, hooks and templates that can be read, what is packaged."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import nashcast
from support.extras import skip_if

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def yaml_of(path):
    skip_if("" if importlib.util.find_spec("yaml") else "needs PyYAML")
    import yaml

    return yaml.safe_load(path.read_text())


def test_the_version_is_one():
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "nashcast.__version__"}
    assert yaml_of(ROOT / "CITATION.cff")["version"] == nashcast.__version__
    newest = re.search(r"^## \[([^]]+)\] - (?:unreleased|\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest[1] == nashcast.__version__


def test_every_extra_that_a_message_or_page_names_exists():
    extras = PROJECT["project"]["optional-dependencies"].keys()
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("examples/**/*.ipynb"),
    ]
    for path in pages:
        for names in re.findall(r"nashcast\[([a-z,]+)\]", path.read_text()):
            assert set(names.split(",")) <= extras, f"{path} names nashcast[{names}]"


def test_workflows_run_targets_that_exist_on_every_supported_version():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    said = ""
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml_of(path)["jobs"].values():
            for step in job["steps"]:
                words = step.get("run", "").split()
                said += step.get("run", "") + "\n"
                if words[:1] == ["make"]:
                    assert words[1] in targets, f"{path.name}: {step['run']}"
                elif words and words[0].startswith((".", "python")):
                    file = next((word for word in words if word.startswith(".ci/")), None)
                    assert file is None or (ROOT / file).is_file(), f"{path.name}: {step['run']}"
    for target in ("make test", "make check", "make docs", "make release", "make coverage", ".ci/run"):
        assert f"{target}\n" in said
    versions = yaml_of(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["fast"]["strategy"]["matrix"]["python"]
    assert [f"Programming Language :: Python :: {each}" for each in versions] == [
        each for each in PROJECT["project"]["classifiers"] if re.search(r"3\.\d+$", each)
    ]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"


def test_the_hooks_before_a_commit_use_the_pinned_ruff():
    repositories = yaml_of(ROOT / ".pre-commit-config.yaml")["repos"]
    ruff = next(each for each in repositories if each["repo"].endswith("ruff-pre-commit"))
    assert f"\nruff=={ruff['rev'].removeprefix('v')}\n" in (ROOT / "requirements" / "dev.lock").read_text()


@pytest.mark.parametrize("name", ["bug", "proposal"])
def test_templates_ask_for_something(name):
    form = yaml_of(ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert form["name"]
    assert form["description"]
    assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_locks_pin_every_package_to_one_version():
    pins = {}
    for path in (ROOT / "requirements").glob("*.lock"):
        for line in path.read_text().splitlines():
            if line.startswith("-r "):
                assert (path.parent / line[3:]).is_file()
                continue
            name, version = line.split("==")
            assert pins.setdefault(name.lower().replace("_", "-"), version) == version, f"{path.name}: {line}"
    for extra in ("docs", "completion", "serve", "remote", "report"):
        for wanted in PROJECT["project"]["optional-dependencies"][extra]:
            assert re.match(r"[\w-]+", wanted)[0].lower() in pins, f"{extra}: {wanted}"


def test_the_package_is_all_below_src_and_its_data_is_listed():
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir() and not path.name.endswith(".egg-info")}
    assert folders == {"nashcast"}
    listed = PROJECT["tool"]["setuptools"]["package-data"]["nashcast"]
    package = ROOT / "src" / "nashcast"
    found = {path for pattern in listed for path in package.glob(pattern) if path.is_file()}
    skipped = {".py", ".pyc", ".nbi", ".nbc"}
    data = {path for path in package.rglob("*") if path.is_file() and path.suffix not in skipped}
    assert data <= found
