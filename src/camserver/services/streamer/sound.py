"""Where sound stands beside the pictures: on their time, without holes, and never going back.

Pictures and sound come with clocks that have nothing to do with each other. What was heard when a picture came
belongs to that picture; from there on sound goes by its own clock, as long as that keeps with the pictures'. Browsers
that play both stop where either has a hole, so holes are filled with silence: also those of a camera that announces a
microphone and sends nothing.
"""

# Further away than this from when it came, its clock is set anew.
OFF_SEC = 0.4
# Smaller holes are none: pieces follow on one another.
HOLE_SEC = 0.1
# Sound that is so much too early is left out.
EARLY_SEC = 0.4
# Pictures are so far ahead of all sound before silence takes its place, and so far they stay ahead of that.
LAG_SEC, LAG_KEPT_SEC = 0.6, 0.2
# A hole that is larger is left: nobody waits for what is behind it.
FILL_MAX_SEC = 20.0


class SoundTimes:
    """All times in ticks of the sound's rate."""

    def __init__(self, rate: int, silence_ticks: int) -> None:
        self.rate = rate
        self._silence_ticks = silence_ticks
        self._offset: int | None = None  # what is added to the camera's times
        self._end: int | None = None  # of all that was placed

    def begin_anew(self) -> None:
        """Another connection, whose times have nothing to do with those before."""
        self._offset = None

    def begin(self, due: int) -> None:
        """The first picture: there is no sound before it."""
        if self._end is None:
            self._end = due

    def place(self, pts: int | None, lasts: int, due: int) -> tuple[range, int | None]:
        """Where silence begins that comes before a piece, and when the piece itself is played.

        `due` is when it came, on the pictures' time. None: it is too early and left out.
        """
        self.begin(due)
        assert self._end is not None
        at = due if pts is None or self._offset is None else pts + self._offset
        if abs(at - due) > OFF_SEC * self.rate:
            at = due
        if pts is not None:
            self._offset = at - pts
        if at - self._end < -EARLY_SEC * self.rate:
            return range(0), None
        filled = self._fill(at) if at - self._end > HOLE_SEC * self.rate else range(0)
        start = self._end
        self._end += lasts
        return filled, start

    def keep_up(self, due: int) -> range:
        """Where silence begins that takes the place of sound that does not come; `due` is the newest picture."""
        if self._end is None or due - self._end < LAG_SEC * self.rate:
            return range(0)
        return self._fill(due - int(LAG_KEPT_SEC * self.rate))

    def _fill(self, until: int) -> range:
        assert self._end is not None
        if until - self._end > FILL_MAX_SEC * self.rate:
            self._end = until
            return range(0)
        count = max(until - self._end, 0) // self._silence_ticks
        begin, self._end = self._end, self._end + count * self._silence_ticks
        return range(begin, self._end, self._silence_ticks)
