"""Election among all members of a group that gossips: a leader also where no majority is, named by a term and chosen by rank."""

from __future__ import annotations

KIND = "elect"  # of its grants
