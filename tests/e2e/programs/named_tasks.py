"""asyncio tasks, some of which have names; prints each task's name with the function that it runs and how often that is resumed
and begun, by the program's own count: {"NAME (FUNCTION)": steps}."""
import asyncio
import json

steps = {}


class Pause:
    def __await__(self):
        yield


async def fetch(name, times):
    steps[name] = times + 1
    for _ in range(times):
        await Pause()


async def main():
    loop = asyncio.get_running_loop()
    first = asyncio.Task(fetch("first (fetch)", 3), loop=loop, name="first")
    odd = asyncio.create_task(fetch('odd "\u00e9" (fetch)', 5), name='odd "\u00e9"')
    nameless = asyncio.create_task(fetch("fetch", 2))
    await asyncio.gather(first, odd, nameless)
    for i in range(3):
        await asyncio.create_task(fetch("later-%d (fetch)" % i, i), name="later-%d" % i)


asyncio.run(main())
print(json.dumps(steps))
