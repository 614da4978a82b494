"""The elections and baselines of the detection paper: agreed views, Omega, heartbeats to every peer."""
