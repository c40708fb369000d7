from __future__ import annotations

import errno
import fcntl
import gzip
import io
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock
from fsspec.implementations.memory import MemoryFileSystem

from elmo_framework.commands.main import main
from elmo_framework.config import registry
from elmo_framework.config.registry import members
from elmo_framework.corpus import manifest, tokenize, tokenized_blocks
from elmo_framework.corpus import prepare as module
from elmo_framework.corpus.blocks import read_blocks
from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.manifest import Manifest
from elmo_framework.corpus.prepare import prepare
from elmo_framework.corpus.tokenize import TokenizedBlock
from elmo_framework.data.pieces import read_pieces
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, RunError, StoppedError
from elmo_framework.io.outputs import Output, check_outputs
from elmo_framework.io.remote import as_path
from elmo_framework.io.resumable_output import ResumableOutput
from elmo_framework.tasks.language_modeling.task import LanguageModelingTask
from tests.unit.corpus.conftest import TEXT, Make, contents, many_sentences, read, sentences


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenized_blocks, "BLOCK_BYTES", 1000)


def counts(corpus: Path) -> dict[str, Any]:
    return json.loads((corpus / "corpus.json").read_text())["counts"]


def words_of(corpus: Path, name: str = "vocabulary.txt") -> list[str]:
    return (corpus / name).read_text().splitlines()


def vocabulary(corpus: Path) -> dict[str, int]:
    return dict(LanguageModelingTask().count(read(corpus / "training"))["words"])


def test_every_file_of_a_corpus_is_protected(make: Make) -> None:
    corpus = make(held_out=1)
    for path in contents(corpus):
        with pytest.raises(RunError, match="is a part of the corpus"):
            check_outputs([Output(corpus / path, "--output-file", force=True)], [])


def test_sentences_are_the_lines_that_are_not_blank(make: Make) -> None:
    corpus = make()
    assert sentences(corpus / "training") == [
        "the cat sat .",
        "the dog sat",
        "the cat ran .",
        "the cat sat .",
    ]
    assert counts(corpus)["blank_lines"] == 1


def test_vocabulary_has_special_then_frequent_words(make: Make) -> None:
    frequent = ["<S>", "</S>", "<UNK>", "the", ".", "cat", "sat"]
    assert words_of(make()) == [*frequent, "dog", "ran"]
    assert words_of(make(name="b", min_count=2)) == frequent
    assert words_of(make(name="c", max_vocabulary_size=2)) == frequent[:5]


def test_words_that_a_vocabulary_file_cannot_have_are_unknown(make: Make) -> None:
    corpus = make("a !!!MAXTERMID a\n!!!MAXTERMID b\n")
    assert words_of(corpus) == ["<S>", "</S>", "<UNK>", "a", "b"]
    assert counts(corpus)["parts"]["training"]["unknown_words"] == 2
    assert sentences(corpus / "training") == ["a !!!MAXTERMID a", "!!!MAXTERMID b"]


def test_unknown_words_are_counted(make: Make) -> None:
    corpus = make(min_count=2)
    assert counts(corpus)["parts"]["training"] == {"sentences": 4, "words": 15, "unknown_words": 2}
    assert counts(corpus)["distinct_words"] == 8  # with the boundaries of sentences


def test_a_vocabulary_file_keeps_its_order_and_words(make: Make, tmp_path: Path) -> None:
    given = tmp_path / "vocab.txt"
    given.write_text("<S>\n</S>\n<UNK>\nsat\nnever\nthe\n")
    corpus = make(vocabulary=given)
    assert words_of(corpus) == words_of(tmp_path, "vocab.txt")
    kept = sorted((-count, word) for word, count in vocabulary(corpus).items())
    assert [word for _, word in kept] == ["sat", "never", "the"]


def test_vocabulary_is_checked_before_the_text_is_read(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vocab.txt").write_text("the\n")
    with pytest.raises(DataError, match=r"vocab\.txt:1: .*'the' in place of <S>"):
        make(vocabulary=tmp_path / "vocab.txt")
    assert not capsys.readouterr().err


def test_warns_about_a_vocabulary_that_does_not_fit(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "vocab.txt"
    given.write_text("<S>\n</S>\n<UNK>\nThe\nCat\n.\n")
    make(vocabulary=given)
    message = capsys.readouterr().err
    assert "6 distinct words; the vocabulary has 3\n" in message  # without boundaries and <UNK>
    assert "warning: 80% of the words are not in the vocabulary" in message


def test_warns_about_a_text_of_four_lines(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make("a\nb\nc\nd\n", held_out=0.01)
    said = capsys.readouterr().err
    assert "warning: 4 words: enough to try the commands, too few for a useful biLM" in said
    assert "warning: no held-out sentences: train without early stopping" in said
    assert "`-o validation_data_path=null`, or pass a number of sentences to --held-out" in said


def test_warns_of_a_number_that_is_too_small_for_the_copies_of_a_sentence(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make("a\n" * 5 + "b\n" * 5, held_out=2)
    assert "or pass a larger number to --held-out: equal" in capsys.readouterr().err


def test_words_above_48_bytes_are_counted_and_stay(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    fits, long = "x" * 48, "ä" * 25
    corpus = make(f"{fits} {long} {long}\n")
    assert counts(corpus)["cut_words"] == {"distinct": 1, "all": 2}
    assert "longer than 48 bytes: 1 word (2 times" in capsys.readouterr().err
    assert sentences(corpus / "training") == [f"{fits} {long} {long}"]


def test_warns_about_boundaries_in_the_text(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make("<S> a </S>\n")
    assert "warning: the training part contains <S> or </S> 2 times" in capsys.readouterr().err


def test_no_held_out_sentence_is_in_the_training_part(make: Make) -> None:
    corpus = make(many_sentences(), held_out=0.2)
    training, held_out = (set(sentences(corpus / part)) for part in ("training", "held_out"))
    assert not training & held_out
    all_sentences = {" ".join(line.split()) for line in many_sentences().splitlines()}
    assert training | held_out == all_sentences
    assert 0.15 < len(held_out) / len(all_sentences) < 0.25


def test_held_out_sentences_do_not_depend_on_order(make: Make) -> None:
    lines = many_sentences().splitlines(keepends=True)
    first = make("".join(lines), "a", held_out=50)
    second = make("".join(reversed(lines)), "b", held_out=50)
    assert sorted(sentences(first / "held_out")) == sorted(sentences(second / "held_out"))
    assert 40 < len(sentences(first / "held_out")) <= 50


def test_only_the_training_part_is_counted(make: Make) -> None:
    corpus = make(many_sentences(), held_out=0.5)
    training = " ".join(sentences(corpus / "training")).split()
    counted = vocabulary(corpus)
    assert {word: training.count(word) for word in counted} == counted
    assert set(counted) == set(training)


def test_a_text_without_words_is_refused(make: Make) -> None:
    with pytest.raises(DataError, match=r"corpus\.txt: no sentences to train on"):
        make("\n \n")


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\nbad \xff\n")
    with pytest.raises(DataError, match=r"a\.txt:2: not valid UTF-8 text"):
        prepare(PreparationJob([tmp_path / "a.txt"], tmp_path / "corpus"))
    assert not (tmp_path / "corpus").exists()


def test_standard_input_is_read(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TEXT.encode())))
    prepare(PreparationJob([Path("-")], tmp_path / "other", held_out=0.0))
    assert contents(tmp_path / "other") == contents(make())


def test_raw_text_is_tokenized(make: Make) -> None:
    corpus = make("He came. She didn't leave!\n", tokenizer="spacy")
    assert sentences(corpus / "training") == ["He came .", "She did n't leave !"]


def test_sentence_splitter_may_differ_from_tokenizer(make: Make) -> None:
    spacy = {"type": "spacy", "language": "en"}  # as in a config
    corpus = make("He came. She left.\n", tokenizer=spacy, sentence_splitter="whitespace")
    assert sentences(corpus / "training") == ["He came . She left ."]


@pytest.mark.usefixtures("small_blocks")
def test_several_processes_make_the_corpus_of_one(make: Make) -> None:
    text = many_sentences(500)
    one = make(text, "one", held_out=0.1)
    several = make(text, "several", held_out=0.1, num_processes=2)
    assert contents(one) == contents(several)


@pytest.mark.usefixtures("small_blocks")
def test_error_in_a_worker_process_is_reported(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_bytes(many_sentences(300).encode() + b"\xff\n")
    with pytest.raises(DataError, match=r"a\.txt:301: not valid UTF-8 text"):
        prepare(PreparationJob([text], tmp_path / "corpus", num_processes=2))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (ValueError("too long"), r"a\.txt:2: too long"),
        (["a\nb"], r"a\.txt: the tokenizer made the word 'a\\nb', which has a line end"),
        (["a", ""], r"a\.txt: the tokenizer made the word '', which is empty"),
    ],
)
def test_what_a_tokenizer_cannot_split_is_named(
    tmp_path: Path, words: list[str] | ValueError, message: str
) -> None:
    def split(line: str) -> list[list[str]]:
        if line != "bad":
            return [line.split()]
        if isinstance(words, ValueError):
            raise words
        return [words]

    path = tmp_path / "a.txt"
    path.write_text("good\nbad\n")
    (block,) = read_blocks([path], 100)
    with pytest.raises(DataError, match=message):
        TokenizedBlock.of(block, split)


class Failing:
    """Cuts a number of blocks, and then fails or gets a signal."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        after: int,
        error: BaseException | signal.Signals,
    ) -> None:
        self.left, self.error, self.cut = after, error, TokenizedBlock.of
        monkeypatch.setattr(tokenize, "TokenizedBlock", SimpleNamespace(of=self.of))

    def of(self, *arguments: Any) -> TokenizedBlock:
        if not self.left and isinstance(self.error, BaseException):
            raise self.error
        if not self.left:
            os.kill(os.getpid(), self.error)
        self.left -= 1
        return self.cut(*arguments)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (signal.SIGINT, StoppedError),
        (signal.SIGTERM, StoppedError),
        (OSError(errno.ENOSPC, "disk full"), RunError),
    ],
)
def test_resumed_job_tokenizes_no_block_again(
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: OSError | signal.Signals,
    raised: type[Exception],
) -> None:
    text = many_sentences(300)
    with monkeypatch.context() as patch:
        Failing(patch, 3, error)
        with pytest.raises(raised, match="resume with --resume"):
            make(text)
    assert not (tmp_path / "corpus").exists()
    with pytest.raises(RunError, match="interrupted job; resume it with --resume"):
        make(text)
    counter = Failing(monkeypatch, 1000, error)
    make(text, resume=True)
    num_resumed, counter.left = 1000 - counter.left, 1000
    make(text, "whole")
    assert num_resumed == 1000 - counter.left - 3 > 0
    assert contents(tmp_path / "corpus") == contents(tmp_path / "whole")
    assert not (tmp_path / "corpus.partial").exists()


@pytest.mark.usefixtures("small_blocks")
def test_missing_block_file_is_tokenized_again(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = many_sentences(300)
    with monkeypatch.context() as patch:
        Failing(patch, 3, KeyboardInterrupt())
        with pytest.raises(StoppedError):
            make(text)
    (tmp_path / "corpus.partial/draft-00001.npz").unlink()
    make(text, resume=True)
    assert contents(tmp_path / "corpus") == contents(make(text, "whole"))


def test_interrupt_ends_processes_within_their_blocks(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tokenizer of this test never returns: a job that waited for it would not end."""
    os.mkfifo(tmp_path / "started")
    (tmp_path / "endless_tokenizer.py").write_text(
        "import threading\n"
        "from elmo_framework.data.tokenizer import Tokenizer\n"
        "@Tokenizer.register('endless')\n"
        "class Endless(Tokenizer):\n"
        "    def sentences(self, text):\n"
        "        return [text]\n"
        "    def words(self, sentence):\n"
        f"        open({str(tmp_path / 'started')!r}, 'w').close()\n"
        "        threading.Event().wait()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry._members, Tokenizer, dict(members(Tokenizer)))

    def interrupted(*_: object, **__: object) -> None:
        (tmp_path / "started").open().close()
        raise KeyboardInterrupt

    monkeypatch.setattr(tokenized_blocks, "BLOCK_BYTES", 10)
    monkeypatch.setattr(tokenize, "wait", interrupted)
    with pytest.raises(StoppedError, match="interrupted; resume with --resume"):
        make(tokenizer="endless", packages=["endless_tokenizer"], num_processes=2)


def test_missing_text_is_not_reported_as_written(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    Failing(monkeypatch, 0, FileNotFoundError(errno.ENOENT, "No such file", "a.txt"))
    with pytest.raises(
        RunError, match=r"^a\.txt: No such file; fix this, then resume with --resume"
    ):
        make()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("changed", ["other words here .\n" * 60, many_sentences(30)])
def test_other_text_does_not_resume_the_job(
    make: Make, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    with monkeypatch.context() as patch:
        Failing(patch, 3, KeyboardInterrupt())
        with pytest.raises(StoppedError):
            make(many_sentences(300))
    with pytest.raises(RunError, match="the text is not the one that the interrupted job read"):
        make(changed, resume=True)


@pytest.mark.usefixtures("small_blocks")
def test_remote_text_is_the_local_text_and_resumes_unchanged(
    make: Make, monkeypatch: pytest.MonkeyPatch, memory: MemoryFileSystem, tmp_path: Path
) -> None:
    text = many_sentences(300).encode()
    memory.pipe("/wiki/1.txt.gz", gzip.compress(text[:4000]))
    memory.pipe("/wiki/2.txt", text[4000:])
    remote = {"texts": [as_path("memory://wiki/*")]}
    with monkeypatch.context() as patch:
        Failing(patch, 3, KeyboardInterrupt())
        with pytest.raises(StoppedError):
            make(**remote)
    memory.pipe("/wiki/1.txt.gz", gzip.compress(b"other " + text[:4000]))
    with pytest.raises(RunError, match="the text is not the one that the interrupted job read"):
        make(**remote, resume=True)
    memory.pipe("/wiki/1.txt.gz", gzip.compress(text[:4000]))
    make(**remote, resume=True)
    (tmp_path / "1.txt").write_bytes(text[:4000])
    (tmp_path / "2.txt").write_bytes(text[4000:])
    make(texts=[tmp_path / "1.txt", tmp_path / "2.txt"], name="local")
    assert contents(tmp_path / "corpus") == contents(tmp_path / "local")


@pytest.mark.usefixtures("small_blocks")
def test_other_tokenizer_does_not_resume_the_job(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        Failing(patch, 3, KeyboardInterrupt())
        with pytest.raises(StoppedError):
            make(many_sentences(300))
    with pytest.raises(RunError, match="tokenizer was 'whitespace' and is 'characters'"):
        make(many_sentences(300), tokenizer="characters", resume=True)


@pytest.mark.parametrize("after", [0, 1, 5])
def test_full_disk_leaves_no_corpus(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, after: int
) -> None:
    calls = iter(range(100))
    written = manifest.EntryWriter.write

    def write(self: manifest.EntryWriter, content: bytes) -> None:
        if next(calls) >= after:
            raise OSError(errno.ENOSPC, "No space left on device")
        written(self, content)

    with monkeypatch.context() as patch:
        patch.setattr(manifest.EntryWriter, "write", write)
        with pytest.raises(RunError, match="No space left on device; fix this, then resume"):
            make()
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"corpus.txt", "corpus.partial"}
    make(resume=True)
    assert contents(tmp_path / "corpus") == contents(make(name="other"))


class Killed(BaseException):
    """Stands for a signal that no one can catch."""


@pytest.fixture
def finished(make: Make, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus whose job was killed before it could tidy up."""

    def killing(self: ResumableOutput) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ResumableOutput, "finish", killing)
        with pytest.raises(Killed):
            make()
    return make(name="whole").with_name("corpus")


def test_resume_of_a_finished_corpus_only_removes_leftovers(
    finished: Path, make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = finished.with_name("corpus.partial")
    assert partial.exists()
    with pytest.raises(RunError, match="already exists; pass --force to overwrite it"):
        make()
    capsys.readouterr()
    monkeypatch.setattr(module, "assemble", None)
    make(resume=True)
    assert contents(finished) == contents(finished.with_name("whole"))
    assert "4 sentences" in "".join(capsys.readouterr())
    assert not partial.exists()


def test_finished_corpus_is_not_taken_for_another(finished: Path, make: Make) -> None:
    with pytest.raises(RunError, match="already exists; pass --force to overwrite it"):
        make(min_count=2, resume=True)
    with pytest.raises(RunError, match="the text is not the one that the interrupted job read"):
        make("another text\n", resume=True)
    make(min_count=2, resume=True, force=True)
    assert words_of(finished) != words_of(finished.with_name("whole"))
    assert not finished.with_name("corpus.partial").exists()


@pytest.mark.usefixtures("small_blocks")
def test_unfinished_job_is_not_taken_for_finished(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make(many_sentences(300))
    with monkeypatch.context() as patch:
        Failing(patch, 1, KeyboardInterrupt())
        with pytest.raises(StoppedError):
            make(many_sentences(200), force=True)
    with pytest.raises(RunError, match="already exists; pass --force to overwrite it"):
        make(many_sentences(200), resume=True)
    make(many_sentences(200), resume=True, force=True)
    assert len(sentences(corpus / "training")) == 200


def test_a_link_to_a_corpus_is_replaced_by_the_corpus(make: Make, tmp_path: Path) -> None:
    other = make("b\n", name="other")
    (tmp_path / "corpus").symlink_to("other")
    make("a\n", force=True)
    assert sentences(tmp_path / "corpus/training") == ["a"]
    assert sentences(other / "training") == ["b"]


def test_a_corpus_is_replaced_by_force_only(make: Make) -> None:
    corpus = make()
    with pytest.raises(RunError, match="already exists; pass --force to overwrite it"):
        make("b\n")
    make("b\n", force=True)
    assert sentences(corpus / "training") == ["b"]


def test_other_folder_than_a_corpus_is_not_replaced(make: Make, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/mine.txt").write_text("mine")
    with pytest.raises(RunError, match="is not a prepared corpus; --force will not overwrite it"):
        make(force=True)


def test_two_jobs_do_not_write_one_corpus(make: Make, tmp_path: Path) -> None:
    (tmp_path / "corpus.partial").mkdir()
    (tmp_path / "corpus.partial/done.jsonl").write_text("{}\n")
    with (
        FileLock(tmp_path / ".corpus.partial.lock"),
        pytest.raises(RunError, match="another job is writing here"),
    ):
        make()


def test_the_lock_file_is_removed_before_the_lock_is_released(make: Make, tmp_path: Path) -> None:
    lock = tmp_path / ".corpus.partial.lock"
    workplace = ResumableOutput(tmp_path / "corpus", flag="--output-dir")
    unlink, held = Path.unlink, list[bool]()

    def unlinking(path: Path, missing_ok: bool = False) -> None:
        if path == lock:
            with path.open() as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.append(True)
        unlink(path, missing_ok=missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", unlinking)
        with workplace.locked():
            assert lock.exists()
    assert held == [True]
    assert not lock.exists()


@pytest.mark.parametrize("output", [".", "..", "/"])
def test_existing_special_folder_is_refused_as_corpus(make: Make, output: str) -> None:
    with pytest.raises(RunError, match="a corpus needs a new folder; choose a name"):
        make(output=Path(output))


@pytest.mark.parametrize("limit", [{"min_count": 2}, {"max_vocabulary_size": 9}])
def test_a_vocabulary_file_cannot_be_limited(
    make: Make, tmp_path: Path, limit: dict[str, int]
) -> None:
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nthe\n")
    with pytest.raises(RunError, match="remove --min-count and --max-vocabulary-size"):
        make(vocabulary=tmp_path / "vocab.txt", **limit)


@pytest.mark.parametrize("number", ["-1", "1.5", "nan", "inf", "some"])
def test_invalid_number_of_sentences_is_refused(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prepare", "text", "--output-dir", "corpus", f"--held-out={number}"]) == 2
    assert f"{number!r} is neither a number of sentences nor a ratio" in capsys.readouterr().err


def test_missing_folders_are_made(make: Make, tmp_path: Path) -> None:
    make(output=tmp_path / "new/folders/corpus")
    assert (tmp_path / "new/folders/corpus/corpus.json").exists()


def test_more_sentences_than_there_are_cannot_be_held_out(make: Make) -> None:
    with pytest.raises(DataError, match="cannot hold out 4 sentences of 4"):
        make(held_out=4)


def test_manifest_has_texts_and_options(make: Make, tmp_path: Path) -> None:
    settings = Manifest.read(make(min_count=2)).settings
    assert settings["texts"] == [str(tmp_path / "corpus.txt")]
    assert (settings["tokenizer"], settings["min_count"]) == ("whitespace", 2)


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
def test_a_file_whose_name_is_not_utf_8_is_read(make: Make, tmp_path: Path) -> None:
    corpus = make(name="te\udcffxt")
    assert Manifest.read(corpus).settings["texts"] == [str(tmp_path / "te\udcffxt.txt")]


def test_block_without_words_can_be_saved_and_loaded(tmp_path: Path) -> None:
    empty = TokenizedBlock.of(
        tokenize.Block(0, (), 0), tokenize.TextTokenizer("whitespace", "whitespace")
    )
    empty.save(tmp_path / "draft.npz")
    assert TokenizedBlock.load(tmp_path / "draft.npz").words == []
    assert len(tokenize.load_hashes(tmp_path / "draft.npz")) == 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["settings.json", "done.jsonl"])
@pytest.mark.parametrize("content", [b"\xff\n", b"[3]\n", b"3\n", b'{"number": 0}\n'])
def test_damaged_notes_of_an_interrupted_job_are_named(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: bytes
) -> None:
    with monkeypatch.context() as patch:
        Failing(patch, 1, KeyboardInterrupt())
        with pytest.raises(StoppedError):
            make(many_sentences(100))
    (tmp_path / "corpus.partial" / name).write_bytes(content)
    with pytest.raises(RunError) as caught:
        make(many_sentences(100), resume=True)
    assert str(caught.value).startswith(f"{tmp_path / 'corpus.partial'}")
    make(many_sentences(100), force=True)


def test_pieces_are_learned_from_the_training_part(make: Make, capsys) -> None:
    text = "".join(f"lowest lower {'x' * (i % 9 + 1)} .\n" for i in range(400))
    corpus = make(text, held_out=5, num_pieces=300)
    statistics = counts(corpus)["pieces"]
    indexer = read_pieces(corpus / "pieces.json", max_pieces=48)
    words = [word for sentence in sentences(corpus / "training") for word in sentence.split()]
    assert statistics["distinct"] == indexer.num_pieces <= 300
    assert statistics["per_word"] == pytest.approx((indexer.ids(words) > 0).sum() / len(words))
    assert (indexer.ids(["lowest"]) > 0).sum() == 1
    assert "pieces, " in capsys.readouterr().err
    (corpus / "pieces.json").write_text("{}")
    with pytest.raises(DataError, match=r"pieces.json: has 2 of"):
        read(corpus / "training")


def test_fewer_pieces_than_bytes_are_refused(make: Make) -> None:
    with pytest.raises(RunError, match="--pieces 200: the 256 bytes are pieces too"):
        make(num_pieces=200)
