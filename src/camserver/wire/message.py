"""What all messages between processes have in common: how they are checked, and the values that stand in many.

Apart from the messages themselves: making the models of the workers' protocol takes memory that a process which never
speaks it does without.
"""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

# A message about a wrong message must not grow with it.
PROBLEM_MAX_CHARS: Final = 500

CameraId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
WorkerId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
EpochMs = Annotated[int, Field(ge=0, lt=2**63)]  # UTC epoch milliseconds
Number = Annotated[float, Field(allow_inf_nan=False)]


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def problems(error: ValidationError) -> str:
    """What is wrong, without what was sent: that may hold a password."""
    found = [
        f"{'.'.join(map(str, problem['loc'])) or 'message'}: {problem['msg']}"
        for problem in error.errors(include_input=False, include_url=False, include_context=False)
    ]
    return "; ".join(found)[:PROBLEM_MAX_CHARS]
