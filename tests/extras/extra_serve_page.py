"""The page of `elmo serve` in a browser: every task, the keyboard, and a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from elmo_framework.serve.app import Server
from tests.extras.browser import Browser, browser
from tests.served_runs import ENCODERS, PASSAGE, RUNS, canned_server, running

TEXT = "Anna Kovacs moved to Lisbon , with Ltd"
TARGETS = [{"start": 4, "end": 5, "lemma": "bank", "pos": "NOUN"}]
PHONE = 380


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """The page of a server with a run for each task."""
    with running(canned_server()) as url:
        window.resize(900, 900)
        window.open(url)
        window.wait("document.querySelectorAll('#run option').length")
        yield window
        assert window.errors() == []  # nothing that the policy refused, and no exception


def predict(page: Browser, run: str, **fields: str) -> None:
    """Choose a run, fill its form in, and wait for the prediction."""
    number = [each.name for each in RUNS].index(run)
    choose = "const s = document.getElementById('run')"
    page.run(f"{choose}; s.selectedIndex = {number}; s.dispatchEvent(new Event('change'))")
    for name, text in fields.items():
        page.type(f"#field-{'' if name == 'lines' else name}", text)
    page.click("#predict")
    page.wait("document.querySelector('#results article')")


def texts(page: Browser, selector: str) -> list[str]:
    return page.run(
        f"return [...document.querySelectorAll({json.dumps(selector)})].map((n) => n.textContent)"
    )


def test_spans_are_marked_in_the_text_as_written(page: Browser) -> None:
    predict(page, "ner", lines=f"{TEXT}\nNothing   here")
    assert texts(page, ".span") == [
        "Anna KovacsPER",
        "LisbonLOC",
        "LtdORG",
        "PER 1",
        "LOC 1",
        "ORG 1",
    ]
    assert texts(page, "article > p")[1] == "Nothing   here"
    colors = page.run(
        "return [...document.querySelectorAll('.text .span')]"
        ".map((n) => getComputedStyle(n).backgroundColor)"
    )
    assert len(set(colors)) == 3


def test_tags_of_words_are_below_them(page: Browser) -> None:
    predict(page, "pos", lines="Anna left")
    assert texts(page, ".tagged") == ["AnnaNNP", "leftNNP"]


def test_probabilities_are_bars_and_text_is_no_html(page: Browser) -> None:
    predict(page, "topics", lines="<b>The driver</b> <script>alert(1)</script>")
    assert texts(page, ".bars dt")[:3] == ["delivery", "return", "<i>payment</i>"]
    assert page.run("return document.querySelectorAll('#results b, #results script').length") == 0
    widths = page.run(
        "return [...document.querySelectorAll('#results i')].map((n) => n.offsetWidth)"
    )
    assert widths[0] / widths[1] == pytest.approx(0.75 / 0.2, rel=0.05)


def test_a_pair_has_two_fields(page: Browser) -> None:
    predict(page, "pairs", premise="A dog runs", hypothesis="An animal moves")
    assert texts(page, "article p") == ["A dog runs", "An animal moves"]
    assert texts(page, ".bars dt.best") == ["entailment"]


def test_roles_are_brackets_of_each_predicate(page: Browser) -> None:
    predict(page, "srl", lines="The company bought shares sold last week")
    assert texts(page, ".roles h3") == ["bought", "sold"]
    assert texts(page, ".role")[:3] == ["The companyARG0", "boughtV", "shares soldARG1"]


def test_a_cluster_lights_up_under_the_pointer_and_the_keyboard(page: Browser) -> None:
    predict(page, "coref", document="Anna Kovacs said she met the director of her firm there .")
    active = "return [...document.querySelectorAll('.text .active')].map((n) => n.textContent)"
    page.run("document.querySelector('.text .mention').focus()")
    assert page.run(active) == ["Anna Kovacs1", "she1", "the2 director of her1"]
    page.run("document.activeElement.blur()")
    assert page.run(active) == []


def test_the_answer_is_marked_behind_an_emoji(page: Browser) -> None:
    page.run(
        "const s = document.getElementById('run'); s.selectedIndex = 6;"
        "s.dispatchEvent(new Event('change'));"
        f"document.getElementById('field-passage').value = {json.dumps(PASSAGE)}"
    )
    page.type("#field-question", "Who built it?")
    page.click("#predict")
    page.wait("document.querySelector('#results article')")
    assert texts(page, "mark.answer") == ["Anna Kovacs"]


def test_senses_are_shown(page: Browser) -> None:
    predict(page, "wsd", sentence="He sat on the bank", targets=json.dumps(TARGETS))
    assert texts(page, ".span") == ["bankbank%1:17:01::"]


def test_a_word_leads_to_its_neighbors_by_the_keyboard(page: Browser) -> None:
    predict(page, "ner", lines="Anna left")
    page.run("document.querySelector('.word').focus()")
    page.type(".word:focus", "\ue007")  # Enter
    page.wait("document.querySelector('#word li')")
    assert texts(page, "#word mark") == ["Anna", "Anna"]
    assert "far <b>from</b> the" in texts(page, "#word li")[0]


def test_control_enter_predicts(page: Browser) -> None:
    page.type("#field-", "Anna left\ue009\ue007")
    page.wait("document.querySelector('#results article')")


def test_layer_weights_are_bars(page: Browser) -> None:
    assert texts(page, "#weights dt") == ["layer 0", "layer 1", "layer 2"]
    assert texts(page, "#weights h3") == ["elmo.mix, scale 1.10"]


def test_nothing_is_wider_than_a_phone(page: Browser) -> None:
    page.resize(PHONE, 800)
    for run, fields in {
        "ner": {"lines": "Anna " + "x" * 200},
        "srl": {"lines": "The company bought shares sold last week " + "y" * 100},
        "topics": {"lines": "a"},
    }.items():
        predict(page, run, **fields)
        assert page.run("return document.documentElement.scrollWidth <= window.innerWidth"), run


def test_errors_are_told_and_the_page_goes_on(window: Browser) -> None:
    with running(canned_server(max_characters=20)) as url:
        window.open(url)
        window.wait("document.querySelector('#field-')")
        window.type("#field-", "x" * 30)
        window.click("#predict")
        window.wait("document.getElementById('problem').textContent")
        assert "20 characters" in window.text("#problem")
    window.errors()


def test_a_server_of_encoders_has_no_form(window: Browser) -> None:
    job = canned_server().job
    with running(Server([], ENCODERS, {}, job=job, token=None, hosts=None)) as url:
        window.open(url)
        window.wait("document.getElementById('results').textContent")
        assert "/embed" in window.text("#results")
        assert window.run("return document.getElementById('form').hidden")
    window.errors()


def test_the_token_is_asked_for(window: Browser) -> None:
    with running(canned_server(token="secret")) as url:
        window.open(url)
        window.wait("!document.getElementById('login').hidden")
        window.type("#token", "wrong\ue007")
        window.wait("!document.getElementById('problem').hidden")
        window.run("document.getElementById('token').value = ''")
        window.type("#token", "secret\ue007")
        window.wait("!document.getElementById('form').hidden")
    window.errors()
