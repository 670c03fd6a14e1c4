"""A run's events as OpenTelemetry spans with the names of the GenAI conventions."""
