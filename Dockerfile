# The image of bin/processing, which replaces FlightDeck's processing and chat-api: see examples/processing/README.md.
#
#   docker build --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) -t turntable-processing .
#   docker run -e AGENT_NAME=support -e KAFKA_BOOTSTRAP_SERVERS=kafka:9092 -v turntable:/var/lib/turntable turntable-processing
#
# The program is the same in every build of a commit with one version of Go, on any machine: examples/processing/smoke.sh checks
# that. The base images are named by tag and change. To have the same image next year, pin them by digest:
# --build-arg GO_IMAGE=golang@sha256:... --build-arg BASE_IMAGE=gcr.io/distroless/static-debian12@sha256:...
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM ${GO_IMAGE} AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV OUT=/out/processing GOTOOLCHAIN=local GOFLAGS=-mod=readonly
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$OUT" ./examples/processing
RUN mkdir /out/state

FROM ${BASE_IMAGE}
COPY --from=build /out/processing /processing
# A new volume gets the owner of this directory.
COPY --from=build --chown=65532:65532 /out/state /var/lib/turntable
ENV KAFKA_STATE_DIR=/var/lib/turntable HEALTH_ADDR=0.0.0.0:8080
VOLUME /var/lib/turntable
# Health. With PORT=0.0.0.0:8000 and WS_PORT=0.0.0.0:8001, as FlightDeck's chat-api has them, also those.
EXPOSE 8080 8000 8001
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/processing", "-healthcheck"]
ENTRYPOINT ["/processing"]
