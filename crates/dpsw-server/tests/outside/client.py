"""Uses the service by a client that was generated from its OpenAPI document: python client.py ADDRESS TOKEN"""

import sys
import time

from dpsw_client import AuthenticatedClient
from dpsw_client.api.events import ingest
from dpsw_client.api.questions import frequencies_of_many, top
from dpsw_client.api.sources import create_source, source
from dpsw_client.api.streams import create_stream, privacy
from dpsw_client.models import FrequenciesQuestion, Problem, Source, Stream

SHOP = {"name": "shop", "protects": "event", "epsilon": 2, "columns": {"product": "text"}}
PRODUCTS = {"name": "products", "item": "product", "window": 1000, "epsilon": 1.0, "keys": {"list": ["lamp", "chair", "rug"]}}
# Twenty events again and again, and what 1,000 of them count.
PATTERN = ["lamp"] * 14 + ["chair"] * 5 + ["rug"]
COUNTS = {"lamp": 700, "chair": 250, "rug": 50}
# A count has at most 80 draws of Laplace noise of scale 2: E exp(0.2 x) = 1 / (1 - 0.16) for each, so that they add up to 180 with
# probability below 1.2e6 exp(-36) < 1e-9. The edges of the window cut a pattern at most.
ERROR_MAX = 200


def ask(function, *args, **parameters):
    """The answer, which is no problem."""
    reply = function.sync_detailed(*args, **parameters)
    assert not isinstance(reply.parsed, Problem), reply.parsed
    assert reply.parsed is not None, reply
    return reply.parsed


def main(address, token):
    client = AuthenticatedClient(base_url=address, token=token)
    ask(create_source, client=client, body=Source.from_dict(SHOP))
    ask(create_stream, "shop", client=client, body=Stream.from_dict(PRODUCTS))
    events = [{"product": item} for item in 50 * PATTERN]
    for number in range(5):
        receipt = ask(ingest, "shop", client=client, body=events, batch_id=f"shop-1/{number}")
        assert (receipt.events, receipt.repeated) == (1000, False), receipt
    assert ask(ingest, "shop", client=client, body=events, batch_id="shop-1/4").repeated
    answer = settled(client)
    assert [row.item for row in answer.items] == list(COUNTS), answer
    for row in answer.items:
        assert abs(row.estimate - COUNTS[row.item]) < ERROR_MAX, row
        assert row.lower <= row.estimate <= row.upper, row
    asked = ask(frequencies_of_many, "products", client=client, body=FrequenciesQuestion(items=["rug", "lamp"]))
    assert [row.item for row in asked.items] == ["rug", "lamp"], asked
    assert ask(privacy, "products", client=client).epsilon == 1.0
    assert ask(source, "shop", client=client).ledger.epsilon_spent == 1.0
    missing = top.sync("nothing", client=client)
    assert isinstance(missing, Problem) and missing.code == "unknown-stream", missing
    print("the generated client made a source and a stream, sent events, and was answered")


def settled(client):
    """The top items when the window is full of what was sent; counting follows acknowledging by a moment."""
    for _ in range(300):
        answer = ask(top, "products", client=client, count=3, all_=True)
        if answer.window.end == 5000:
            return answer
        time.sleep(0.1)
    raise SystemExit(f"nothing was counted: {answer}")


if __name__ == "__main__":
    main(*sys.argv[1:])
