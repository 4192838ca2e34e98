import json
import re

from camserver.domain.change_kinds import CHANGE_KINDS
from camserver.services.web.openapi import FILE, document_text
from tests.rig.processes import REPOSITORY
from tests.services.web.rig import RunningWeb


def test_the_description_in_the_repository_is_of_this_api() -> None:
    written = (REPOSITORY / FILE).read_text(encoding="utf-8")
    assert written == document_text(), f"make {FILE} anew: .venv/bin/python -m camserver.services.web.openapi"


def test_the_kinds_of_changes_are_named_in_the_document_and_in_the_docs() -> None:
    schemas = json.loads(document_text())["components"]["schemas"]
    assert set(schemas["Change"]["properties"]["kind"]["enum"]) == CHANGE_KINDS
    section = (REPOSITORY / "docs/ref/api.md").read_text().partition("## The change feed")[2].partition("\n## ")[0]
    table = section.partition("| kind |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE)) == CHANGE_KINDS


def test_moments_are_numbers_but_where_the_page_says_otherwise() -> None:
    schemas = json.loads(document_text())["components"]["schemas"]
    texts = {
        (schema, name)
        for schema, described in schemas.items()
        for name, one in described.get("properties", {}).items()
        if name.endswith("_at") and "string" in [way.get("type") for way in one.get("anyOf", [one])]
    }
    assert texts == {("Viewing", "expires_at"), ("StreamStarted", "expires_at")}
    told = (REPOSITORY / "docs/ref/api.md").read_text().partition("- Times are ")[2].partition("Errors are")[0]
    for named in ("expires_at", "/api/modal/lease", "/v1/streams/start"):
        assert f"`{named}`" in told


def test_the_feeds_messages_are_described() -> None:
    document = json.loads(document_text())
    schemas = document["components"]["schemas"]
    names = ("FeedChanges", "FeedResync", "FeedSystem", "FeedPing")
    assert [schemas[name]["properties"]["type"]["const"] for name in names] == ["changes", "resync", "system", "ping"]
    assert set(schemas["FeedChanges"]["required"]) == {"type", "changes", "last_seq", "live"}
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
    assert all("default" in operation["responses"] for operation in operations)


async def test_the_server_gives_out_the_same(web: RunningWeb) -> None:
    owner = await web.owner()
    served = (await owner.get("/api/openapi.json")).body
    assert served == json.loads(document_text())
