"""What the client needs of threads. ``client.loop`` has the same names for an event loop; everything above has one source (H213)."""
