"""``holdfast owner`` and ``holdfast lab ring``."""
