"""The emulated device, for tests that need it."""

from __future__ import annotations

import pytest

from tests.gpu import device


@pytest.fixture
def emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for name, value in device.environment().items():
            monkeypatch.setenv(name, value)
    except device.NoDeviceError as error:
        pytest.skip(f"no emulated GPU: {error}")
