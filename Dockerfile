# The operator's image: one binary, the charts and watches.yaml. With docker,
# podman or buildah: `make docker-build IMG=... [BUILDER_IMAGE=...] [BASE_IMAGE=...]`.
# Binary and base must fit: the builder's libc may not be newer than the base's.
# `make pin-images` writes the digests that the tags have now.
ARG BUILDER_IMAGE=docker.io/library/rust:1.95-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082
ARG BASE_IMAGE=gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f

FROM ${BUILDER_IMAGE} AS builder
WORKDIR /src
# Dependencies and Catamaran itself first, with an empty operator: this layer
# stays as it is while only src/, the charts or watches.yaml change. (A cache
# mount would do the same, but only where there is BuildKit.)
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY benches benches
COPY examples examples
RUN mkdir src && echo 'fn main() {}' > src/main.rs && \
    cargo build --release --locked --bin memcached-operator && \
    rm -r src
COPY src src
# cargo goes by the time of a file, and the empty main.rs was younger. The copy
# is for builds that mount a volume at target/, which belongs to no layer.
RUN touch src/main.rs && \
    cargo build --release --locked --bin memcached-operator && \
    cp target/release/memcached-operator /

FROM ${BASE_IMAGE}
WORKDIR /opt/operator
COPY --from=builder /memcached-operator ./
COPY watches.yaml ./
COPY helm-charts helm-charts
# What the binary is made of: `make sbom`, which `make docker-build` calls.
COPY sbom/memcached-operator.cdx.json sbom.cdx.json
# By number, so that runAsNonRoot can be checked: distroless' user nonroot.
USER 65532:65532
ENTRYPOINT ["/opt/operator/memcached-operator"]
