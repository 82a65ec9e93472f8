"""The ecology study: desert rodents, a community that shifts."""
