"""A real Spark cluster of one master and two workers, a real Kafka, and drivers as processes that can be killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
JOB = Path(__file__).with_name("job.py")
CONNECTOR = Path(os.environ.get("DPSW_SPARK_JARS", ROOT / "target/spark/jars"))
KAFKA = Path(os.environ.get("DPSW_KAFKA_JARS", ROOT / "target/kafka/jars"))
PATIENCE = 240.0
CORES = 2


def environment() -> dict[str, str]:
    """Executors run this Python, and everything stays on this machine."""
    import pyspark

    said = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    return os.environ | said


def wait_for(what: str, is_there: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := is_there():
            return found
        if process is not None and process.poll() is not None:
            pytest.fail(f"{what}: the process ended with {process.returncode}")
        time.sleep(0.05)
    pytest.fail(f"{what} did not come within {PATIENCE} seconds")


class Cluster:
    """A master and two workers with a core each, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        master = self.daemon("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url: str = wait_for("the master", lambda: self.found("master", r"Starting Spark master at (spark://\S+)"), master)
        self.workers = [
            self.daemon(
                f"worker{number}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "1g",
                "--webui-port", "0", "-d", str(folder / f"work{number}"), self.url,
            )
            for number in range(CORES)
        ]  # fmt: skip
        for number, worker in enumerate(self.workers):
            wait_for(f"worker {number}", lambda number=number: self.found(f"worker{number}", "Successfully registered"), worker)

    def daemon(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        command = [environment()["SPARK_HOME"] + "/bin/spark-class", *words]
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(), start_new_session=True
            )
        self.processes.append(process)
        return process

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def found(self, name: str, pattern: str) -> str | None:
        match = re.search(pattern, self.log(name).read_text()) if self.log(name).exists() else None
        return None if match is None else match[match.re.groups]

    def executors(self) -> list[int]:
        """The processes of executors that run now."""
        found = [pid for worker in self.workers for pid in _descendants(worker.pid)]
        return [pid for pid in found if "CoarseGrainedExecutorBackend" in _command(pid)]

    def end(self) -> None:
        for process in reversed(self.processes):
            for pid in [*_descendants(process.pid), process.pid]:
                kill(pid)
            process.wait()


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.end()


class Driver:
    """A job with its own driver, in a process that can be killed."""

    def __init__(self, folder: Path, **said: Any) -> None:
        self.folder, self.said = folder, said
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "driver.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(JOB), json.dumps(self.said)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(), cwd=self.folder, start_new_session=True,
            )  # fmt: skip

    def steps(self) -> int:
        """How many steps Spark has committed."""
        commits = Path(self.said["checkpoint"]) / "commits"
        return len([file for file in commits.glob("*") if file.name.isdigit()]) if commits.exists() else 0

    def wait(self) -> None:
        """Until the job has counted everything."""
        assert self.process is not None
        status = self.process.wait(PATIENCE)
        assert status == 0, (self.folder / "driver.log").read_text()[-4000:]

    def kill(self) -> None:
        """The driver and its Java process, as a machine that fails."""
        if self.process is None:
            return
        for pid in [*_descendants(self.process.pid), self.process.pid]:
            kill(pid)
        self.process.wait()


@contextmanager
def kafka(folder: Path) -> Iterator[str]:
    """A broker of one node; its address."""
    if not list(KAFKA.glob("kafka-tools-*.jar")):
        pytest.fail(f"the jars of Apache Kafka are not in {KAFKA}: ./test fetches them")
    port, controller = _port(), _port()
    (folder / "server.properties").write_text(
        f"process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\nlog.dirs=data\nnum.partitions=4\n"
        "offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
    )
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{KAFKA}/*"]
    format = [*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", "server.properties"]
    with (folder / "kafka.log").open("ab") as log:
        subprocess.run(format, cwd=folder, stdout=log, stderr=log, check=True)
        broker = subprocess.Popen([*java, "kafka.Kafka", "server.properties"], cwd=folder, stdout=log, stderr=log)
    try:
        wait_for("Kafka", lambda: _answers(port), broker)
        yield f"127.0.0.1:{port}"
    finally:
        broker.kill()
        broker.wait()
        shutil.rmtree(folder / "data", ignore_errors=True)


def _port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            after = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(after[1]), []).append(int(entry.name))
    found, rest = [], [pid]
    while rest:
        children = parents.get(rest.pop(), [])
        found += children
        rest += children
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass

