"""One cluster and one session for all tests that kill nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from cluster import CONNECTOR, Cluster, environment, running
from job import session
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    os.environ.update(environment())
    jars = ",".join(str(jar) for jar in sorted(CONNECTOR.glob("*.jar")))
    spark = session(cluster.url, **{"spark.jars": jars} if jars else {})
    yield spark
    spark.stop()
