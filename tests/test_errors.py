"""Errors: out of a worker process as they were raised, and where the list says they are."""

import pickle
import re
from importlib import import_module

import pytest

from nashcast import errors


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidInput("x", "a list", "Pass an array."),
        errors.SingularGame(3, 1e17),
        errors.IllConditionedGame(2, float("inf")),
        errors.NashcastError("plain"),
    ],
)
def test_an_error_survives_pickling(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_the_list_of_errors_names_classes_that_are_there():
    named = re.findall(r"^((?:\w+\.)+)(\w+)  ", errors.__doc__ or "", flags=re.M)
    named += re.findall(r"^((?:\w+\.)+)(\w+) an ", errors.__doc__ or "", flags=re.M)
    assert len(named) == 7
    for place, name in named:
        found = getattr(import_module(f"nashcast.{place.rstrip('.')}"), name)
        assert issubclass(found, errors.NashcastError)
