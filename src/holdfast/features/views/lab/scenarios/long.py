"""Views under mixed faults for a minute: what ``make soak`` runs by the thousand.  Spec: views 7."""

from __future__ import annotations

from holdfast.features.views.lab.scenarios.views import ViewScenario


class LongScenario(ViewScenario):
    """As many faults per second as in views/mixed."""

    name = "views/long"
    title = "Views under mixed faults for a minute"
    seconds = 60.0


SCENARIO = LongScenario()
