# The service alone, as a user without rights. The address of a container is public, so the settings need [tls], or
# cleartext_public = true where nothing but a proxy that encrypts can reach it.
#
#   docker build -t dpsw-server .
#   docker run --read-only --cap-drop ALL -p 7878:7878 -v "$PWD/dpsw-server.toml:/etc/dpsw/dpsw-server.toml:ro" \
#       -v dpsw-data:/var/lib/dpsw -v dpsw-marker:/var/lib/dpsw-marker -v dpsw-key:/var/lib/dpsw-key dpsw-server
FROM rust:1.90-slim-bookworm AS build
# Kafka's client is C code, and its TLS is OpenSSL's.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ libssl-dev make pkg-config && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN cargo build --release --locked -p dpsw-server --features brokers,kafka-tls

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates libssl3 && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 7878 --home-dir /var/lib/dpsw --shell /usr/sbin/nologin dpsw \
    && install -d -m 700 -o dpsw -g dpsw /var/lib/dpsw /var/lib/dpsw-marker /var/lib/dpsw-key
COPY --from=build /build/target/release/dpsw-server /usr/bin/dpsw-server
USER dpsw
# The data; the marker, which must not be in backups of the data; and the key, of which a copy belongs elsewhere.
VOLUME /var/lib/dpsw /var/lib/dpsw-marker /var/lib/dpsw-key
EXPOSE 7878
ENTRYPOINT ["dpsw-server", "--config", "/etc/dpsw/dpsw-server.toml", "--data", "/var/lib/dpsw/data", \
    "--marker-folder", "/var/lib/dpsw-marker/marker", "--key-file", "/var/lib/dpsw-key/key"]
