"""What every kind of arm shares: its settings go to JSON and back, and say what trains together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

from bnbook.errors import BnbookError


class Settings:
    """Base of the frozen dataclasses that hold all that decides a training but its seed."""

    label: ClassVar[str]  # what an arm is called in the store
    #: Whether it trains on the CPU wherever it is: small matrices, of which a GPU would make nothing faster.
    on_cpu: ClassVar[bool] = False
    #: Settings in which members of one stack may differ, and what stands for them in its key.
    free: ClassVar[Mapping[str, Any]] = {}

    @property
    def kind(self) -> Settings:
        """The one of `bnbook.trainings.TRAINS` whose kind of training this is."""
        return self

    def stack_size(self, device: str) -> int:
        """Members of one stack at most."""
        return 1

    def settings(self) -> dict[str, Any]:
        """The settings as JSON has them; `from_settings` is the way back."""
        return {name: _as(list, tuple, value) for name, value in asdict(self).items()}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls(**{name: _as(tuple, list, value) for name, value in settings.items()})

    def stack_key(self) -> Self:
        """Arms with the same key train as members of one stack."""
        return replace(self, **self.free)

    def expect(self, name: str, known: Collection[str]) -> None:
        """BnbookError for a setting that is none of the known."""
        if getattr(self, name) not in known:
            raise BnbookError(f"unknown {name} {getattr(self, name)!r}; expected one of {', '.join(known)}")


def _as(wanted: type, given: type, value: Any) -> Any:
    return wanted(_as(wanted, given, item) for item in value) if isinstance(value, given) else value
