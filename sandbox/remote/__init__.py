"""Another machine over OpenSSH: its address, the connection, and what is put there to run."""
