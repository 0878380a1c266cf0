"""One step of an encoder that sees the present input alone."""

from nashcast.encoders.base import input_context


def encode_step(built, x, state, noise):
    """Its features, and the state after the step."""
    context = input_context(x, noise, state)
    state = built.advance(context)
    return built.encode(context._replace(state=state)), state
