"""Exit codes, messages and the commands of the library."""

import numpy as np
import pytest
import typer

from sentinel_rl import __version__
from sentinel_rl.cli import app as app_module
from sentinel_rl.cli import main


@pytest.fixture
def run(capsys, monkeypatch):
    """Call ``sentinel`` here, returning exit code, output and complaints."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return call


@pytest.fixture
def failing(monkeypatch):
    """Make ``sentinel fail`` raise an error."""

    def install(error):
        def fail():
            raise error

        app = typer.Typer(pretty_exceptions_enable=False)
        app.callback()(lambda: None)
        app.command("fail")(fail)
        monkeypatch.setattr(app_module, "build", lambda: app)

    return install


def test_version(run):
    assert run("--version") == (0, f"sentinel-rl {__version__}\n", "")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("alpha = 2 is not allowed"), 2, "error: alpha = 2 is not allowed"),
        (FileNotFoundError(2, "No such file", "x.csv"), 74, "error: x.csv: No such file"),
        (OSError(28, "No space left on device"), 74, "error: No space left on device"),
        (ZeroDivisionError("division by zero"), 1, "error: unexpected ZeroDivisionError: division by zero"),
    ],
)
def test_errors_become_messages_and_codes(run, failing, error, code, message):
    failing(error)
    ended, _, complaint = run("fail")
    assert ended == code
    assert message in complaint
    assert "Traceback" not in complaint


def test_debug_shows_the_traceback_wherever_it_stands(run, failing):
    failing(ValueError("bad"))
    for arguments in (("--debug", "fail"), ("fail", "--debug")):
        code, _, complaint = run(*arguments)
        assert code == 2
        assert "Traceback" in complaint


def test_unknown_command_and_option(run):
    code, _, complaint = run("docter")
    assert code == 2
    assert "doctor" in complaint
    assert run("demo", "--oout", "x")[0] == 2


def test_doctor(run):
    code, out, _ = run("doctor")
    assert code == 0
    for word in ("sentinel-rl", __version__, "jax", "numpy", "cpu", "devices"):
        assert word in out


def test_demo(run, tmp_path):
    code, out, _ = run("demo", "--risk", "--out", str(tmp_path / "new"))
    assert code == 0
    assert "composite" in out
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["demo.png", "demo.svg"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "returns.csv"
    path.write_text("first,second\n1,5\n2,6\n3,7\n4,8\n")
    return str(path)


def test_risk_of_columns(run, table):
    code, out, _ = run("risk", "cvar:0.25", table)
    assert code == 0
    rows = [line.split() for line in out.splitlines() if "first" in line or "second" in line]
    assert [[float(row[i]) for i in (3, 5)] for row in rows] == [[2.5, 1.0], [6.5, 5.0]]


@pytest.mark.parametrize(("measure", "value"), [("cvar:0.5 o cvar:0.5", "1.5"), ("additive o cvar:0.5", "3.5")])
def test_risk_of_models(run, table, measure, value):
    code, out, _ = run("risk", measure, table)
    assert code == 0
    assert value in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n", "line 2: could not convert string to float: 'x'"),
        ("a,b\n1,2\n\n3\n", "line 4: 1 cells under 2 column names"),
        ("a,b\n", "holds no samples"),
        ("", "holds no samples"),
        ("a\nnan\n", "samples must be finite"),
    ],
)
def test_bad_tables(run, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    code, _, complaint = run("risk", "cvar:0.5", str(tmp_path / "bad.csv"))
    assert code == 2
    assert message in complaint


def test_bad_measure_and_missing_table(run, table, tmp_path):
    code, _, complaint = run("risk", "cvr:0.5", table)
    assert code == 2
    assert "did you mean 'cvar'" in complaint
    assert run("risk", "cvar:0.5", str(tmp_path / "none.csv"))[0] == 74


def test_demo_examples_keep_the_order_of_the_risks():
    from sentinel_rl.cli.demo import hundred_models, safe_or_uncertain

    tails = hundred_models(seed=3)
    assert (tails.total <= tails.additive + 1e-9).all()
    assert (tails.composite <= tails.additive + 1e-9).all()
    choices = safe_or_uncertain()
    assert all(choice.composite <= choice.additive for choice in choices)
    assert not np.isnan([choice.composite for choice in choices]).any()
