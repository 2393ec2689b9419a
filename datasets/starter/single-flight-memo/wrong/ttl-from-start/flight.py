import threading


class ReentrantLoad(RuntimeError):
    """A load asked for the key that its own thread is loading."""


class _Outcome:
    def __init__(self, value=None, error=None, deadline=None):
        self.value = value
        self.error = error
        self.deadline = deadline

    def deliver(self):
        if self.error is not None:
            raise self.error
        return self.value


class _Load:
    """One call of the loader; `outcome` stays None if it is not to be shared."""

    def __init__(self):
        self.done = threading.Event()
        self.outcome = None
        self.waiting = 0


class Flight:
    def __init__(self, load, *, clock, ttl, error_ttl=0, remember=()):
        self._load = load
        self._clock = clock
        self._ttl = ttl
        self._error_ttl = error_ttl
        self._remember = tuple(remember)
        self._lock = threading.Lock()
        self._outcomes = {}
        self._loads = {}
        self._mine = threading.local()

    def _my_keys(self):
        if not hasattr(self._mine, "keys"):
            self._mine.keys = set()
        return self._mine.keys

    def get(self, key):
        while True:
            with self._lock:
                outcome = self._outcomes.get(key)
                if outcome is not None:
                    if self._clock() < outcome.deadline:
                        break
                    del self._outcomes[key]
                if key in self._my_keys():
                    raise ReentrantLoad(key)
                current = self._loads.get(key)
                leading = current is None
                if leading:
                    current = self._loads[key] = _Load()
                else:
                    current.waiting += 1
            if leading:
                return self._lead(key, current)
            try:
                current.done.wait()
            finally:
                with self._lock:
                    current.waiting -= 1
            if current.outcome is not None:
                outcome = current.outcome
                break
        return outcome.deliver()

    def _lead(self, key, current):
        keys = self._my_keys()
        keys.add(key)
        outcome = None
        started = self._clock()
        try:
            try:
                value = self._load(key)
            except self._remember as error:
                outcome = self._finished(started, self._error_ttl, error=error)
                raise
            outcome = self._finished(started, self._ttl, value=value)
            return value
        finally:
            keys.discard(key)
            with self._lock:
                if self._loads.get(key) is current:
                    del self._loads[key]
                    if outcome is not None and outcome.deadline is not None:
                        self._outcomes[key] = outcome
                current.outcome = outcome
            current.done.set()

    def _finished(self, started, lifetime, **result):
        return _Outcome(**result, deadline=started + lifetime if lifetime > 0 else None)

    def forget(self, key):
        with self._lock:
            self._outcomes.pop(key, None)
            self._loads.pop(key, None)

    def waiters(self, key):
        with self._lock:
            current = self._loads.get(key)
            return current.waiting if current is not None else 0
