"""AMD GPUs of this machine: which there are, and a worker process that runs launches on one of them."""

from .discovery import RocmDevice, devices, find_runtime

__all__ = ["RocmDevice", "devices", "find_runtime"]
