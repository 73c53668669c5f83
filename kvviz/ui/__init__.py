"""What the pages share: the only package, beside the pages, that imports streamlit."""
