"""``holdfast lab demo`` and ``holdfast lab node``."""
