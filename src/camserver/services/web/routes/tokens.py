"""Tokens of programs."""

import secrets
from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query

from camserver.base.errors import BadInput
from camserver.domain.people import Permission
from camserver.services.web.access import TOKEN_PREFIX, Gate, token_hash
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import people, tokens
from camserver.store.tokens import NewToken, TokenSummary
from camserver.wire import api

routes = Routes()

DAY_MS = 86_400_000


@routes.get("/api/tokens", Gate.SIGNED_IN)
async def list_tokens(
    call: TheCall,
    user: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
    after: Annotated[str, Query(max_length=64, description="The token that the page before ended with.")] = "",
    limit: Annotated[int, Query(ge=1, le=tokens.PAGE_MAX)] = 100,
) -> api.TokenPage:
    """Tokens that work, oldest first: one's own, or, for those who manage people, everybody's."""
    found = await call.store.read(tokens.page, user, after, limit, call.now_ms)
    return api.TokenPage(
        tokens=[_shown(one) for one in found], next_after=found[-1].token_uuid if len(found) == limit else None
    )


@routes.post("/api/tokens", Gate.SIGNED_IN, repeat=Repeat.SECRET, status_code=201)
async def add_token(call: TheCall, asked: api.TokenAsked) -> api.TokenAdded:
    """A token for a program. Its secret is in this answer and nowhere else."""
    user = asked.user
    if user is None:
        if call.principal.user_id is None:
            raise BadInput(
                "the local admin has no account; name the user whom the token stands for", reason="no_owner"
            )
        user = (await call.store.read(people.oneself)).user_uuid
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    new = NewToken(
        user=user,
        name=asked.name,
        scopes=frozenset(Permission(one) for one in asked.scopes),
        expires_at=call.now_ms + asked.days * DAY_MS,
        token_hash=token_hash(secret),
    )
    added = await call.store.write(tokens.add, new, call.address, call.now_ms)
    return api.TokenAdded(token=_shown(added), secret=secret)


@routes.delete("/api/tokens/{token_uuid}", Gate.SIGNED_IN, status_code=204, repeat=Repeat.ANSWER)
async def revoke_token(call: TheCall, token_uuid: Annotated[str, Path(pattern=api.UUID_PATTERN)]) -> None:
    """Ends a token at once."""
    await call.store.write(tokens.revoke, token_uuid, call.address, call.now_ms)


def _shown(token: TokenSummary) -> api.Token:
    return api.Token.model_validate({**asdict(token), "scopes": list(token.scopes)})
