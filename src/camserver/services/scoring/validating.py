"""ValidationPool: what a model said becomes scores, or a reason to ask again.

Checking an answer takes about ten microseconds, so it is done where the answer arrives; a check that takes long is
given an executor here and nowhere else.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from camserver.domain.scoring_answers import Read, read_scores
from camserver.domain.sheet_layout import Category

Reader = Callable[[str, Sequence[Category]], Read]


class ValidationPool:
    def __init__(self, read: Reader = read_scores, executor: Executor | None = None) -> None:
        self._read = read
        self._executor = executor

    def check_here(self, text: str, categories: Sequence[Category]) -> Read | None:
        """The same at once; None where a check takes long."""
        return self._read(text, categories) if self._executor is None else None

    async def check(self, text: str, categories: Sequence[Category]) -> Read:
        if self._executor is None:
            return self._read(text, categories)
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._read, text, categories)
