"""The peers: a loop around litellm and LangChain's `abatch`, run by the Python that has them. Standard library and
the peer only: this file knows nothing of camserver."""

import asyncio
import json
import os
import resource
import sys
import time

NAMES = [f"category {number}" for number in range(10)]
SYSTEM = "You score a text.\nCategories:\n" + "\n".join(f"{one}. {name}" for one, name in enumerate(NAMES, 1))
AT_ONCE = 100


def asked(row: int) -> list[dict[str, object]]:
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": [{"type": "text", "text": f'Text: "somebody says number {row}"'}]},
    ]


async def litellm_loop(url: str, rows: int) -> int:
    import litellm  # type: ignore[import-not-found]  # it is elsewhere

    places = asyncio.Semaphore(AT_ONCE)

    async def one(row: int) -> bool:
        async with places:
            try:
                answer = await litellm.acompletion(
                    model="openai/m", api_base=url, api_key="none", messages=asked(row), num_retries=8, max_tokens=200
                )
                return len(json.loads(answer.choices[0].message.content)["scores"]) == len(NAMES)
            except Exception:
                return False

    found = await asyncio.gather(*(one(row) for row in range(rows)))
    return sum(found)


async def langchain_abatch(url: str, rows: int) -> int:
    from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]  # it is elsewhere

    model = ChatOpenAI(model="m", base_url=url, api_key="none", max_retries=8, max_tokens=200)
    said = await model.abatch(
        [asked(row) for row in range(rows)], config={"max_concurrency": AT_ONCE}, return_exceptions=True
    )
    good = 0
    for one in said:
        try:
            good += len(json.loads(one.content)["scores"]) == len(NAMES)
        except Exception:
            continue
    return good


def main() -> None:
    given = json.loads(sys.stdin.readline())
    work = {"litellm": litellm_loop, "langchain": langchain_abatch}[given["peer"]]
    began, cpu = time.perf_counter(), time.process_time()
    good = asyncio.run(work(given["url"], given["rows"]))
    print(
        json.dumps(
            {
                "good": good,
                "seconds": time.perf_counter() - began,
                "cpu_sec": time.process_time() - cpu,
                "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "pid": os.getpid(),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
