"""Settings of the property tests: no limit on an example's time, because machines differ."""

from hypothesis import HealthCheck, settings

settings.register_profile("camserver", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("camserver")
