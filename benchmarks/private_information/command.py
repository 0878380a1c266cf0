"""`nashcast evaluate --private`: the private-information benchmark from the command line."""

from __future__ import annotations

import argparse

from nashcast.cli.evaluate import plain_rows
from nashcast.cli.shared.progress import Progress
from nashcast.datasets.owners import check_owners
from nashcast.evaluation.declared import check_streams
from nashcast.evaluation.evaluate import evaluate
from private_information import streams as declared
from private_information.methods import contest
from private_information.ratios import PRIVATE_KEYS, private_rows, ratios, summary
from private_information.study import study_of


def evaluated(chosen: argparse.Namespace, methods, seeds, progress: Progress):
    """The study, and what is printed as JSON."""
    named = [declared.private_named(text) for text in chosen.stream] or declared.private_streams()
    streams, missing = check_streams(list(dict.fromkeys(named)))
    for each in streams:
        check_owners(each.open())
    outcomes = evaluate(
        streams, methods, seeds, chosen.output, contest=contest(chosen.owner_agents), jobs=chosen.jobs,
        progress=progress,
    )  # fmt: skip
    progress.clear()
    rows = private_rows(outcomes)
    found = {"agents": chosen.owner_agents, "rows": plain_rows(rows, PRIVATE_KEYS), "streams": ratios(rows)}
    return study_of(rows, streams, chosen.owner_agents, seeds, missing), {
        **found, "summary": summary(rows), "not_run": missing,
    }  # fmt: skip
