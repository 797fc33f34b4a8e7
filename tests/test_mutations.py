"""The list of mutations follows the code."""

from tests.mutations import MUTATIONS, ROOT


def test_every_mutation_fits_the_code_and_names_tests_that_are_there():
    for mutation in MUTATIONS:
        mutation.applied((ROOT / "src" / mutation.file).read_text())
        for test in mutation.tests:
            file, _, name = test.partition("::")
            assert not name or f"def {name.partition('[')[0]}(" in (ROOT / "tests" / file).read_text(), test
