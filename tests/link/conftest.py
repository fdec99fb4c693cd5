"""For tests with a shared store: the fixtures of the store's own tests."""

from tests.store.conftest import own_etcd, prefix

__all__ = ["own_etcd", "prefix"]
