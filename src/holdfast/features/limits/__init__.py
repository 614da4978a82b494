"""Rate limits: one limit for many processes, split by demand, without a coordinator."""
