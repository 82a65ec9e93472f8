"""What other programs look up by entry point and import by themselves; nothing here is public."""
