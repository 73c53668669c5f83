"""Quality tasks: prompts whose answer is known, one file a task.

Scored by teacher forcing (``scoring``): if every answer token is the likeliest given the text before it, greedy
decoding would have written the answer, so one replay a cell is enough.
"""

from kvviz.analysis.tasks.base import Encode, Prompt, Task
from kvviz.analysis.tasks.induction import Induction
from kvviz.analysis.tasks.pairs import Pairs, PairsAskedFirst
from kvviz.analysis.tasks.passkey import Multikey, Passkey
from kvviz.analysis.tasks.questions import Questions
from kvviz.analysis.tasks.stream import Stream

__all__ = ["TASKS", "VARIANTS", "Encode", "Prompt", "Task"]

TASKS: dict[str, Task] = {kind.name: kind() for kind in (Passkey, Multikey, Pairs, Induction, Stream, Questions)}
VARIANTS: dict[str, Task] = {PairsAskedFirst.name: PairsAskedFirst()}  # of a task, to be seen beside it
