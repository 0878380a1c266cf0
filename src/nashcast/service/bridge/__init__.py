"""Observations from NATS subjects and MQTT topics into a service, and forecasts from it to them."""
