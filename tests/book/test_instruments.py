"""Instruments: every measured claim rests on one, one command lists their claims, pages say what is known."""

from __future__ import annotations

from bookpress import claims
from bookpress.cli import main


def test_every_measured_claim_of_the_book_rests_on_an_instrument_and_every_instrument_has_one():
    known, listed = claims.load_instruments(), claims.load_claims()
    assert len(known) > 30 and claims.unmeasured(listed, known) == []
    assert claims.unmeasured(listed, [one for one in known if one.id != "started"])


def test_one_command_lists_the_claims_of_an_instrument(capsys):
    assert main(["claims", "--instrument", "effective-beta"]) == 0
    listed = capsys.readouterr().out
    names = [line.split()[0] for line in listed.splitlines() if not line.startswith(" ")]
    assert {"landscape-smoothness", "scale-smoothness", "dln-smoother-beta"} < set(names)
    assert "training-faster-lr0.1" not in names and "Say" not in names
    assert main(["claims", "--instrument", "ruler"]) == 2
    assert "no instrument 'ruler'; expected one of effective-beta" in capsys.readouterr().err
