# SPDX-License-Identifier: Apache-2.0
# Holdfast's images, on one Debian release. `make image` builds them without a container engine (hack/image.sh); with one:
#
#   docker build --target agent -t holdfast-agent:dev .
#
#   deps        what it is built and unit-tested with: ngtcp2 with its OpenSSL helper from the backports suite
#   build       the programs, stripped, and what they need at run time with its SBOM
#   test        the unit tests, in the very place where the programs were built: running it runs them. They make namespaces
#               and TUN devices, so `docker run --privileged`
#   agent       the agent, and kubectl-holdfast for `helm test` and `kubectl exec`
#   plugin      kubectl-holdfast alone
#   foundation  FOR LABS AND STAGING ONLY: the reference foundation, with a shell, nft and BIRD
#
# BASE may name a local copy of the release, SRC another folder to build in: the programs are the same.
#
# The agent needs no capability: run it as uid 65532 with a read-only root file system, /dev/net/tun, and
# /var/lib/holdfast/audit writable.
ARG BASE=debian:13-slim

FROM ${BASE} AS deps
COPY hack/deps.sh /deps/hack/deps.sh
RUN /deps/hack/deps.sh --image

FROM deps AS build
ARG SRC=/src
ARG VERSION=0.1.0
ARG SOURCE_DATE_EPOCH=0
WORKDIR ${SRC}
COPY Makefile Makefile
COPY hack hack
COPY pkg pkg
COPY cmd cmd
COPY test/foundation test/foundation
RUN export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} \
    && make -s -j2 VERSION=${VERSION} BUILD=build/image build/image/bin/holdfast-agent build/image/bin/kubectl-holdfast build/image/bin/holdfast-foundation \
    && hack/image-root.sh /out/agent holdfast-agent ${VERSION} build/image/bin/holdfast-agent build/image/bin/kubectl-holdfast \
    && hack/image-root.sh /out/plugin kubectl-holdfast ${VERSION} build/image/bin/kubectl-holdfast \
    && install -D -s -m 0755 -t /out/foundation/usr/local/bin build/image/bin/holdfast-foundation

FROM build AS test
RUN SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} make -s -j2 VERSION=${VERSION} BUILD=build/image unit-programs
CMD ["make", "-s", "BUILD=build/image", "unit"]

FROM scratch AS agent
COPY --from=build /out/agent /
USER 65532:65532
EXPOSE 4433/udp 4433/tcp 9780/tcp 9781/tcp
ENTRYPOINT ["/usr/local/bin/holdfast-agent"]
CMD ["--config", "/etc/holdfast/agent.yaml"]

FROM scratch AS plugin
COPY --from=build /out/plugin /
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kubectl-holdfast"]

FROM ${BASE} AS foundation
# Installing BIRD starts it, unless this forbids that.
RUN printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d \
    && apt-get -q update \
    && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends mount nftables bird2 iproute2 \
        libcurl4t64 libcjson1 libyaml-0-2 libuv1t64 libssl3t64 libbpf1 libelf1t64 \
    && rm -rf /var/lib/apt/lists/* /usr/sbin/policy-rc.d
COPY --from=build /out/foundation /
ENTRYPOINT ["/usr/local/bin/holdfast-foundation"]
