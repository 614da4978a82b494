"""The settings of counters."""

from typing import Annotated

from holdfast.kit.settings import Setting, Table


class CounterSettings(Table):
    """How many there may be: each costs a row per life that added to it, in a table of at most 20,480 rows."""

    __slots__ = ()

    counter_limit: Annotated[
        int, Setting("How many counters there may be before this agent begins no other, 1 to 1000.", "N", limits=(1, 1000))
    ] = 100

    @classmethod
    def given_variables(cls) -> tuple[str, ...]:
        return ("HOLDFAST_COUNTER",)
