"""A fake OpenID Connect provider that signs with real keys and can lie."""

from tests.fakes.oidc.server import FakeProvider, Lie

__all__ = ["FakeProvider", "Lie"]
