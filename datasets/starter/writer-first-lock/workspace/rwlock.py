"""A reader-writer lock for threads that puts writers first."""


class LockUsageError(RuntimeError):
    """The calling thread may not do this with the lock in its present state."""


class WriterFirstLock:
    def acquire_read(self, timeout: float | None = None) -> bool:
        raise NotImplementedError

    def release_read(self) -> None:
        raise NotImplementedError

    def acquire_write(self, timeout: float | None = None) -> bool:
        raise NotImplementedError

    def release_write(self) -> None:
        raise NotImplementedError

    def downgrade(self) -> None:
        raise NotImplementedError

    def reading(self):
        raise NotImplementedError

    def writing(self):
        raise NotImplementedError

    @property
    def readers(self) -> int:
        raise NotImplementedError

    @property
    def writing_now(self) -> bool:
        raise NotImplementedError

    @property
    def waiting_writers(self) -> int:
        raise NotImplementedError
