"""The exceptions nashcast raises.

NashcastError
├── InvalidInput        an argument has the wrong type, shape, range or a non-finite entry (a ValueError)
└── SingularGame        the look-back game has no unique equilibrium at some step (an ArithmeticError)
    └── IllConditionedGame   it has one, but rounding leaves too few of its digits

Sub-packages derive their own from NashcastError; those visible to users:

checks.ContractViolation   an encoder or agent breaks a contract
client.ServiceRefused      the live service answered, but not with success
service.journal.schema.JournalDamaged     the journal is inconsistent, and is not served
service.journal.schema.JournalUnwritable  the journal cannot be appended to; its content is unchanged
remote.wire.format.MalformedMessage       received bytes are no message, or not one that was asked for
remote.owner.joint_replica.NotAsPublished an event of the hub does not fit those before it
remote.masking.masks.MaskRefused          an agent refuses to mask: too few are present, or one was left out
"""


class NashcastError(Exception):
    """Any error nashcast raises on purpose. It can be pickled, so that worker processes can pass it on."""

    def __reduce__(self):
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[NashcastError], args: tuple, state: dict) -> NashcastError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InvalidInput(NashcastError, ValueError):
    """An argument is invalid; the message names it, what it was and what to pass instead."""

    def __init__(self, argument: str, got: str, remedy: str):
        super().__init__(f"{argument}: got {got}. {remedy}")
        self.argument = argument


class SingularGame(NashcastError, ArithmeticError):
    """The matrix that couples the agents is singular at one step of the game.

    step: index in the window.   condition: its condition number, after rows and columns were scaled.
    """

    _what = "the game has no unique equilibrium"

    def __init__(self, step: int, condition: float):
        super().__init__(
            f"{self._what}: at step {step} its coupling matrix has condition number {condition:.2g}. "
            "Raise the agents' ridge, shorten the look-back, or fall back to the greedy step."
        )
        self.step = step
        self.condition = condition


class IllConditionedGame(SingularGame):
    """The matrix can be inverted, but rounding leaves too few digits of the solution.

    condition: the factor by which rounding grows; NaN where numbers overflow.
    """

    _what = "the game's equilibrium cannot be computed to three digits"
