"""Tenants, as those who run the server see and change them."""

from typing import Annotated

from pydantic import Field

from camserver.wire.api.people import DisplayName, Login, PasswordLink, SiteName
from camserver.wire.api.shapes import Answer, Asked, Language

TenantName = Annotated[str, Field(min_length=1, max_length=128)]
_Most = Annotated[int, Field(ge=0, le=1_000_000)] | None
_MostBytes = Annotated[int, Field(ge=0, le=10**15)] | None


class QuotasAsked(Asked):
    """Null: any number. What is left out stays, or is null for a new tenant."""

    cameras_running_max: _Most = None
    cameras_max: _Most = None
    people_max: _Most = None
    sites_max: _Most = None
    kept_bytes_max: _MostBytes = None


class TenantAsked(Asked):
    """`admin` is the login of its first administrator, who gets a link with which a password is chosen."""

    name: TenantName
    admin: Login
    admin_name: DisplayName = ""
    language: Language | None = None
    site: SiteName = "main"
    timezone: Annotated[str, Field(max_length=64)] = "UTC"
    quotas: QuotasAsked = QuotasAsked()


class TenantAdminAsked(Asked):
    """Whose link it is to be: an administrator's of the tenant, or a login that nobody has yet."""

    login: Login
    language: Language | None = None


class TenantChange(Asked):
    """What is left out stays. `disabled`: nobody of it signs in, its tokens do not work, its cameras stop."""

    name: TenantName | None = None
    disabled: bool | None = None
    quotas: QuotasAsked = QuotasAsked()


class TenantErased(Asked):
    """`confirm` repeats the tenant's name. `also_held`: cases on hold, too."""

    confirm: Annotated[str, Field(max_length=128)]
    also_held: bool = False


class QuotaUse(Answer):
    quota: str
    used: int
    most: int | None  # null: any number
    is_short: bool  # reached, or nearly so


class Tenant(Answer):
    """`is_home`: the one that the installation began with. `erasing_at`: since when it is being erased."""

    tenant_uuid: str
    name: str
    is_home: bool
    disabled: bool
    erasing_at: int | None
    erased_rows: int
    erased_objects: int
    created_at: int
    quotas: list[QuotaUse]


class TenantPage(Answer):
    tenants: list[Tenant]
    next_after: str | None  # asked again as `after`; null on the last page


class ExportPlan(Answer):
    """What an export will hold: rows by table, as they are now, in the order in which they are to be fetched."""

    tenant_uuid: str
    name: str
    tables: dict[str, int]


class ExportedObject(Answer):
    key: str
    bytes: int


class ExportPage(Answer):
    """Rows of a table without secrets, and the objects that they name. `next_after` null: these were the last."""

    rows: list[dict[str, object]]
    objects: list[ExportedObject]
    next_after: str | None


class TenantAdded(Answer):
    tenant: Tenant
    password_link: PasswordLink


class TenantAdminLink(Answer):
    """`made`: there was nobody with that login, so the administrator is new."""

    login: str
    made: bool
    password_link: PasswordLink
