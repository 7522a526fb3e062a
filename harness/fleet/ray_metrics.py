"""What a run's driver counts for Ray's metrics (ray.util.metrics)."""

from ray.util.metrics import Counter, Gauge

from ..rows.record import Record
from .remote import Lost, Message


class Metrics:
    """Ray exports them with its own; docs/scaling.md has their names."""

    def __init__(self) -> None:
        self._rows = Counter("attnbench_rows", "Rows that have come.", ("host", "status"))
        self._losses = Counter("attnbench_devices_lost", "Times that a device was lost.", ("host",))
        self._devices = Gauge("attnbench_devices", "Devices that measure, or wait.", ("state",))

    def heard(self, host: str, message: Message) -> None:
        """`host`: that it came from."""
        if isinstance(message, Record):
            self._rows.inc(tags={"host": host, "status": str(message.status)})
        elif isinstance(message, Lost):
            self._losses.inc(tags={"host": host})

    def devices(self, measuring: int, opened: int) -> None:
        self._devices.set(measuring, tags={"state": "measuring"})
        self._devices.set(opened - measuring, tags={"state": "waiting"})
