"""The experiments of the SENTINEL paper (UAI 2022), one file per table or figure.

An experiment is a module with

* ``SETTINGS``: a frozen dataclass, the values of the paper;
* ``PAPER``: what the paper claims, as `claims.Claim` values;
* ``run(settings, report)``: the computation, returning records and telling ``report(done, total)``;
* ``findings(records)``: for every claim whether it holds in these records, and why;
* ``render(records, out)``: a figure, the numbers and a page in a folder, returning the files.

`registry` lists them; ``sentinel reproduce`` runs them. Only public names of `sentinel_rl` are used.
"""
