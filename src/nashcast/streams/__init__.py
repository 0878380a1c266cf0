"""Where observations come from; one series to a file."""

from nashcast.streams.air_quality import air_quality
from nashcast.streams.bank_of_canada import bank_of_canada
from nashcast.streams.base import Stream
from nashcast.streams.brownian import brownian
from nashcast.streams.catalog import Entry, catalogue, open_stream
from nashcast.streams.concept_shift import concept_shift
from nashcast.streams.ecb_rates import ecb_desks, ecb_rates
from nashcast.streams.ett import ett
from nashcast.streams.files import add, fetch
from nashcast.streams.four_owners import four_owners
from nashcast.streams.laser import laser
from nashcast.streams.logistic_map import logistic_map
from nashcast.streams.periodic import periodic
from nashcast.streams.recordings import recording
from nashcast.streams.river_series import airline_passengers, approval, sp500, water_flow
from nashcast.streams.simulated_owners import simulated_owners
from nashcast.streams.statsmodels_series import co2, el_nino, sunspots
from nashcast.streams.table import table
from nashcast.streams.tmy3 import tmy3

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
