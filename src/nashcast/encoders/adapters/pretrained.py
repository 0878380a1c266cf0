"""Loading pre-trained models without progress bars and log lines."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from nashcast.extras import needed


@contextmanager
def quiet_transformers(extra: str = "chronos") -> Iterator[None]:
    """Suppress the output of transformers while a model loads; its settings are restored afterwards."""
    log = needed("transformers.utils.logging", "transformers", extra, "encoder")
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.CRITICAL)
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()
