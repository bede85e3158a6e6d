"""What all tests of the client share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from services import Home, running

import dpsw


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with running(tmp_path_factory.mktemp("service")) as home:
        yield home


@pytest.fixture
def client(home: Home) -> dpsw.Client:
    return dpsw.Client(home.url, home.token)
