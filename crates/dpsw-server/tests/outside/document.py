"""Checks docs/openapi.json from outside, against a running service.

schemathesis asks what the document allows and what it forbids, and compares every reply with it; then a client that is generated
from the document is used as a person would (client.py).

    python document.py path/to/dpsw-server path/to/openapi.json
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
TOOLS = pathlib.Path(sys.executable).parent
# How long schemathesis asks, and where it starts: the same questions each time, unless someone wants others.
SECONDS = os.environ.get("DPSW_OUTSIDE_SECONDS", "60")
SEED = os.environ.get("DPSW_OUTSIDE_SEED", "1")

# What schemathesis asks for, what it deletes, and room for what it makes.
SETTINGS = """
address = "127.0.0.1:0"
data = "data"
prometheus = ["pages"]
[[source]]
name = "web"
protects = "event"
epsilon = 10.0
delta = 1e-6
columns = { page = "text" }
[[source.stream]]
name = "pages"
item = "page"
window = 1000
epsilon = 1.0
keys = { list = ["/", "/cart"] }
[[source.stream]]
name = "spare"
item = "page"
window = 1000
epsilon = 1.0
[[source]]
name = "empty"
protects = "event"
epsilon = 1.0
columns = { page = "text" }
"""


@contextlib.contextmanager
def service(program, folder):
    """A running service: where it listens, and a token. It ends with its standard input, so whatever happens here."""
    settings = folder / "dpsw.toml"
    settings.write_text(SETTINGS)
    command = [program, "--config", settings, "--end-with-stdin"]
    with open(folder / "log", "w") as log:
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        said = next(line for line in running.stdout if "listens on " in line)
        yield said.split("listens on ")[1].strip(), (folder / "data" / "admin.token").read_text().strip()
    finally:
        running.stdin.close()
        if running.wait() != 0:
            raise SystemExit(f"the service failed: {(folder / 'log').read_text()[-2000:]}")


def schemathesis(document, address, token, folder):
    config = HERE / "schemathesis.toml"
    environment = os.environ | {"DPSW_TOKEN": token, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)}
    command = [TOOLS / "schemathesis", "--config-file", config, "run", document, "--url", address]
    subprocess.run([*command, "--max-time", SECONDS, "--seed", SEED], env=environment, cwd=folder, check=True)


def generated_client(document, address, token, folder):
    simple, config = folder / "openapi.json", folder / "generator.json"
    simple.write_text(json.dumps(with_one_body(json.loads(document.read_text()))))
    config.write_text(json.dumps({"content_type_overrides": {"application/vnd.dpsw.view": "application/octet-stream"}, "post_hooks": []}))
    options = ["--path", simple, "--config", config, "--meta", "none", "--output-path", folder / "dpsw_client"]
    subprocess.run([TOOLS / "openapi-python-client", "generate", "--fail-on-warning", *options], check=True)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, HERE / "client.py", address, token], env=environment, check=True)


def with_one_body(document):
    """The generator writes code that cannot run where a request may have several types of bodies: JSON is enough here."""
    for operation in (operation for path in document["paths"].values() for operation in path.values()):
        content = operation.get("requestBody", {}).get("content", {})
        for kind in [kind for kind in content if "application/json" in content and kind != "application/json"]:
            del content[kind]
    return document


def main(program, document):
    program, document = pathlib.Path(program).resolve(), pathlib.Path(document).resolve()
    for check in [generated_client, schemathesis]:
        with tempfile.TemporaryDirectory() as folder, service(program, pathlib.Path(folder)) as (address, token):
            check(document, address, token, pathlib.Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
