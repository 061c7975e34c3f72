# Images without compilers.
#   docker build -t yirage . && docker run --rm yirage devices                the package and the command
#   docker build -t yirage-server --target server .                           the server alone, for processors
#   docker build -t yirage-server-cuda --target server-cuda .                 the same for NVIDIA's devices too (docker run --gpus all)
# Stages: `build` makes the wheel, `dev` is the environment to work in, the last one runs the package. `server` has the
# command, the C library and certificates: no shell, no root, and it runs with a root file system that cannot be written to.

FROM rust:1-bookworm AS dev
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN rustup component add clippy rustfmt
WORKDIR /workspace

FROM dev AS build-server
COPY . .
RUN cargo build --release --locked --package yirage --no-default-features --features cpu \
    && install -D target/release/yirage /out/yirage \
    && strip --strip-debug /out/yirage \
    && mkdir /models

FROM gcr.io/distroless/cc-debian12:nonroot AS server
COPY --from=build-server /out/yirage /usr/local/bin/yirage
COPY --from=build-server --chown=65532:65532 /models /models
ENV HF_HOME=/models
VOLUME /models
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/yirage", "serve"]

FROM dev AS build-server-cuda
COPY . .
RUN cargo build --release --locked --package yirage --no-default-features --features cpu,cuda \
    && install -D target/release/yirage /out/yirage \
    && strip --strip-debug /out/yirage \
    && mkdir /models \
    && pip wheel --no-cache-dir --no-deps --wheel-dir /wheels 'nvidia-cuda-nvrtc>=13,<14' \
    && python3 -m zipfile --extract /wheels/*.whl /nvrtc \
    && install -D --target-directory=/out/nvrtc /nvrtc/nvidia/*/lib/libnvrtc.so.13 /nvrtc/nvidia/*/lib/libnvrtc-builtins.so.13.*

# The driver comes from the machine, by NVIDIA's container toolkit; the compiler of kernels is within, and what it has compiled is kept
# with the models.
FROM gcr.io/distroless/cc-debian12:nonroot AS server-cuda
COPY --from=build-server-cuda /out/yirage /usr/local/bin/yirage
COPY --from=build-server-cuda /out/nvrtc /usr/local/lib/nvrtc
COPY --from=build-server-cuda --chown=65532:65532 /models /models
ENV HF_HOME=/models \
    YIRAGE_BACKEND=cuda \
    YIRAGE_KERNEL_CACHE=/models/kernels \
    LD_LIBRARY_PATH=/usr/local/lib/nvrtc \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
VOLUME /models
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/yirage", "serve"]

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
