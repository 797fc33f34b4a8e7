"""``sentinel`` in a process of its own: what is imported, and how it ends."""

HEAVY = "print([m for m in ('jax', 'matplotlib', 'scipy', 'equinox') if m in sys.modules], file=sys.stderr)"


def test_help_is_quick_and_teaches(sentinel):
    done = sentinel("--help", code=HEAVY)
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"
    for word in ("demo", "reproduce", "risk", "doctor", "sentinel reproduce --list"):
        assert word in done.stdout


def test_help_of_a_command_and_the_list_are_quick_too(sentinel):
    for arguments in (("reproduce", "--help"), ("reproduce", "--list"), ("demo", "--help"), ("--version",)):
        done = sentinel(*arguments, code=HEAVY)
        assert (done.returncode, done.stderr.strip()) == (0, "[]"), arguments


def test_an_experiment_from_the_command_line(sentinel, tmp_path):
    done = sentinel("reproduce", "ftrl-gaussians")
    assert done.returncode == 0, done.stderr
    assert "does not hold" in done.stdout
    assert (tmp_path / "results" / "ftrl-gaussians" / "ftrl-gaussians.md").exists()


def test_a_folder_that_cannot_be_written(sentinel, tmp_path):
    (tmp_path / "file").write_text("")
    done = sentinel("reproduce", "ftrl-gaussians", "--out", str(tmp_path / "file" / "out"))
    assert done.returncode == 74
    assert "cannot write into the folder" in done.stderr
    assert "--out" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_of_another_package(sentinel, tmp_path):
    (tmp_path / "plugin.py").write_text("def hello(name: str) -> None:\n    print(f'hello {name}')\n")
    done = sentinel("hello", "world", commands={"hello": "plugin:hello", "broken": "no_such_module:x"})
    assert done.returncode == 0
    assert done.stdout == "hello world\n"
    assert "'broken' (no_such_module:x) cannot be loaded" in done.stderr
