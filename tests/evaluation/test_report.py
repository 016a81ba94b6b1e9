from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.axes import Axes

from de_gym.evaluation.comparison import Z_LIMIT, compare
from de_gym.evaluation.comparison_tables import errors_table, paper_table, ranking_table, records_table
from de_gym.evaluation.figures import DARK, score_bars
from de_gym.evaluation.page import Picture, report_html
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.report import headline_sentences, write_report
from de_gym.evaluation.results import MethodResults, Results, shipped_results
from de_gym.evaluation.table import to_csv
from de_gym.optimizers import PAPER_METHODS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["quic", "gpu", "background-networking", "component-update", "sync"]
FLAGS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{feature}" for feature in QUIET)]
FLAGS += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]

# Runs inside the page: records errors from the start, then sorts a table, reads a curve under the pointer, hides a
# method, goes to a function's page, looks at everything that was loaded, and leaves what it saw in the document.
LISTENER = """<script>
const seen = {errors: []};
addEventListener("error", (event) => seen.errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => seen.errors.push("blocked " + event.blockedURI));
</script>"""
PROBE = """<script>addEventListener("load", () => {
  const table = document.querySelector("table.sortable");
  const column = (place) => [...table.tBodies[0].rows].map((row) => row.cells[place].dataset.value);
  const click = (place) => { table.tHead.rows[0].cells[place].firstElementChild.click(); return column(place); };
  const curves = () => document.querySelectorAll("#runtimes path").length;
  const firsts = (rows) => [...rows].filter((row) => row.offsetHeight).map((row) => row.cells[0].textContent);
  const point = () => {
    const box = document.querySelector("#runtimes svg").getBoundingClientRect();
    const place = {clientX: box.right - 7, clientY: box.top + 50, bubbles: true};
    document.querySelector("#runtimes svg").dispatchEvent(new PointerEvent("pointermove", place));
    return [...document.querySelectorAll("#runtimes .tip div")].map((row) => row.textContent);
  };
  const state = () => ({
    curves: curves(), dots: document.querySelectorAll("#runs circle").length,
    ranked: firsts(table.tBodies[0].rows), cells: firsts(document.querySelectorAll("#figures tbody tr")),
  });
  Object.assign(seen, {
    before: column(0), names: click(0), scores: click(1), reversed: click(1),
    arrow: table.tHead.rows[0].cells[1].getAttribute("aria-sort"),
    pictures: [...document.images].map((image) => image.naturalWidth),
    tip: point(), all: state(), panels: document.querySelectorAll("#overview svg").length,
    ticks: makeScale({domain: [1e-8, 1e10], log: true}, [102, 8], 28).ticks, median: medianOf([1, 2, 4, 9]),
    strokes: [...document.querySelectorAll("nav [data-method]")].map((made) => made.style.getPropertyValue("--stroke")),
  });
  document.querySelector('nav button[data-method="random"]').click();
  seen.without = state();
  document.querySelector("nav .all").click();
  seen.again = state();
  document.getElementById("next").click();
  seen.next = document.getElementById("function").value;
  location.hash = "#f30";
  setTimeout(() => {
    seen.address = document.getElementById("function").value;
    seen.mean = document.querySelector("#figures tbody tr").cells[1].textContent;
    seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name.slice(0, 60));
    const result = document.createElement("pre");
    result.id = "probe";
    result.textContent = JSON.stringify(seen);
    document.body.append(result);
  }, 300);
});</script>"""


@pytest.fixture(scope="module")
def comparison(sample_results):
    return compare(sample_results())


@pytest.fixture(scope="module")
def report(tmp_path_factory, sample_results, sample_traces):
    folder = tmp_path_factory.mktemp("report")
    results = sample_results(Protocol("cec2017", 10, (1, 5, 11, 30), num_runs=11))
    return write_report(results, folder, traces=sample_traces(30), traced_function="F5", command="python <evaluate>.py")


def test_records_have_one_row_per_function_and_method_with_the_paper_beside(comparison):
    rows = list(csv.DictReader(to_csv(records_table(comparison)).splitlines()))
    assert len(rows) == 29 * 6
    row = next(row for row in rows if row["function"] == "30" and row["method"] == "jso")
    assert (row["paper_mean"], row["paper_mark"]) == ("3.93E+02", "+")
    errors = comparison.results["jso"].errors[-1]
    assert float(row["mean"]) == errors.mean()
    assert float(row["std"]) == errors.std()
    assert float(row["median"]) == np.median(errors)
    assert row["mark"] == comparison.marks["jso"][-1]
    random = next(row for row in rows if row["method"] == "random")
    assert random["paper_mean"] == random["z"] == ""


def test_ranking_is_sorted_by_score_and_counts_marks(comparison):
    rows = list(csv.DictReader(to_csv(ranking_table(comparison)).splitlines()))
    scores = [float(row["APS"]) for row in rows]
    assert scores == sorted(scores)
    assert set(scores) == set(comparison.scores.values())
    by_name = {row["method"]: row for row in rows}
    assert by_name["jSO"]["APS, paper"] == "1.4482"
    assert by_name["learned"]["APS, paper"] == "1.2414"  # the paper's LDE is its counterpart
    counts = [float(by_name["jSO"][kind]) for kind in ("better", "similar", "worse")]
    assert counts == list(comparison.counts["jso"])


def test_the_table_of_errors_begins_with_the_reference_and_marks_the_others(comparison):
    errors = errors_table(comparison)
    assert errors.header[:2] == ("function", "learned")
    function, reference, other, *_ = errors.rows[-1]
    assert function.text == "f30 (F29)"
    assert (reference.text, reference.mark) == (f"{comparison.results['learned'].summary.mean[-1]:.2E}", "")
    assert (other.mark, other.note) == (
        comparison.marks["random"][-1],
        f"{comparison.results['random'].summary.std[-1]:.2E}",
    )


def test_the_smallest_means_are_emphasised_as_printed():
    protocol = Protocol("cec2017", 10, (1, 3), num_runs=4)
    good = MethodResults("a", np.array([[0.0, 0.0, 0.0, 0.0], [2.0, 2.0, 3.0, 3.0]]))
    poor = MethodResults("b", np.array([[0.0, 0.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0]]))
    tie, win = errors_table(compare(Results(protocol, (good, poor), reference="a"))).rows
    assert [cell.strong for cell in tie] == [False, True, True]
    assert [(cell.text, cell.note, cell.strong) for cell in win[1:]] == [
        ("2.50E+00", "5.00E-01", True),
        ("9.00E+00", "0.00E+00", False),
    ]


def test_the_paper_stands_beside_ours_with_z_scores(comparison):
    beside = paper_table(comparison)
    assert beside.header[:4] == ("function", "learned", "paper: LDE", "z")
    assert [cell.text for cell in beside.rows[0][:4]] == ["f1", "0.00E+00", "0.00E+00", "0"]
    assert all(cell.strong == (abs(cell.value) > Z_LIMIT) for row in beside.rows for cell in row[3::3])


def test_headline_names_reference_extremes_and_what_learning_added(comparison):
    sentences = headline_sentences(comparison)
    counts = comparison.counts["random"]
    assert sentences[0].startswith("6 methods on 29 functions of CEC 2017, dimension 10, 11 runs each.")
    assert any(f"better on {counts.worse} functions" in sentence and "random" in sentence for sentence in sentences)


def test_a_shared_place_is_no_first_place():
    protocol = Protocol("cec2017", 10, (1, 3), num_runs=9)
    low = np.arange(18.0).reshape(2, 9)
    methods = [MethodResults(name, low + shift) for name, shift in (("a", 0.0), ("b", 0.0), ("c", 99.0))]
    comparison = compare(Results(protocol, tuple(methods), reference="a"))
    assert headline_sentences(comparison)[1] == (
        "a has place 1 of 3, shared with b, by average performance score (0.00); last is c (2.00)."
    )
    assert [comparison.place_text(name) for name in "abc"] == ["1=", "1=", "3"]
    other = compare(Results(protocol, tuple(methods), reference="c"))
    assert headline_sentences(other)[1] == (
        "c has place 3 of 3 by average performance score (2.00); first is a and b (0.00)."
    )


def test_a_report_of_runs_too_few_for_any_test_says_so():
    for num_runs in (2, 3):
        errors = np.arange(2.0 * num_runs).reshape(1, num_runs, 2)
        methods = tuple(MethodResults(name, errors[..., index] + 99.0 * index) for index, name in enumerate("ab"))
        comparison = compare(Results(Protocol("cec2017", 10, (1,), num_runs=num_runs), methods, reference="a"))
        said = [sentence for sentence in headline_sentences(comparison) if "at least 3 are needed" in sentence]
        assert (len(said), comparison.scores["b"]) == ((1, 0.0) if num_runs == 2 else (0, 1.0))


def test_the_numbers_of_the_bars_are_their_scores_and_not_the_paper_s(comparison, monkeypatch):
    drawn = []
    monkeypatch.setattr(Axes, "set_yticks", lambda _, places, labels: drawn.extend(zip(places, labels, strict=True)))
    score_bars(comparison)
    expected = [f"{method.label}   {comparison.scores[method.name]:.2f}" for method in comparison.ranking]
    assert [label for _, label in sorted(drawn, reverse=True)] == expected


def test_a_protocol_the_paper_does_not_have_is_reported_without_it(tmp_path):
    protocol = Protocol("cec2017", 10, (1, 3), num_runs=4, max_evaluations=500)
    results = Results(protocol, (MethodResults("only", np.ones((2, 4))),), reference="only")
    page = write_report(results, tmp_path)
    assert not (tmp_path / "tables" / "paper.tex").exists()
    assert "Beside the paper" not in page.read_text()


def test_results_that_do_not_belong_together_are_refused():
    protocol = Protocol("cec2017", 10, (1, 3), num_runs=4)
    one = MethodResults("one", np.ones((2, 4)))
    with pytest.raises(ValueError, match="distinct names, got one, one"):
        Results(protocol, (one, one), reference="one")
    with pytest.raises(ValueError, match="reference must be one of the methods one, got 'two'"):
        Results(protocol, (one,), reference="two")
    with pytest.raises(ValueError, match="has errors of 3 functions, the protocol has 2"):
        Results(protocol, (MethodResults("one", np.ones((3, 4))),), reference="one")


def test_report_folder_holds_page_summary_tables_and_pictures(report):
    folder = report.parent
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {
        "report.html",
        "summary.md",
        "tables/errors.csv",
        "tables/ranking.csv",
        "tables/errors.tex",
        "tables/paper.tex",
        "tables/ranking.tex",
        "figures/scores.png",
        "figures/runtimes.png",
        "figures/convergence.png",
        "figures/parameters.png",
    }
    summary = (folder / "summary.md").read_text()
    assert "| **learned** |" in summary
    assert "figures/convergence.png" in summary


def test_the_same_results_give_the_same_page(comparison):
    pages = []
    for _ in range(2):
        picture = Picture("Scores", "", score_bars(comparison), score_bars(comparison, DARK))
        pages.append(report_html(comparison, headline_sentences(comparison), [picture], "python evaluate.py"))
    assert pages[0] == pages[1]
    assert score_bars(comparison) != score_bars(comparison, DARK)


def test_each_bar_has_its_own_number_at_its_root_and_the_paper_s_apart(comparison):
    page = report_html(comparison, [], [], "")
    for method in comparison.ranking:
        score, printed = comparison.scores[method.name], comparison.paper_scores.get(method.name)
        beside = "" if printed is None else f"paper {printed:.2f}"
        row = re.search(rf'data-label="{re.escape(method.label)}">(.*?)</div>', page).group(1)
        assert f'<b>{score:.2f}</b><span class="track">' in row
        assert row.endswith(f"<small>{beside}</small>")


def test_text_in_the_data_cannot_end_its_script():
    protocol = Protocol("cec2017", 10, (1, 3), num_runs=4)
    method = MethodResults("</script><b>", np.array([[3.0, 1.0, 2.0, 4.0]] * 2))
    page = report_html(compare(Results(protocol, (method,), reference="</script><b>")), [], [], "")
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(data)["methods"][0]["label"] == "</script><b>"
    assert json.loads(data)["errors"]["</script><b>"][0] == [1.0, 2.0, 3.0, 4.0]


def test_page_is_well_formed_escaped_and_refers_to_nothing_outside(report):
    text = report.read_text()
    assert "python &lt;evaluate&gt;.py" in text
    assert not re.search(r"(src|href|srcset)=\"(?!data:)", text)
    assert "url(" not in text

    class Balanced(HTMLParser):
        void, stack = {"meta", "img", "source"}, []

        def handle_starttag(self, tag, attrs):
            if tag not in self.void:
                self.stack.append(tag)

        def handle_endtag(self, tag):
            assert self.stack.pop() == tag

    parser = Balanced()
    parser.feed(text)
    assert parser.stack == []


@pytest.fixture(scope="module")
def seen(report, tmp_path_factory):
    """Return what the probe saw in a browser."""
    if CHROMIUM is None:
        pytest.skip("no Chromium or Chrome on this machine")
    folder = tmp_path_factory.mktemp("browser")
    page = folder / "probed.html"
    page.write_text(report.read_text().replace("<head>", f"<head>{LISTENER}").replace("</main>", f"</main>{PROBE}"))
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    match = re.search(r'<pre id="probe">(.*?)</pre>', run.stdout, re.DOTALL)
    assert match, run.stderr[-2000:]
    assert "CONSOLE" not in run.stderr
    return json.loads(match.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def test_page_works_in_a_real_browser_without_network_or_errors(seen):
    assert seen["errors"] == []
    assert [name for name in seen["requests"] if not name.startswith("data:")] == []
    assert len(seen["pictures"]) == 1
    assert min(seen["pictures"]) > 300
    assert seen["wide"] <= 0


def test_headings_sort_in_a_real_browser(seen):
    assert seen["names"] == sorted(seen["before"], key=str.lower) != seen["before"]
    scores = [float(score) for score in seen["scores"]]
    assert scores == sorted(scores)
    assert [float(score) for score in seen["reversed"]] == sorted(scores, reverse=True)
    assert seen["arrow"] == "descending"


def test_a_method_can_be_switched_off_and_on_in_a_real_browser(seen):
    assert seen["all"]["curves"] == 3  # of the methods whose convergence is known
    assert seen["all"]["dots"] == 6 * 11
    assert seen["without"]["curves"] == 2
    assert seen["without"]["dots"] == 5 * 11
    for rows in ("ranked", "cells"):
        assert [name for name in seen["all"][rows] if name != "random"] == seen["without"][rows]
    assert seen["again"] == seen["all"]


def test_the_pointer_reads_all_curves_in_a_real_browser(seen, sample_results):
    results = sample_results(Protocol("cec2017", 10, (1, 5, 11, 30), num_runs=11))
    shares = {method.label: method.curves.shares.mean(axis=0)[-1] for method in results.methods if method.curves}
    assert seen["tip"][0] == "evaluations / dimension: 10000"
    told = {line.rsplit(maxsplit=1)[0]: float(line.rsplit(maxsplit=1)[1]) for line in seen["tip"][1:]}
    assert told == {label: pytest.approx(share, rel=6e-3) for label, share in shares.items()}


def test_charts_have_few_round_ticks_and_true_medians_in_a_real_browser(seen):
    assert seen["ticks"] == pytest.approx([1e-6, 1e0, 1e6])
    assert seen["median"] == 3.0
    assert set(seen["strokes"]) <= {"solid", "dashed"}
    assert len(seen["strokes"]) == 6


def test_every_function_has_a_page_in_a_real_browser(seen, sample_results):
    results = sample_results(Protocol("cec2017", 10, (1, 5, 11, 30), num_runs=11))
    assert seen["panels"] == 4
    assert (seen["next"], seen["address"]) == ("f5 (F4)", "f30 (F29)")
    assert float(seen["mean"]) == pytest.approx(results["learned"].summary.mean[-1], rel=5e-3)


def test_a_page_of_all_stored_methods_stays_small(tmp_path):
    stored = shipped_results(PROTOCOLS["small-cec17-10d"])
    results = Results(PROTOCOLS["small-cec17-10d"], tuple(stored), reference="adaptive")
    page = report_html(compare(results), [], [], "")
    assert len(page.encode()) < 2_500_000


def test_stored_methods_have_curves_beside_those_that_were_run():
    stored = {method.name: method for method in shipped_results(PROTOCOLS["small-cec17-10d"])}
    assert all(stored[name].curves is not None for name in (*PAPER_METHODS, "l-srtde", "random"))
    medians = stored["jso"].curves.quartiles[1]
    assert np.all(np.diff(medians[:, np.isfinite(medians).all(axis=0)], axis=1) <= 0.0)
