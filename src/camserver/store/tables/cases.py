"""Cases: evidence that people keep together, beyond what retention would."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Text, UniqueConstraint

from camserver.store.tables.columns import flag, key, number, parent, table, word

cases = table(
    "cases",
    key("case_id"),
    word("case_uuid", 36, unique=True),
    parent("tenant_id", "tenants.tenant_id"),
    word("title", 255),
    word("state", 8),  # open, closed
    flag("hold"),  # nothing of it is deleted, closed or not
    # 0 while `case_items.holds` has not followed state and hold yet: a case may have many items.
    flag("settled", 1),
    number("created_by", nullable=True),
    number("created_at"),
    number("updated_at"),
    number("closed_at", nullable=True),
    Index("ix_cases_tenant_id_state", "tenant_id", "state", "case_id"),
)

# What a case keeps. While `holds` is 1, the frames and events it covers are of the class `case` and nothing deletes
# them. Id and time stay when the object itself is gone.
case_items = table(
    "case_items",
    key("item_id"),
    Column("case_id", BigInteger, ForeignKey("cases.case_id", ondelete="CASCADE"), nullable=False),
    number("tenant_id"),
    word("kind", 8),  # frame, event, clip
    number("object_id"),  # frame_id, event_id or clip_id
    word("object_uuid", 36),  # of the frame or event; of a clip, its event's
    number("happened_at"),
    number("camera_key"),
    flag("holds", 1),
    number("added_by", nullable=True),
    number("added_at"),
    UniqueConstraint("case_id", "kind", "object_id"),
    Index("ix_case_items_kind_object_id", "kind", "object_id"),
)

case_notes = table(
    "case_notes",
    key("note_id"),
    Column("case_id", BigInteger, ForeignKey("cases.case_id", ondelete="CASCADE"), nullable=False),
    number("tenant_id"),
    Column("body", Text, nullable=False),
    number("user_id", nullable=True),
    number("created_at"),
    Index("ix_case_notes_case_id", "case_id"),
)
