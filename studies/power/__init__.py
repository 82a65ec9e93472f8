"""The simulation study: how often the test rejects."""
