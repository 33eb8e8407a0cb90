"""Locks that all threads and processes of a machine share. A lock has a number: the byte that it locks in a file."""

import fcntl
import logging
import os
import threading

from payments.runtime.directory import prepare_runtime_directory

PRIVATE = 0o600

logger = logging.getLogger(__name__)


class ByteLocks:
    """Locks on the bytes of an empty file in RUNTIME_DIRECTORY, which the first lock creates.

    The kernel keeps a byte locked for a process, not for a thread, so `held` excludes the other threads. It releases
    the bytes of a process that ends. If the file cannot be used, the locks exclude only threads of the same process.
    """

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name
        self.lock = threading.Lock()
        self.held: set[int] = set()
        # Stays open: closing any descriptor of the file would release all locks of the process.
        self.descriptor: int | None = None
        self.has_warned = False

    def acquire(self, byte: int) -> bool:
        """Lock a byte without waiting. Return False if any thread has locked it, this thread included."""
        with self.lock:
            if byte in self.held or self.is_locked_elsewhere(byte):
                return False
            self.held.add(byte)
            return True

    def release(self, byte: int) -> None:
        with self.lock:
            self.held.remove(byte)
            if self.descriptor is not None:
                fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, byte)

    def is_locked_elsewhere(self, byte: int) -> bool:
        """Return whether another process has locked the byte. If not, lock it for this process."""
        try:
            fcntl.lockf(self.open(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except BlockingIOError:
            return True
        except OSError as error:
            self.warn(error)
        return False

    def open(self) -> int:
        """Return the file's descriptor.

        :raises OSError: if RUNTIME_DIRECTORY or the file cannot be used
        """
        if self.descriptor is None:
            path = prepare_runtime_directory() / self.file_name
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
        return self.descriptor

    def warn(self, error: OSError) -> None:
        """Log the first error: the next ones have the same cause."""
        if not self.has_warned:
            self.has_warned = True
            logger.warning("The workers do not share %s: %s", self.file_name, error)
