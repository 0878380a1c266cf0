"""The bridge: observations from NATS subjects and MQTT topics to a service, and its forecasts back to them."""
