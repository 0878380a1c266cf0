"""Files in deploy/: rules and dashboard name what is exported; container and unit give no more than is needed."""

import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from support.service.served import Served, series

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text())
DASHBOARD = json.loads((DEPLOY / "grafana" / "nashcast.json").read_text())
# A metric, and its matchers: values may hold braces.
SELECTOR = re.compile(r'(nashcast_\w+)(?:\{((?:\w+\s*[=~!]+\s*"[^"]*",?\s*)*)\})?')


def expressions() -> dict[str, str]:
    found = {rule["alert"]: rule["expr"] for group in RULES["groups"] for rule in group["rules"]}
    for panel in DASHBOARD["panels"]:
        found |= {f"{panel['title']}, {target['refId']}": target["expr"] for target in panel["targets"]}
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Kind of each metric, and the labels and values of its samples, after a service has done everything once."""
    folder = tmp_path_factory.mktemp("deploy")
    hooks = folder / "hooks.toml"
    hooks.write_text('[[webhook]]\nurl = "http://127.0.0.1:9/"\n')
    with Served(folder, "--webhooks", str(hooks)) as served, served.client() as client:
        client.observe_many([(v, v) for v in series(40)], first_step=0)
        client.forecast()
        with urlopen(f"{served.url}/metrics") as answer:
            text = answer.read().decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.M))
    labels: dict[str, dict[str, set[str]]] = {}
    for name, given in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, flags=re.M):
        known = labels.setdefault(name, {})
        for label, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', given):
            known.setdefault(label, set()).add(value)
    return kinds, labels


@pytest.mark.parametrize("name", expressions())
def test_every_metric_and_label_is_exported(exported, name):
    kinds, labels = exported
    expression = expressions()[name]
    found = SELECTOR.findall(expression)
    assert found
    assert expression.count("(") == expression.count(")")
    for metric, matchers in found:
        family = metric if metric in kinds else re.sub(r"_(bucket|sum|count)$", "", metric)
        assert family in kinds, metric
        counted = re.search(rf"(rate|increase)\({metric}", expression) is not None
        assert counted == (kinds[family] in ("counter", "histogram")), "a counter is asked for its rate, a gauge is not"
        if metric == "nashcast_certificate_days":
            continue  # only where there is a hub
        for label, how, value in re.findall(r'(\w+)\s*([=~!]+)\s*"([^"]*)"', matchers):
            assert label in labels[metric], (metric, label)
            if how == "=":
                assert value in labels[metric][label]
            elif "$" not in value:
                assert set(value.split("|")) <= labels[metric][label]
    grouped = {label.strip() for part in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for label in part.split(",")}
    metric = found[0][0]
    assert grouped - {"instance"} <= set(labels.get(metric, {})), grouped


def test_rules_say_what_is_wrong_with_labels_that_are_there():
    names = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]
    assert len(set(names)) == len(names)
    for group in RULES["groups"]:
        for rule in group["rules"]:
            assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
            assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
            assert rule["labels"]["severity"] in ("warn", "page")
            assert rule["annotations"]["summary"].endswith(".")


def test_the_dashboard_fits_its_grid_and_names_its_source():
    places = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not places & cells, panel["title"]
        places |= cells
        assert panel["datasource"]["uid"] == "${source}"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert {each["name"] for each in DASHBOARD["templating"]["list"]} == {"source", "stream"}


def instructions() -> list[tuple[str, str]]:
    """Of the container file, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Containerfile").read_text(), flags=re.M)
    return [tuple(line.split(maxsplit=1)) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]


def last(name: str) -> str:
    return [words for each, words in instructions() if each == name][-1]


def test_the_container_runs_as_nobody_special_and_cannot_change_its_code():
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
             "ENTRYPOINT", "CMD"}  # fmt: skip
    names = [name for name, _ in instructions()]
    assert set(names) <= known  # no ADD, no SHELL, no MAINTAINER
    bases = [words.split()[0] for name, words in instructions() if name == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+-slim", base) for base in bases)  # a version, never the latest
    user, group = last("USER").split(":")
    assert int(user) >= 10_000
    assert int(group) >= 10_000
    after = names[len(names) - names[::-1].index("USER") :]
    assert not {"RUN", "COPY"} & set(after), "what is made after USER would be that user's"
    copies = [words for name, words in instructions() if name == "COPY"]
    assert not any("--chown" in words or "--chmod" in words for words in copies)
    assert int(last("EXPOSE")) > 1024
    for name in ("ENTRYPOINT", "CMD"):
        assert isinstance(json.loads(last(name)), list)  # no shell in between, so that signals arrive
    assert json.loads(last("HEALTHCHECK").partition("CMD ")[2])[0] == "python"
    assert last("STOPSIGNAL") == "SIGTERM"
    runs = " ".join(words for name, words in instructions() if name == "RUN")
    assert "--no-cache-dir" in runs
    assert not re.search(r"curl|wget|sudo|chmod|apt", runs)


def test_the_container_is_built_from_files_that_are_there_and_no_others():
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name, words in instructions():
        if name != "COPY" or words.startswith("--from"):
            continue
        *sources, _ = words.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, each) for each in allowed), source
    used = {source for name, words in instructions() if name == "COPY" for source in words.split()}
    assert set(allowed) <= used


def test_the_container_is_run_read_only_without_capabilities_and_with_limits():
    head = (DEPLOY / "Containerfile").read_text().partition("FROM")[0]
    for option in ("--read-only", "--tmpfs", "--cap-drop all", "no-new-privileges", "--memory", "--cpus",
                   "--pids-limit", "--ulimit nofile=", "-p 127.0.0.1:"):  # fmt: skip
        assert option in head, option
    stop = int(re.search(r"--stop-timeout (\d+)", head)[1])
    assert stop > 20  # the service ends within 20 seconds


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "nashcast.service").read_text().splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_the_unit_gives_no_more_than_is_needed():
    settings = unit()
    wanted = {
        "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes",
        "PrivateDevices": "yes", "PrivateUsers": "yes", "ProtectKernelTunables": "yes", "ProtectKernelModules": "yes",
        "ProtectKernelLogs": "yes", "ProtectControlGroups": "yes", "ProtectClock": "yes", "ProtectHostname": "yes",
        "RestrictNamespaces": "yes", "RestrictSUIDSGID": "yes", "LockPersonality": "yes", "CapabilityBoundingSet": "",
        "UMask": "0077", "StateDirectoryMode": "0700", "LimitCORE": "0",
    }  # fmt: skip
    assert {name: settings[name][-1] for name in wanted} == wanted
    assert settings["User"][0] not in ("root", "0", "")
    for limit in ("MemoryMax", "TasksMax", "LimitNOFILE", "TimeoutStopSec"):
        assert settings[limit], limit
    assert "@system-service" in settings["SystemCallFilter"]
    # All it writes is below its state folder.
    journal = re.search(r"--journal (\S+)", settings["ExecStart"][0])[1]
    assert journal.startswith(f"/var/lib/{settings['StateDirectory'][0]}/")
    assert "ReadWritePaths" not in settings


def test_systemd_takes_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze on this machine; the test before checks the settings")
    copy = tmp_path / "nashcast.service"
    copy.write_text((DEPLOY / "nashcast.service").read_text().replace("/opt/nashcast/bin/nashcast", sys.executable))
    done = subprocess.run([program, "verify", str(copy)], capture_output=True, text=True)
    assert "nashcast.service" not in done.stderr, done.stderr
