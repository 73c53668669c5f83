"""How far can it see?"""

from kvviz.ui.page import open_page

page = open_page("Receptive field", "How far can it see?")
