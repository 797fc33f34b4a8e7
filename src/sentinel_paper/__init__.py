"""The experiments of the SENTINEL paper (UAI 2022), one file per table or figure.

An experiment is a module with

* ``NAME``: what ``sentinel reproduce`` calls it;
* ``SETTINGS``: a frozen dataclass, the values of the paper;
* ``PAPER``: the claims of the paper that it decides, `claims.Claim` values by name;
* ``run(settings, report)``: the computation, which returns records and reports its progress, ``report(done, total)``;
* ``findings(records)``: for every claim whether it holds in these records, and why;
* ``render(records, out)``: writes a figure, the numbers and a page into a folder, and returns the files.

Another experiment is its module and its lines in `registry`: one in the list of experiments, and a statement for every
claim, citing it as ``experiment/claim``. `output.publish` writes the page of any experiment, and
`trained_page.publish_grid` that of a grid of trained agents. Only public names of `sentinel_rl` are used.
"""
