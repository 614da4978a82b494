"""What exists to reproduce or refute a paper; nothing that ships imports it."""
