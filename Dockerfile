# Headwater as an image: built once with a network, started anywhere without one.
#   docker build -t headwater .
#   docker run --rm -p 8000:8000 -v headwater-data:/data headwater
ARG BASE_IMAGE=python:3.12-slim-bookworm

FROM ${BASE_IMAGE} AS build
# A folder of wheels that pip shall look in as well, such as a CPU build of torch.
ARG PIP_FIND_LINKS=
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /opt/headwater
RUN python3 -m venv /opt/venv
# First what changes rarely: the packages, then the models, then the program.
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY app/__init__.py app/
RUN PIP_FIND_LINKS="${PIP_FIND_LINKS}" /opt/venv/bin/python -m pip install -c constraints.txt -e .
COPY app app
RUN HEADWATER_DATA_DIR=/tmp/fetched PIP_FIND_LINKS="${PIP_FIND_LINKS}" /opt/venv/bin/headwater fetch \
    && mv /tmp/fetched/models /opt/models
COPY static static
COPY templates templates
COPY docs docs

FROM ${BASE_IMAGE}
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin headwater \
    && mkdir /data && chown headwater:headwater /data
COPY --from=build /opt /opt
ENV HEADWATER_HOST=0.0.0.0 \
    HEADWATER_PORT=8000 \
    HEADWATER_DATA_DIR=/data \
    HEADWATER_SHIPPED_MODELS_DIR=/opt/models \
    HF_HUB_OFFLINE=1 \
    PYTHONUNBUFFERED=1 \
    PATH=/opt/venv/bin:$PATH
USER headwater
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['HEADWATER_PORT'] + '/healthz', timeout=4)"]
CMD ["headwater", "serve"]
