"""Many models at once: the output, the files and the result for each."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from lxml import html

import bridge as library
from tests.support.command_line import bridge

MODELS = Path(__file__).parents[2] / "roundtrip_models"
GOOD = sorted(MODELS.glob("if_[bc]*.onnxtxt"))[:8]
IF = MODELS / "if_before_growing_chain.onnxtxt"
posix = pytest.mark.skipif(os.name != "posix", reason="the names of files hold any character")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten models: eight right ones, a broken one, and one beside the conversion of another."""
    made = tmp_path_factory.mktemp("models")
    for path in GOOD:
        shutil.copy(path, made)
    (made / "broken.onnx").write_bytes(b"no model")
    library.convert(IF, made / "wrong.onnx")
    ir = made / "wrong.xml"
    library.convert(IF, ir)
    text = ir.read_text(encoding="utf-8")
    assert 'type="Multiply"' in text
    ir.write_text(text.replace('type="Multiply"', 'type="Add"'), encoding="utf-8")
    (made / "other.xml").write_text("<html/>")
    return made


def test_a_folder_is_checked(folder: Path, tmp_path: Path) -> None:
    """The second time, verdicts come from the cache: no process starts."""
    junit, cache = tmp_path / "report.xml", tmp_path / "cache"
    options = ("--jobs", "2", "--junit", junit, "--cache", cache, "--samples", "1")
    first = bridge("check", folder, *options)
    assert first.code == 1
    rows = [line.split() for line in first.out.splitlines() if line.startswith(str(folder))]
    verdicts = {Path(row[0]).name: row[1] for row in rows}
    assert verdicts == dict.fromkeys([path.name for path in GOOD], "equal") | {
        "broken.onnx": "nothing",
        "wrong.onnx": "different",
    }
    assert "10 models: " in first.out and "8 equal" in first.out
    assert "10 of 10: " in first.err and "is not an ONNX model" in first.err

    suite = ElementTree.parse(junit).getroot()
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["10", "1", "1"]
    (failure,), (error,) = suite.iter("failure"), suite.iter("error")
    assert "first value that differs" in str(failure.text)
    assert "broken.onnx" in str(error.get("message"))

    again = bridge("check", folder, *options, "--json")
    assert again.code == 1
    data = json.loads(again.out)
    assert data["counts"] == {"equal": 8, "different": 1, "nothing compared": 1}
    broken = str(folder / "broken.onnx")  # it was not compared
    assert [m["model"] for m in data["models"] if not m["cached"]] == [broken]
    (wrong,) = (model for model in data["models"] if model["verdict"] == "different")
    assert wrong["other"] == str(folder / "wrong.xml")
    assert wrong["report"]["fault"]["who"] == "file"

    weights = folder / "wrong.bin"
    weights.write_bytes(weights.read_bytes() + b"more")
    changed = json.loads(bridge("check", folder, *options, "--json").out)
    assert [m["model"] for m in changed["models"] if not m["cached"]] == [broken, wrong["model"]]


@pytest.mark.parametrize(
    "given",
    [
        "{folder}",
        "{folder}/wr*.onnx",
        "{folder}/**/wrong.onnx",
        "{folder}/wr*.xml",
        "{folder}/../{folder.name}/wr*.onnx",
        "--jobs 1 {folder}/wrong.onnx",
        "--jobs 1 {folder}/wrong.xml",
        "--hook {folder}/wrong.onnx",
        "{folder}/wrong.onnx {folder}/if_bool.onnxtxt {folder}/if_and.onnxtxt",
    ],
)
def test_what_is_a_pair(given: str, folder: Path) -> None:
    """In any list of models, an IR is compared with the ONNX model of its name."""
    words = given.format(folder=folder).split()
    from bridge.cli.models import found, paired

    jobs = paired(found([Path(word) for word in words if word.startswith(str(folder))]))
    pairs = [(job.model.name, job.other.name) for job in jobs if job.other]
    assert pairs == [("wrong.onnx", "wrong.xml")]
    if given.startswith(("--hook", "{folder}/wr*.onnx")):
        finished = bridge("check", *words, "--samples", "1")
        assert finished.code == 1 and "1 different" in finished.out


def test_suffixes_in_capitals_are_a_pair(folder: Path, tmp_path: Path) -> None:
    from bridge.cli.models import paired

    shutil.copy(folder / "wrong.onnx", tmp_path / "A.ONNX")
    shutil.copy(folder / "wrong.xml", tmp_path / "A.XML")
    (job,) = paired([tmp_path / "A.ONNX", tmp_path / "A.XML"])
    assert job.other is not None and (job.model.name, job.other.name) == ("A.ONNX", "A.XML")


@pytest.mark.parametrize("name", ["wrong.onnx", "wrong.xml", "-x y.onnx"])
def test_one_of_a_pair(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line names the model that was not compared, and how to compare it."""
    for path in folder.glob("wrong.*"):
        shutil.copy(path, tmp_path / f"{Path(name).stem}{path.suffix}")
    monkeypatch.chdir(tmp_path)
    finished = bridge("check", "--samples", "1", "--", name)
    (line,) = (line for line in finished.out.splitlines() if "not compared" in line)
    command = shlex.split(line.partition(" beside it: ")[2])
    assert command[:2] == ["bridge", "check"] and len(command) == 4 + (name[0] == "-")
    assert bridge(*command[1:]).code == 1
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(folder / "wrong.onnx", alone)
    assert "not compared" not in bridge("check", "--samples", "1", alone / "wrong.onnx").out


def test_a_folder_is_converted(folder: Path, tmp_path: Path) -> None:
    finished = bridge("convert", folder, "--output-dir", tmp_path, "--jobs", "2", "--json")
    assert finished.code == 2 and "broken.onnx: is not an ONNX model" in finished.err
    data = json.loads(finished.out)
    # Converted to one format, an IR and the ONNX model of its name would have the same name.
    assert data["counts"] == {"converted": 10, "failed": 1}
    written = {Path(file["name"]).name for m in data["models"] if m["report"]
               for file in m["report"]["files"]}  # fmt: skip
    assert written == {path.name for path in tmp_path.iterdir()}
    assert {"if_bool.xml", "if_bool.bin", "wrong.onnx"} <= written


def test_subfolders_are_kept(tmp_path: Path) -> None:
    """The folder is made, and models of one name in two folders stay apart."""
    for name in ("a", "b"):
        (tmp_path / "dup" / name).mkdir(parents=True)
        shutil.copy(IF, tmp_path / "dup" / name / "m.onnxtxt")
    for number, given in enumerate((tmp_path / "dup", tmp_path / "dup" / "*" / "m.onnxtxt")):
        made = tmp_path / "made" / str(number)
        finished = bridge("convert", given, "--output-dir", made)
        assert finished.code == 0, finished.err
        assert {path.relative_to(made).as_posix() for path in made.rglob("*.xml")} == {
            "a/m.xml", "b/m.xml",
        }  # fmt: skip


def test_shards_share_the_models(folder: Path, tmp_path: Path) -> None:
    """Each model is in one shard, the largest alone; a shard may be empty."""
    shutil.copytree(folder, tmp_path / "given")
    given = tmp_path / "given"
    (given / "broken.onnx").write_bytes(b"no model" * 1_000_000)
    taken: dict[str, set[str]] = {}
    for part in ("1/3", "2/3", "3/3"):
        made = tmp_path / "made" / part[0]
        finished = bridge("convert", given, "--output-dir", made, "--json", "--shard", part)
        for model in json.loads(finished.out)["models"]:
            taken.setdefault(part, set()).add(model["model"])
    shares = list(taken.values())
    assert sum(map(len, shares)) == len(set.union(*shares)) == 11
    shares.remove({str(given / "broken.onnx")})
    sizes = [
        [sum(file.stat().st_size for file in {Path(name), Path(name).with_suffix(".bin")}
             if file.is_file() and (file.suffix != ".bin" or name.endswith(".xml")))
         for name in share]
        for share in shares
    ]  # fmt: skip
    assert abs(sum(sizes[0]) - sum(sizes[1])) <= max(map(max, sizes))
    none = bridge("convert", IF, "--output-dir", tmp_path / "none", "--shard", "2/2")
    assert none.code == 0 and "0 models" in none.out
    one = bridge("convert", IF, "--output-dir", tmp_path / "none", "--shard", "1/2")
    assert "1 model: 1 converted" in one.out


HOSTILE = "<img src=x onerror=alert(1)>|`$x`[a](b)"


@posix
def test_a_folder_of_pages(folder: Path, tmp_path: Path) -> None:
    """A table with all models, a page for each, and a summary. File names are only text."""
    given, report = tmp_path / "given", tmp_path / "report"
    given.mkdir()
    for path in (*folder.glob("wrong.*"), folder / "broken.onnx"):
        shutil.copy(path, given)
    shutil.copy(GOOD[0], given / f"{HOSTILE}.onnxtxt")
    (given / f"{HOSTILE}.onnx").write_bytes(b"no model")
    options = ("--report", report, "--samples", "1", "--cache", tmp_path / "cache")
    finished = bridge("check", given, *options)
    assert finished.code == 1 and f"wrote {report / 'index.html'}" in finished.out
    page = (report / "index.html").read_text(encoding="utf-8")
    summary = (report / "summary.md").read_text(encoding="utf-8")
    assert "<img" not in page + summary and "src=http" not in page and "`" not in summary
    tree = html.fromstring(page)
    rows = {row[0].text_content().split("/")[-1]: row for row in tree.iter("tr") if len(row) == 4}
    assert rows["wrong.xml"][1].text == "different" and f"{HOSTILE}.onnxtxt" in rows
    links = [link.get("href") for link in tree.iter("a")]
    assert len(links) == 2 and all((report / link).is_file() for link in links)
    assert {path.name for path in (report / "models").iterdir()} == {
        Path(link).name for link in links
    }
    assert "first difference" in (report / links[0]).read_text(encoding="utf-8")
    assert "4 models" in summary and "not an ONNX model" in summary and "Multiply" not in links[0]
    again = bridge("check", given, *options, "--quiet")
    assert again.code == 1 and (report / links[1]).is_file()


def of_another(report: Path) -> None:
    (report / "index.html").write_text("<!doctype html><p>of another</p>", encoding="utf-8")


def with_summary(report: Path) -> None:
    (report / "summary.md").write_text("of the user", encoding="utf-8")


def with_link(report: Path) -> None:
    (report / "models").rename(report.parent / "elsewhere")
    (report / "models").symlink_to("../elsewhere")


@posix
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (of_another, "holds other files"),
        (with_summary, "is not a summary of Bridge's"),
        (with_link, "is a link"),
    ],
)
def test_a_report_replaces_nothing_else(
    change: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    given, report = tmp_path / "given", tmp_path / "report"
    given.mkdir()
    (given / "broken.onnx").write_bytes(b"no model")
    for count in range(2):
        assert (report / "index.html").exists() == bool(count)
        assert "not an ONNX model" in bridge("check", given, "--report", report).err
    change(report)
    finished = bridge("check", given, "--report", report)
    assert finished.code == 2 and says in finished.err and not finished.out


def test_a_failure_names_the_model_and_the_whole_reason(tmp_path: Path) -> None:
    name = "long" * 40
    (tmp_path / f"{name}.onnx").write_bytes(b"no model")
    shutil.copy(IF, tmp_path)
    table = bridge("check", tmp_path, "--samples", "1").out
    (row,) = (line for line in table.splitlines() if line.startswith(f"{tmp_path / name}.onnx"))
    assert "is not an ONNX model, or is truncated (8 bytes)" in row
    converted = bridge("convert", tmp_path, "--output-dir", tmp_path / "made").out
    assert "is not an ONNX model, or is truncated (8 bytes)" in converted


def test_parts_join(folder: Path, tmp_path: Path) -> None:
    """Caches and reports of the parts may share a folder; the whole then needs no check."""
    given = tmp_path / "given"
    shutil.copytree(folder, given)
    (given / "broken.onnx").unlink()
    cache, report = tmp_path / "cache", tmp_path / "report"
    names, suites = [], set()
    for part in ("1/3", "2/3", "3/3"):
        junit = tmp_path / f"{part[0]}.xml"
        own = tmp_path / f"cache{part[0]}"
        bridge("check", given, "--samples", "1", "--shard", part, "--junit", junit, "--cache", own,
               "--report", tmp_path / f"report{part[0]}")  # fmt: skip
        shutil.copytree(own, cache, dirs_exist_ok=True)
        shutil.copytree(tmp_path / f"report{part[0]}", report, dirs_exist_ok=True)
        suite = ElementTree.parse(junit).getroot()
        suites.add(suite.get("name"))
        names += [case.get("name") for case in suite]
    whole = bridge("check", given, "--samples", "1", "--cache", cache, "--report", report, "--json")
    models = json.loads(whole.out)["models"]
    assert all(model["cached"] for model in models)
    assert sorted(names) == sorted(model["model"] for model in models) and len(suites) == 3
    assert len(list((report / "models").iterdir())) == len(models)


def test_another_model_is_one_line(tmp_path: Path) -> None:
    finished = bridge("check", MODELS / "if_bool.onnxtxt", IF, "--samples", "1")
    assert finished.code == 2 and len(finished.err.splitlines()) == 1
    assert "inputs differ: " in finished.err and "takes choose bool[], " in finished.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "{empty}"], "holds no model; give a file, or a folder"),
        (["check", "{empty}/*.onnx"], "holds no model"),
        (["convert", "{bool}", "{empty}/if_bool.onnx", "--output-dir", "{empty}"], "would be both"),
        (["convert", "{bool}", "--output-dir", "{bool}"], "is no directory"),
        (["convert", "{empty}", "{empty}/m.xml"], "with --output-dir DIR"),
        (["convert", "{bool}", "{empty}/m.xml", "--shard", "1/2"], "with --output-dir DIR"),
        (["check", "{models}", "--shard", "3/2"], "is no part of a whole"),
        (["convert", "{bool}", "{bool}", "{bool}"], "many go to --output-dir"),
        (["convert", "{bool}", ""], "an argument is empty"),
        (["check", ""], "an argument is empty"),
        (["check", "{models}", "--report", "r.html"], "--report of many models is a folder"),
        (["check", "{models}", "--report", "{models}"], "holds other files"),
        (["check", "{models}", "--inputs", "a.npz"], "--weights, --inputs"),
    ],
)
def test_what_cannot_be(arguments: list[str], says: str, tmp_path: Path) -> None:
    names = {"empty": tmp_path, "bool": MODELS / "if_bool.onnxtxt", "models": MODELS}
    finished = bridge(*(argument.format(**names) for argument in arguments))
    assert (finished.code, finished.out) == (2, "")
    assert says in finished.err and finished.err.count("Error:") == 1


def test_a_stateful_model_has_the_name_of_openvinos_pipelines(tmp_path: Path) -> None:
    """A model alone in its folder, or beside an encoder, gets the name; others keep their names."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[1,h] x, float[1,h] past) => (float[1,h] y, float[1,h] present)
    { y = Add (x, past) present = Neg (y) }"""
    model = tmp_path / "given" / "decoder.onnxtxt"
    model.parent.mkdir()
    model.write_text(text)
    for number, options in enumerate(([], ["--check"])):
        made = tmp_path / f"made{number}"
        finished = bridge("convert", model, "--stateful", "--output-dir", made, *options)
        assert finished.code == 0, finished.err
        assert {path.name for path in made.iterdir()} == {
            "openvino_model.xml", "openvino_model.bin",
        }  # fmt: skip
    shutil.copy(model, model.with_name("encoder_model.onnx"))
    bridge("convert", model, "--stateful", "--output-dir", tmp_path / "both")
    assert (tmp_path / "both" / "openvino_decoder_model.xml").is_file()
    model.with_name("encoder_model.onnx").rename(model.with_name("other.onnxtxt"))
    bridge("convert", model.parent, "--stateful", "--output-dir", tmp_path / "two")
    assert {path.stem for path in (tmp_path / "two").iterdir()} == {"decoder", "other"}
    refused = bridge("convert", model.parent, "--output-dir", tmp_path / "no", "--check")
    assert refused.code == 2 and "for one model" in refused.err
