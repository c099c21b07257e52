"""The explorers in a real browser: their formulas against the package, their controls by mouse and keyboard.

One page holds them all, drawn from the committed results, opened from file://. Needs an installed Chromium.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import browsing
import numpy as np
import page_cells
import pytest
import scipy.stats
import torch
from conftest import ROOT

from bnbook import explorers as own
from bnbook.explorers import landscape
from bnbook.meanfield import Convolutional, FullyConnected, solve
from bnbook.normalizers import make_normalizer
from bnbook.normalizers.formulas import batch_norm_backward, batch_norm_forward
from bookpress import claims, intervals
from bookpress.claims import draws, judging
from bookpress.claims.draws import columns
from bookpress.claims.kinds import compared, decide, unusable
from bookpress.pipeline import chapter_runs, chapters, explorers, prose
from bookpress.results import Results
from bookpress.runs import store

pytestmark = pytest.mark.skipif(
    browsing.CHROMIUM is None,
    reason=f"no browser: none of {', '.join(browsing.NAMES)} is installed (Debian: apt-get install chromium)",
)
NAMES = ("transform", "fuse", "break", "goalposts", "landscape", "train")
EXACT = dict(rtol=1e-12, atol=1e-14)
DRAWN = "e => e.querySelector('.explorer-charts').innerHTML + e.querySelector('.explorer-result').innerHTML"
HEAD = (
    '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<link rel="stylesheet" href="_static/explorers/explorers.css">'
    '<script defer src="_static/explorers/mount.js"></script>'
)


def written(folder: Path, shown: prose.Pages) -> str:
    """The address of a page with every explorer."""
    shutil.copytree(ROOT / "book/_static", folder / "_static")
    explorers.write(folder, shown)
    claim = 'data-claim="noisy-nearly-matches"'
    places = "".join(
        f'<div class="explorer" data-explorer="{n}" {claim}><p>Still {n}</p></div>' for n in NAMES
    )
    page = folder / "index.html"
    page.write_text(f"{HEAD}<article>{places}</article>", encoding="utf-8")
    return page.as_uri()


@pytest.fixture(scope="module")
def shown() -> prose.Pages:
    """Every committed laptop run, fresh or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNBOOK_ROOT", str(ROOT))
        runs = {each.name: chapter_runs.published(each, "laptop") for each in chapters.discover()}
        return prose.Pages({n: run if run.exists else None for n, run in runs.items()}, claims.load_claims())


@pytest.fixture(scope="module")
def opened(tmp_path_factory, shown):
    """(page, everything that the console said) with all explorers mounted."""
    address = written(tmp_path_factory.mktemp("explorers"), shown)
    with browsing.chromium() as browser:
        page, said = browser.new_page(viewport={"width": 390, "height": 900}), []
        page.set_default_timeout(20_000)
        page.on("console", lambda line: said.append(line.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        page.evaluate("() => bnbook.ready")
        yield SimpleNamespace(page=page, said=said, browser=browser, address=address)


@pytest.fixture
def page(opened):
    """The page, with nothing complained of so far; and nothing after the test either."""
    yield opened.page
    assert not opened.said, opened.said


def of(page, name: str):
    return page.locator(f'[data-explorer="{name}"]')


@pytest.mark.parametrize("name", NAMES)
def test_each_comes_alive_and_fits_a_phone(page, name):
    place = of(page, name)
    assert place.get_attribute("data-state") == "live"
    assert not place.get_by_text(f"Still {name}").is_visible()
    assert len(place.locator(".explorer-result").inner_text()) > 40
    assert all(place.locator("svg").evaluate_all("all => all.map(e => e.childElementCount > 5)"))
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("name", NAMES)
def test_every_control_is_native_labelled_and_answers_the_keyboard(page, name):
    controls = of(page, name).locator("input, select, button").all()
    assert len(controls) >= 3
    for control in filter(lambda one: one.is_visible(), controls):
        kind = control.evaluate("e => e.type")
        assert control.evaluate("e => (e.labels?.[0] ?? e).textContent.trim().length") > 0
        control.focus()
        if kind == "button":
            control.press("Enter")
            continue
        at_end = kind == "range" and control.evaluate("e => e.value === e.max")
        before = of(page, name).evaluate(DRAWN)
        control.press("Space" if kind == "checkbox" else "ArrowLeft" if at_end else "ArrowRight")
        label = control.evaluate("e => e.labels[0].textContent")
        assert of(page, name).evaluate(DRAWN) != before, f"{name}: nothing changes by {label}"


def test_without_scripts_or_a_run_the_still_picture_stands(opened, tmp_path):
    context = opened.browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(opened.address)
    assert all(still.get_by_text(f"Still {name}").is_visible() for name in NAMES)
    context.close()
    still = opened.browser.new_page()
    still.goto(written(tmp_path, prose.Pages({}, [])))
    still.evaluate("() => bnbook.ready")
    assert of(still, "fuse").get_by_text("Still fuse").is_visible()
    assert of(still, "transform").get_attribute("data-state") == "live"
    still.close()


def test_growth_is_the_packages(page):
    cases = [(name, m) for name in ("tanh", "relu", "linear", "zigzag") for m in (4, 5, 64, 1024)]
    found = page.evaluate("all => all.map(([n, m]) => bnbook.formulas.byQuadrature(n, m))", cases)
    growth = page_cells.functions("batch-norm/gradient-explosion")["growth"]
    for (name, m), one in zip(cases, found):
        nodes = {"panels": 100, "kinks": (-2.7, 2.7)} if name == "zigzag" else {}
        expected = growth(name, m, **nodes)
        np.testing.assert_allclose(
            [one["through"], one["spread"]], [expected.through, expected.spread], **EXACT
        )


def test_the_transform_is_the_packages(page):
    x, g = [1.0, -2.0, 3.5, 0.25, 7.0, -1.0, 0.0, 2.0], [0.3, -1, 2, 0, 0.5, 0.1, 1, -2]
    gamma, beta, eps = -1.7, 0.4, 3.0
    ahead = page.evaluate("a => bnbook.formulas.forward(...a)", [x, gamma, beta, eps])
    behind = page.evaluate("a => bnbook.formulas.backward(...a)", [g, x, gamma, eps])
    column, push = (torch.tensor(each, dtype=torch.float64)[:, None] for each in (x, g))
    expected = batch_norm_forward(column, gamma, beta, eps)
    np.testing.assert_allclose(ahead["y"], expected.y[:, 0], **EXACT)
    np.testing.assert_allclose(behind["x"], batch_norm_backward(push, column, gamma, eps)["x"][:, 0], **EXACT)


TRAINED = """([normed, shaking, depth, rate, steps]) => {
  const { generator, spirals, network, copyNetwork, noise, descend } = bnbook.formulas;
  const draw = generator(7), net = network(draw, [2, ...Array(depth).fill(5), 1]), first = copyNetwork(net);
  const taken = [...Array(steps)].map(() => {
    const [x, y] = spirals(draw, 8);
    const shaken = net.slice(0, shaking ? -1 : 0).map(l => noise(draw, 8, l.outputs, 1));
    const { loss, right } = descend(net, [x, y], rate, normed, shaken);
    return { x: [...x], y: [...y], loss, right, shaken: shaken.map(s => [[...s.scale], [...s.shift]]) };
  });
  return [first.map(l => [...l.weight]), taken, net.map(l => [[...l.weight], [...l.gamma], [...l.beta]])];
}"""


def network(weights: list[torch.Tensor], arm: str) -> torch.nn.Sequential:
    """The page's network in the package's parts: without batch norm a bias, and no bias with it."""
    layers = []
    for k, weight in enumerate(weights, 1):
        last = k == len(weights)
        linear = torch.nn.Linear(*weight.shape, bias=last or arm in ("none", "noise"), dtype=torch.float64)
        linear.weight.data = weight.T.contiguous()
        if linear.bias is not None:
            torch.nn.init.zeros_(linear.bias)
        behind = [make_normalizer(arm, weight.shape[1]).double(), torch.nn.ReLU()]
        layers += [linear, *behind * (not last)]
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize("arm", ["none", "batch", "noisy", "noise"])
@pytest.mark.parametrize("depth", [2, 6])
def test_what_the_page_trains_is_what_the_package_would(page, arm, depth):
    """Losses, shares and, in the end, weights of a training that the page makes step by step."""
    rate, steps, normed = 0.3, 6, arm in ("batch", "noisy")
    first, taken, last = page.evaluate(TRAINED, [normed, "nois" in arm, depth, rate, steps])
    doubles = lambda values, *shape: torch.tensor(values, dtype=torch.float64).view(*shape)
    shapes = [(2, 5), *[(5, 5)] * (depth - 1), (5, 1)]
    model = network([doubles(w, s) for w, s in zip(first, shapes, strict=True)], arm)
    descent = torch.optim.SGD(model.parameters(), lr=rate)
    for one in taken:
        for layer, noise in zip(model[1::3], one["shaken"]):
            drawn = tuple(doubles(each, 8, 5) for each in noise)
            getattr(layer, "noise", layer).draw = lambda _a, drawn=drawn: drawn
        margin = doubles(one["y"], 8) * model(doubles(one["x"], 8, 2))[:, 0]
        loss = torch.nn.functional.softplus(-margin).mean()
        found = [one["loss"], one["right"]]
        np.testing.assert_allclose(found, [loss.item(), (margin > 0).double().mean()], **EXACT)
        descent.zero_grad()
        loss.backward()
        descent.step()
    near = dict(rtol=1e-11, atol=1e-13)
    for linear, (shown, _, _) in zip(model[::3], last, strict=True):
        np.testing.assert_allclose(shown, linear.weight.detach().T.flatten(), **near)
    for layer, (_, gamma, beta) in zip(model[1::3] if normed else (), last):
        np.testing.assert_allclose(gamma, layer.weight.detach(), **near)
        np.testing.assert_allclose(beta, layer.bias.detach(), **near)


def test_the_pages_noise_is_that_of_the_paper(page):
    """The moments that `bnbook.normalizers.Noise` states, of 1,000 units and 20 examples."""
    one = page.evaluate(
        "() => { const n = bnbook.formulas.noise(bnbook.formulas.generator(3), 20, 1000, 1);"
        " return [[...n.scale], [...n.shift]]; }"
    )
    s, m = (np.array(v).reshape(20, 1000) for v in one)
    for found, mean, variance in ((s, 1.125, 0.25**2 / 12 + 0.01), (m, 0, (0.5**2 + 0.1**2) / 3)):
        centres = found.mean(0)
        assert abs(centres.mean() - mean) < 4 * centres.std() / 1000**0.5
        assert found.var() == pytest.approx(variance, rel=0.1)
    assert np.abs(m - m.mean(0)).max() < 0.2 and m.mean(0).std() == pytest.approx(0.5 / 3**0.5, rel=0.1)


@pytest.mark.parametrize("equations", ["printed", "corrected", "through_batch"])
@pytest.mark.parametrize("network", [FullyConnected((20, 30, 40, 5)), Convolutional((3, 32, 32), (8, 6))])
def test_critical_rates_are_the_packages(page, equations, network):
    base = {"q_hat_0": 0.9, "q_hat_xy_0": 0.2, "q_hat_ab_xy_0": -0.05}
    start = {} if equations == "printed" else {"batch": 16, **base}
    gammas = [0.25, 1.0, 5.0]
    found = page.evaluate(
        "([n, s, all]) => all.map(gamma => bnbook.formulas.criticalRate(n, {...s, gamma}))",
        [
            {"fanIn": network.fan_in, "positions": network.positions},
            {"equations": equations, "batch": 16, "base": dict(zip(("q", "xy", "ab"), base.values()))},
            gammas,
        ],
    )
    theory = solve(network, "batch", gammas, equations=equations, **start)
    np.testing.assert_allclose(found, theory.critical_learning_rate(), **EXACT)


def test_lines_are_those_that_the_chapter_drew_and_the_readouts_fits_its_distance(shown):
    """From the moments of the inputs each line lies on the recorded one, by γ; the readout's in the mean."""
    run = shown.evidence["mean-field/learning-rate"].results
    found = own.limits(run)
    gammas = np.array(found["gammas"])
    fine = np.linspace(min(gammas), max(gammas), run["curve.boundary.gamma"].size)
    networks = {"fc": FullyConnected((784, 1000, 1000, 1000, 10)), "conv": Convolutional((1, 28, 28))}
    for net, network in networks.items():
        one = found["networks"][f"{net}_set0"]
        assert (one["fanIn"], one["positions"]) == (network.fan_in, network.positions)
        names = {"q_hat_0": "q", "q_hat_xy_0": "xy", "q_hat_ab_xy_0": "ab"}
        start = {letter: one["base"][name] for letter, name in names.items()}
        for equations in ("corrected", "through_batch"):
            theory = solve(network, "batch", fine, equations=equations, batch=found["batch"], **start)
            line = np.log10(theory.critical_learning_rate(found["momentum"]))
            np.testing.assert_allclose(line, run[f"curve.boundary.{equations}.{net}.set0"][0], atol=6e-4)
        readout = np.log10(2 * (1 + found["momentum"]) / (gammas**2 * one["readout"] + 1))
        distance = (np.array(one["boundary"]) - readout).mean()
        assert distance == pytest.approx(run[f"offset.readout.{net}.set0"].mean(), abs=1e-4)


def test_quantiles_are_those_of_scipy(page):
    asked = [(level, nu) for level in (0.8, 0.95, 0.99, 0.999) for nu in (1, 2, 4, 19, 300)]
    found = page.evaluate("all => all.map(([p, nu]) => bnbook.formulas.studentTwoSided(p, nu))", asked)
    expected = [scipy.stats.t.ppf((1 + level) / 2, nu) for level, nu in asked]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    levels = [0.8, 0.95, 0.99, 0.999]
    found = page.evaluate("all => all.map(p => bnbook.formulas.normalTwoSided(p))", levels)
    np.testing.assert_allclose(found, scipy.stats.norm.ppf((1 + np.array(levels)) / 2), rtol=1e-12)
    asked = [
        (hits, trials, level) for trials in (2, 5, 20) for hits in (0, 1, trials) for level in (0.8, 0.99)
    ]
    found = page.evaluate("all => all.map(a => bnbook.formulas.clopperPearson(...a))", asked)
    np.testing.assert_allclose(found, [intervals.clopper_pearson(*one) for one in asked], rtol=1e-12)


def test_where_nothing_is_moved_every_verdict_is_the_books(page, shown):
    found = page.evaluate(
        """() => Object.fromEntries(bnbook.data.goalposts.map(claim => [claim.id, bnbook.formulas.judge(claim,
        claim.tests.map(t => bnbook.formulas.evaluate(t, t.bound, 0.95, t.seeds.map(() => true)).holds))]))"""
    )
    judged = {claim.id: shown.judgement(claim) for claim in shown.claims}
    expected = {
        n: one["verdict"] for n, one in judged.items() if one and one["verdict"] != judging.NOT_TESTED
    }
    assert found == expected and len(expected) > 100


WITHOUT = """([asked, level, first]) => asked.map(([id, k]) => {
  const test = bnbook.data.goalposts.find(claim => claim.id === id).tests[k];
  const one = bnbook.formulas.evaluate(test, test.bound, level, test.seeds.map((_, s) => s >= first));
  return [one.holds, ...one.interval.map(String)];
})"""


@pytest.mark.parametrize("level, first", [(0.8, 0), (0.99, 1)])
def test_at_any_level_and_without_a_seed_intervals_are_the_packages(page, shown, level, first):
    """Every test of the book, with all its seeds and without the first."""
    known = set(page.evaluate("() => bnbook.data.goalposts.map(claim => claim.id)"))
    asked, expected = [], []
    for claim in (each for each in shown.claims if each.id in known):
        run = shown.evidence[claim.chapter].results
        tests = [part.test for part in claim.parts] or [t for t in (claim.test, claim.corrected) if t]
        reached = [test for test in tests if set(test.result_names()) <= set(run)]  # of a ladder's rungs
        for k, test in enumerate(reached):
            if test.kind in ("identity", "inequality"):
                continue
            rows = columns(test, draws.counted(claim, run), claim.id)[1][:, first:]
            if rows.size and not unusable(test, rows):
                holds, _, interval = decide(test, compared(test, rows, claim.id), level)
                asked.append((claim.id, k))
                expected.append((holds, interval))
    found = page.evaluate(WITHOUT, [asked, level, first])
    assert len(found) > 300
    for name, (holds, *ends), (held, interval) in zip(asked, found, expected, strict=True):
        assert holds == held, name
        np.testing.assert_allclose([float(v) for v in ends], interval, rtol=1e-11, atol=1e-13)


def test_each_rung_that_was_reached_gives_the_whole_cross_section(tmp_path, monkeypatch):
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path))
    names, once = [], [9.0, 9.0, 9.0]  # one probe, three lengths
    # Seed 102 is without its pair, for one lies under a name that is not its own; half of a rung is none.
    losses = {
        (0.25, arm, 100 + k): loss for arm in ("none", "batch") for k, loss in enumerate(LOSSES + [once])
    }
    for (width, norm, seed), loss in (losses | {(1.0, "none", 100): once}).items():
        arm = {"norm": norm, "width": width, "steps": 15000, "learning_rate": 0.5, "augment": False}
        about = {"arm": arm | {"landscape": [0.1, 1.0, 16.0]}, "seed": seed}
        names.append("another" if (norm, seed) == ("batch", 102) else store.key(about))
        arrays = {"landscape_loss": np.array([loss]), "probe_step": np.array([7])}
        store.write(names[-1], arrays, seconds=1.0, about=about)
    of_ladder = lambda results: prose.Pages({"santurkar/scale": SimpleNamespace(results=results)}, [])
    made = Results({"provenance": {"store": {"kept": [*names, "lost"]}}})
    (rung,) = landscape(of_ladder(made))
    assert rung["title"] == "1/4 of the width, 15,000 steps, rate 0.5"
    assert (rung["seeds"], rung["steps"], rung["lengths"]) == (2, [7.0], [0.1, 1.0, 16.0])
    assert rung["arms"]["batch"] == {"low": [2.0], "high": [2.0], "along": [[4.0, 2.0, 2.0]]}
    assert landscape(of_ladder(Results({}))) is None


LOSSES = [[2.0, 4.0, 1.0], [8.0, 1.0, 4.0]]
