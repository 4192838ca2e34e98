"""What the language model was asked today, and how much of the day's budget that took."""

from camserver.domain import reviews
from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.store import llm_reviews
from camserver.wire import api

routes = Routes()


@routes.get("/api/llm/budget", Permission.MANAGE_DELIVERIES)
async def get_llm_budget(call: TheCall) -> api.LlmBudget:
    """The day's budget for questions to the language model; days are in UTC."""
    chosen = call.web.settings.llm
    day = reviews.day_of(call.now_ms)
    spent = await call.web.store.read(llm_reviews.spent_on, call.principal.tenant_id, day)
    return api.LlmBudget(
        is_configured=chosen.is_configured,
        provider=chosen.provider,
        model=chosen.model,
        day=day,
        calls=spent.calls,
        calls_max=chosen.daily_calls,
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost_micro=spent.cost_micro,
        cost_micro_max=round(chosen.daily_cost_usd * 1_000_000) or None,
    )
