"""asyncio: players on queues, a pipeline of asynchronous generators, gathered tasks. Coroutines and callbacks."""
import asyncio

ROUNDS = 30000


async def player(mine, other, rounds):
    for _ in range(rounds):
        ball = await mine.get()
        await other.put(ball + 1)


async def count(limit):
    for i in range(limit):
        if not i % 8:
            await asyncio.sleep(0)
        yield i


async def squares(source):
    async for value in source:
        yield value * value


async def total(limit):
    result = 0
    async for value in squares(count(limit)):
        result += value
    return result


async def session():
    left, right = asyncio.Queue(), asyncio.Queue()
    await left.put(0)
    await asyncio.gather(player(left, right, ROUNDS), player(right, left, ROUNDS), total(ROUNDS), total(ROUNDS))


def main():
    asyncio.run(session())
