"""Data streams, one series per file."""

from nashcast.datasets.base import Stream
from nashcast.datasets.catalog import Entry, catalogue, open_stream
from nashcast.datasets.files.library import add, fetch
from nashcast.datasets.recorded.air_quality import air_quality
from nashcast.datasets.recorded.bank_of_canada import bank_of_canada
from nashcast.datasets.recorded.ecb_rates import ecb_desks, ecb_rates
from nashcast.datasets.recorded.ett import ett
from nashcast.datasets.recorded.fresh_series import fresh
from nashcast.datasets.recorded.laser import laser
from nashcast.datasets.recorded.recordings import recording
from nashcast.datasets.recorded.river_series import airline_passengers, approval, sp500, water_flow
from nashcast.datasets.recorded.statsmodels_series import co2, el_nino, sunspots
from nashcast.datasets.recorded.tmy3 import tmy3
from nashcast.datasets.simulated.brownian import brownian
from nashcast.datasets.simulated.concept_shift import concept_shift
from nashcast.datasets.simulated.four_owners import four_owners
from nashcast.datasets.simulated.logistic_map import logistic_map
from nashcast.datasets.simulated.periodic import periodic
from nashcast.datasets.simulated.simulated_owners import simulated_owners
from nashcast.datasets.table import table

__all__ = [
    "Entry",
    "Stream",
    "add",
    "air_quality",
    "airline_passengers",
    "approval",
    "bank_of_canada",
    "brownian",
    "catalogue",
    "co2",
    "concept_shift",
    "ecb_desks",
    "ecb_rates",
    "el_nino",
    "ett",
    "fetch",
    "four_owners",
    "fresh",
    "laser",
    "logistic_map",
    "open_stream",
    "periodic",
    "recording",
    "simulated_owners",
    "sp500",
    "sunspots",
    "table",
    "tmy3",
    "water_flow",
]
