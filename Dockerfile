# A static program and nothing else: no shell, no package manager, not root.
#
#   docker build -t recon:0.1.0 .
#   docker run --rm --read-only --tmpfs /tmp -v /etc/recon:/etc/recon:ro -v recon:/var/lib/recon recon:0.1.0
#
# In recon.toml the store is sqlite:/var/lib/recon/recon.db or a PostgreSQL, and [report] dir is below /var/lib/recon.
FROM rust:1.95-alpine AS build
# ring and SQLite are C; musl-dev is what their compiler needs. The target of this image is musl, linked statically.
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
RUN cargo build --locked --release --bin recon && strip target/release/recon
# What the last stage has of folders: /tmp for the comparison, /var/lib/recon for what is kept.
RUN mkdir -p /out/tmp /out/var/lib/recon

FROM scratch
# Which servers are trusted: the provider's, the webhook's, the mail server's.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/ /
COPY --from=build /src/target/release/recon /usr/local/bin/recon
USER 65532:65532
WORKDIR /var/lib/recon
ENTRYPOINT ["/usr/local/bin/recon"]
CMD ["--config", "/etc/recon/recon.toml"]
