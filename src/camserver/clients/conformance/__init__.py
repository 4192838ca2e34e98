"""Whether an analyzer keeps the analyzer contract: checks for anybody's analyzer, run over HTTP.

`running.run_checks` runs them; `findings` says what comes out, `checks` and `refusals` hold what is checked. What
can't be seen from outside (that a vocabulary survives a restart) is not checked.
"""
