"""From settings to the place of pictures: a folder, or a bucket when one is named."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from camserver.base.errors import BadSettings
from camserver.objects.interface import Objects
from camserver.objects.local import LocalObjects

if TYPE_CHECKING:
    from camserver.config.sections import ObjectSettings
    from camserver.objects.s3 import Bucket


async def open_objects(settings: "ObjectSettings") -> Objects:
    """A bucket is written to once: what refuses us is said at start, not with the first picture."""
    if settings.url is None:
        return LocalObjects(settings.dir)
    # Only where it is used: the library behind it is large.
    from camserver.objects.s3 import S3Objects

    objects = S3Objects(bucket_of(settings, settings.url))
    await objects.check()
    return objects


def bucket_of(settings: "ObjectSettings", url: str) -> "Bucket":
    from camserver.objects.s3 import Bucket

    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    is_plain = not parts.query and not parts.fragment and "@" not in parts.netloc and ":" not in parts.netloc
    if parts.scheme != "s3" or not parts.netloc or not is_plain:
        raise BadSettings(f"objects.url must be like s3://bucket or s3://bucket/prefix, not {url}")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise BadSettings(f"objects.url holds a prefix that is no path of a bucket: {prefix}")
    if (settings.access_key_id is None) != (settings.secret_access_key is None):
        raise BadSettings("objects.access_key_id and objects.secret_access_key belong together; set both or none")
    return Bucket(
        name=parts.netloc,
        prefix=prefix,
        endpoint=settings.endpoint,
        region=settings.region,
        access_key_id=settings.access_key_id,
        secret_access_key=settings.secret_access_key,
        path_style=settings.path_style,
    )
