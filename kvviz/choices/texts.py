"""Texts to try: a few presets, and the checks for an uploaded file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

MAX_UPLOAD_BYTES = 1_000_000
DEFAULT_TEXT = "story"
LONG_TEXT = "language-reference"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Preset:
    """A text to choose; positions on its pages count from ``count_from`` (0, or 1 as the papers do)."""

    name: str
    title: str
    read: Callable[[], str]
    count_from: int = 0

    def text(self) -> str:
        """Return the text."""
        return self.read()


def from_upload(data: bytes) -> str:
    """Return an uploaded text, decoded as ``decoded`` says.

    Raises:
        ValueError: the file is empty, larger than ``MAX_UPLOAD_BYTES`` or not UTF-8.
    """
    if len(data) > MAX_UPLOAD_BYTES:
        raise ValueError(
            f"The file has {len(data):,} bytes and at most {MAX_UPLOAD_BYTES:,} are allowed; upload a part of it."
        )
    return decoded(data)


def decoded(data: bytes, what: str = "The file") -> str:
    """Return UTF-8 bytes as text, newlines untouched, without a byte order mark at the start; blanks alone are a text.

    Raises:
        ValueError: there is no text, or it is not UTF-8; the sentence begins with ``what``.
    """
    # the mark names the encoding; as a token it would stand first and be taken for a sink
    start = len(_BOM) if data.startswith(_BOM) else 0
    try:
        text = data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{what} is not UTF-8 text: byte {start + error.start} (counted from 0) does not fit; "
            "save it with the encoding UTF-8 and try again."
        ) from error
    if not text:
        raise ValueError(f"{what} is empty; give at least one word.")
    return text


@cache
def _language_reference() -> str:
    from pydoc_data.topics import topics

    # sorted, because the order of the topics is not part of any promise
    return "\n".join(topics[name] for name in sorted(topics))


_STORY = """\
Mara Linden kept the lighthouse at Skerry Point, and on the first evening of November she wrote one line in the blue \
logbook: the spare key is under the third stone of the east wall. Then she lit the lamp, fed the grey cat, and sat \
down to wait for the boat from Harrow.

The boat was late. Rain came in from the west and the sea turned the colour of slate. Twice she thought she saw a \
light beyond the reef, and twice it was only the foam. At nine the wind dropped, and in the quiet she heard an engine, \
faint and uneven, like someone clearing his throat. She put on her coat, took the lantern, and went down the ninety \
steps to the landing.

It was not the boat from Harrow. It was a small green dinghy with one oar, and in it sat a boy of about twelve, wet to \
the bone, holding a wooden box on his knees. He said that his name was Tomas, that his uncle had fallen overboard near \
the reef, and that the box must not be opened before midnight. Mara did not ask why. She brought him up the ninety \
steps, gave him soup and a dry blanket, and rang the harbour on the old telephone. Nobody answered.

At eleven the lamp went out. Without it the ships would steer for the rocks, so she climbed the tower, but the door of \
the lamp room had blown shut, and the key was inside. She stood there in the dark and tried to remember what she had \
written that evening, before the rain, before the boy. Something about a stone. Something about a wall.

"The logbook," said Tomas, who had followed her with the cat in his arms. "You wrote it in the blue logbook."

They ran down together and read the first line by the light of a match. Then they went out to the east wall and \
counted the stones: one, two, three. The spare key was cold and wet. A minute before midnight the lamp of Skerry Point \
was burning again, and out by the reef, clinging to an oar, a man began to shout.

Only when his uncle was safe by the fire did Tomas lift the lid of the wooden box. Inside lay a new wick for the lamp, \
and a note in a careful hand: for Mara Linden, who keeps the light.
"""

_UNICODE = """\
A token is not a word. The line you are reading is plain English, but "naïve café" already needs more pieces than it \
has letters to spare.

中文句子里没有空格：今天天气很好，我们去公园散步。一个汉字可能要用两三个词元，刚好让人看见字节。

Emoji are worse: 😀 is several tokens, 👩\u200d👩\u200d👧 is three people held by invisible joiners, and 🇨🇭 is two \
letters that look like a flag.

Markup must stay what it is: <b>bold</b>, </s>, <script>alert("no")</script>, &amp; and a < b > c. So must \
"double" and 'single' quotes, $x$ and $$\\sum_i x_i$$, :red[not red], `code`, *stars* and [a](link).

name\tcount\tshare
left\t12\t0.25
right\t36\t0.75

Numbers: 1234567890, 3.14159, ½ and ².   Three spaces, and a soft\u00adhyphen, a zero\u200bwidth space, \
a no\u00a0break space.
Русский, ελληνικά, עברית, العربية, 한국어, 日本語. The end.
"""

_REPEATS = """\
The red door is at the end of the hall. Behind the red door there is a room, and in the room there is a table, and on \
the table there is a lamp.

Who has the key to the red door? Anna has the key to the red door. Who has the lamp? The lamp is on the table, in the \
room behind the red door.

Day 1: Anna opens the red door, lights the lamp, and closes the red door.
Day 2: Anna opens the red door, lights the lamp, and closes the red door.
Day 3: Anna opens the red door, lights the lamp, and closes the red door.
Day 4: Bruno opens the red door, breaks the lamp, and closes the red door.
Day 5: Anna opens the red door, sees the lamp, and closes the red door.

Who broke the lamp? Bruno broke the lamp. When did Bruno break the lamp? Bruno broke the lamp on day 4. Who has the \
key to the red door? Anna has the key to the red door.

The red door is at the end of the hall. Behind the red door there is a room, and in the room there is a table, and on \
the table there is a lamp, and the lamp is broken.
"""

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in [
        Preset("story", "Story: the end needs the start", lambda: _STORY),
        Preset(LONG_TEXT, "Python language reference (long)", _language_reference),
        Preset("repeats", "Repeated phrases", lambda: _REPEATS),
        Preset("unicode", "Scripts, emoji and markup", lambda: _UNICODE),
        Preset(
            "toy",
            "Twelve words, as in the papers",
            lambda: "one two three four five six seven eight nine ten eleven twelve",
            count_from=1,
        ),
    ]
}
