"""Real servers standing in for outside services; each can be told to be slow, refuse, cut off and lie."""
