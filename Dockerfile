# The package and the command in an image without compilers.
#   docker build -t yirage . && docker run --rm yirage devices
# Stages: `build` makes the wheel, `dev` is the environment to work in, the last one runs.

FROM rust:1-bookworm AS dev
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN rustup component add clippy rustfmt
WORKDIR /workspace

FROM dev AS build
COPY . .
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir pip \
    && /opt/build/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim-bookworm
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -rf /wheels && useradd --create-home yirage
USER yirage
WORKDIR /home/yirage
ENV YIRAGE_BACKEND=auto
ENTRYPOINT ["yirage"]
CMD ["devices"]
