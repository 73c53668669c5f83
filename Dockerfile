FROM python:3.11-slim

# extra arguments for pip, for example an index with CPU-only builds of torch
ARG PIP_EXTRA_INDEX_URL=""

RUN useradd --create-home --uid 1000 kvviz
WORKDIR /home/kvviz/app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .

USER kvviz
ENV KVVIZ_CACHE=/home/kvviz/models
# the model and the first figures become part of the image, so a container starts without a network
RUN python -m kvviz.ui.set_up

EXPOSE 8501
HEALTHCHECK --start-period=30s CMD \
    python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=3)"
CMD ["python", "-m", "kvviz.ui.shell.serve", "--server.headless=true", "--server.address=0.0.0.0", "--server.port=8501"]
