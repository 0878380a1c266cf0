"""Files in deploy/: rules and dashboard name metrics and labels that the service exports."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from served import Served, series

DEPLOY = Path(__file__).parents[2] / "deploy"
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
