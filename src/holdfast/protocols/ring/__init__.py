"""Ring membership: leases with the nearest neighbours, and a majority of arbitrators that decides about a failure."""
