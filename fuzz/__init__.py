"""Fuzzing: inputs that nobody would write, and what must hold of each answer.

=================  ==========================================================================
`odd`              numbers, names and edits that break programs, as strategies of Hypothesis
`checks`           what must hold: refused in one sentence, or a result with a check of its own
`files`            targets ``csv``, ``parquet``, ``command``
`tables`           targets ``arrays``, ``frames``
`models`           target ``model``
`names`            targets ``names`` (text, Markdown, HTML), ``figures`` (SVG)
`engine`           one target in a process of its own: bytes in, time and memory bounded
`seeds`            makes the small files of ``corpus``
=================  ==========================================================================

A target is a test of Hypothesis that any bytes drive, made by atheris where it is installed, which
looks for new lines of mcllo, or else at random. ``make fuzz SECONDS=60`` runs them all.
"""
