"""A mail server that takes mails, puts them off, refuses or breaks off, on demand."""

from tests.fakes.mail.server import FakeMail, Received

__all__ = ["FakeMail", "Received"]
