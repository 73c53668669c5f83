"""The pages: the only room that imports streamlit; may import everything but cli, eviction and cache."""
