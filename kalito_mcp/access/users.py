"""Names of users who are let in. Reads only."""

from kalito_mcp.domain.spaces import checked_user
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.store import Store
from kalito_mcp.text.look_alikes import alike


async def check_user(store: Store, name: str) -> None:
    """Refuse a name that nobody should get.

    Raises:
        InvalidInput: it is not acceptable as a name, it is a space, or it is new and looks like somebody else's.
    """
    checked_user(name, "owner")
    other = alike(name, await store.read(lambda view: view.people.names()))
    if other is not None:
        raise InvalidInput(f"there is {other!r} already; write the name the same way, or take another one")
