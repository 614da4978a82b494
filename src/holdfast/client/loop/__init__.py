"""What the client needs of an event loop. ``client.threads`` has the same names for threads; everything above has one source (H213)."""
