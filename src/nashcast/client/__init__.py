"""A client of `nashcast serve` that needs only the standard library."""

from nashcast.client.answers import Ahead, Bound, LiveForecast, ServiceRefused
from nashcast.client.service_client import Client
from nashcast.client.stream_client import StreamClient

__all__ = ["Ahead", "Bound", "Client", "LiveForecast", "ServiceRefused", "StreamClient"]
