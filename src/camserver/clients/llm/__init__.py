"""Large language models that can see, behind one interface: `questions.py` has it, `opening.py` makes a client."""
