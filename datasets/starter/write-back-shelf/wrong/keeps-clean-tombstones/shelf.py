from collections import OrderedDict

_TOMBSTONE = object()


class Shelf:
    """Write-back cache in front of a store with load(key) and apply(changes)."""

    def __init__(self, store, capacity, batch=3):
        if capacity < 1 or batch < 1:
            raise ValueError("capacity and batch must be at least 1")
        self._store = store
        self._capacity = capacity
        self._batch = batch
        self._entries = OrderedDict()  # key -> value or _TOMBSTONE, least recently used first
        self._dirty = {}  # used as an ordered set

    def __len__(self):
        return len(self._entries)

    @property
    def dirty(self):
        return list(self._dirty)

    def get(self, key):
        if key not in self._entries:
            self._hold(key, self._store.load(key))
        value = self._entries[key]
        if value is _TOMBSTONE:
            raise KeyError(key)
        self._entries.move_to_end(key)
        return value

    def put(self, key, value):
        if key in self._entries and key not in self._dirty:
            old = self._entries[key]
            if old is not _TOMBSTONE and old == value:
                self._entries.move_to_end(key)
                return
        self._hold(key, value)
        self._dirty.setdefault(key)

    def delete(self, key):
        if key not in self._entries:
            self._store.load(key)
        elif self._entries[key] is _TOMBSTONE:
            raise KeyError(key)
        self._hold(key, _TOMBSTONE)
        self._dirty.setdefault(key)

    def flush(self):
        keys = list(self._dirty)
        for start in range(0, len(keys), self._batch):
            self._write(keys[start : start + self._batch])

    def _hold(self, key, value):
        if key not in self._entries and len(self._entries) >= self._capacity:
            self._evict()
        self._entries[key] = value
        self._entries.move_to_end(key)

    def _evict(self):
        victim = next(iter(self._entries))
        if victim in self._dirty:
            others = [key for key in self._dirty if key != victim]
            self._write([victim, *others[: self._batch - 1]])
        self._entries.pop(victim, None)

    def _write(self, keys):
        self._store.apply([self._change(key) for key in keys])
        for key in keys:
            del self._dirty[key]

    def _change(self, key):
        value = self._entries[key]
        return ("del", key, None) if value is _TOMBSTONE else ("set", key, value)
