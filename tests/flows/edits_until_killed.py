"""A program that records, edits, forgets, restores and erases in one session until it is killed: DATABASE SEED."""

import asyncio
import random
import sys

from kalito_mcp import KalitoError, NewMessage, Role, open_memory


async def act(database: str, seed: int) -> None:
    choice = random.Random(seed)
    async with open_memory(database) as memory:
        print("open", flush=True)
        while True:
            number = choice.randrange(10**9)
            said = (f"I decided that boat {number} goes to Oslo on May 3.", f"Boat {number} goes to Oslo.")
            roles = (Role.USER, Role.ASSISTANT)
            messages = [NewMessage(role, text) for role, text in zip(roles, said, strict=True)]
            recorded = await memory.record_messages("trip", messages)
            for _ in range(3):
                record_id = choice.choice(recorded.message_ids)
                try:
                    match choice.randrange(5):
                        case 0 | 1:
                            before = await memory.records.get(record_id)
                            changes = {"text": f"Boat {choice.randrange(10**9)} stays."}
                            await memory.update_memory(record_id, changes, expected_revision=before.revision)
                        case 2:
                            await memory.forget(record_id)
                        case 3:
                            await memory.restore(record_id)
                        case _:
                            await memory.purge([record_id])
                except KalitoError:
                    pass  # it is forgotten, or erased, or the other process was first


if __name__ == "__main__":
    asyncio.run(act(sys.argv[1], int(sys.argv[2])))
