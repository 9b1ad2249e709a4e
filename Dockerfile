# SPDX-License-Identifier: Apache-2.0
# The agent's image. Two stages on the same Debian release; BASE may name a local copy of it.
#
#   docker build -t holdfast-agent:dev .
#
# The agent needs no capability: run it as uid 65532 with a read-only root file system, /dev/net/tun, and
# /var/lib/holdfast/audit writable.
ARG BASE=debian:12

FROM ${BASE} AS build
WORKDIR /src
COPY hack/deps.sh hack/deps.sh
RUN hack/deps.sh --packages
COPY Makefile Makefile
COPY hack hack
COPY pkg pkg
COPY cmd cmd
ARG VERSION=0.1.0
RUN make -j2 VERSION=${VERSION} build/gcc/bin/holdfast-agent \
    && install -D -s -m 0755 build/gcc/bin/holdfast-agent /out/usr/local/bin/holdfast-agent \
    && hack/runtime-root.sh /out /out/usr/local/bin/holdfast-agent

FROM scratch
COPY --from=build /out /
USER 65532:65532
EXPOSE 4433/udp 4433/tcp 9780/tcp 9781/tcp
ENTRYPOINT ["/usr/local/bin/holdfast-agent"]
CMD ["--config", "/etc/holdfast/agent.yaml"]
