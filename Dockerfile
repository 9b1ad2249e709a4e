# SPDX-License-Identifier: Apache-2.0
# The agent's image, with kubectl-holdfast beside it for `helm test` and `kubectl exec`. Two stages on the same Debian release;
# BASE may name a local copy of it.
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
RUN make -j2 VERSION=${VERSION} build/gcc/bin/holdfast-agent build/gcc/bin/kubectl-holdfast \
    && install -D -s -m 0755 -t /out/usr/local/bin build/gcc/bin/holdfast-agent build/gcc/bin/kubectl-holdfast \
    && hack/runtime-root.sh /out /out/usr/local/bin/holdfast-agent /out/usr/local/bin/kubectl-holdfast

FROM scratch
COPY --from=build /out /
USER 65532:65532
EXPOSE 4433/udp 4433/tcp 9780/tcp 9781/tcp
ENTRYPOINT ["/usr/local/bin/holdfast-agent"]
CMD ["--config", "/etc/holdfast/agent.yaml"]
