import json

from camserver.services.web.openapi import FILE, document_text
from tests.rig.processes import REPOSITORY
from tests.services.web.rig import RunningWeb


def test_the_description_in_the_repository_is_of_this_api() -> None:
    written = (REPOSITORY / FILE).read_text(encoding="utf-8")
    assert written == document_text(), f"make {FILE} anew: .venv/bin/python -m camserver.services.web.openapi"


def test_the_feeds_messages_are_described() -> None:
    document = json.loads(document_text())
    schemas = document["components"]["schemas"]
    kinds = {schemas[name]["properties"]["type"]["const"] for name in ("FeedChanges", "FeedResync", "FeedPing")}
    assert kinds == {"changes", "resync", "ping"}
    assert set(schemas["FeedChanges"]["required"]) == {"type", "changes", "last_seq", "live"}
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    assert all("default" in operation["responses"] for operation in operations)


async def test_the_server_gives_out_the_same(web: RunningWeb) -> None:
    owner = await web.owner()
    served = (await owner.get("/api/openapi.json")).body
    assert served == json.loads(document_text())
