"""The judge on another machine: what is said over the connection, and both of its ends."""
