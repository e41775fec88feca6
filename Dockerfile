# One file, a target per image: extender, operator. Build: docker build --target extender -t NAME .
#
# python:3.12.14-slim-trixie, the index of all processors. A tag would be another image tomorrow.
ARG PYTHON_IMAGE=python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea

# What builds, on the builder's own processor: nothing of the image's is run while it is made.
FROM --platform=$BUILDPLATFORM ${PYTHON_IMAGE} AS builder
COPY deploy/images/install_dependencies.py /tmp/

# Dependencies come before our code, in layers of their own: a change of ours fetches nothing anew.
FROM builder AS extender-dependencies
ARG TARGETARCH
COPY requirements/extender.txt /tmp/
RUN python /tmp/install_dependencies.py /tmp/extender.txt /opt/greensched/dependencies

FROM builder AS operator-dependencies
ARG TARGETARCH
COPY requirements/operator.txt /tmp/
RUN python /tmp/install_dependencies.py /tmp/operator.txt /opt/greensched/dependencies

# What compiles the functions that decide: the kernel. None of it gets into an image.
FROM builder AS kernel-compiler
COPY requirements/kernel.txt /tmp/
RUN python /tmp/install_dependencies.py /tmp/kernel.txt /opt/kernel-compiler

# The kernel for the image's processor, from the only sources that it depends on: about a minute.
FROM kernel-compiler AS kernel
ARG TARGETARCH
COPY core/greensched_core/__init__.py core/greensched_core/errors.py \
     core/greensched_core/units.py /tmp/kernel/greensched_core/
COPY policies/greensched_policies/__init__.py /tmp/kernel/greensched_policies/
COPY policies/greensched_policies/compiling /tmp/kernel/greensched_policies/compiling
COPY policies/greensched_policies/costs /tmp/kernel/greensched_policies/costs
COPY policies/greensched_policies/encoding /tmp/kernel/greensched_policies/encoding
COPY policies/greensched_policies/kernel /tmp/kernel/greensched_policies/kernel
COPY policies/greensched_policies/library /tmp/kernel/greensched_policies/library
COPY policies/greensched_policies/rules /tmp/kernel/greensched_policies/rules
RUN PYTHONPATH=/tmp/kernel:/opt/kernel-compiler python -m greensched_policies.kernel.build \
    --processor "$TARGETARCH" --folder /opt/greensched/packages/greensched_policies/kernel/built

FROM kernel AS extender-packages
ARG TARGETARCH
COPY core/greensched_core /opt/greensched/packages/greensched_core
COPY policies/greensched_policies /opt/greensched/packages/greensched_policies
COPY extender/greensched_extender /opt/greensched/packages/greensched_extender
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/greensched/packages
RUN PYTHONPATH=/opt/greensched/packages:/opt/kernel-compiler \
    python -m greensched_policies.library.loading "$TARGETARCH"

FROM kernel AS operator-packages
ARG TARGETARCH
COPY core/greensched_core /opt/greensched/packages/greensched_core
COPY policies/greensched_policies /opt/greensched/packages/greensched_policies
COPY operator/greensched_operator /opt/greensched/packages/greensched_operator
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/greensched/packages
RUN PYTHONPATH=/opt/greensched/packages:/opt/kernel-compiler \
    python -m greensched_policies.library.loading "$TARGETARCH"

# What every image runs on: no compiler, nobody is root, nothing is written.
FROM ${PYTHON_IMAGE} AS runtime
# onnxruntime would report to its maker: a cluster's scheduler calls nobody unasked.
ENV ORT_DISABLE_TELEMETRY=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/opt/greensched/packages:/opt/greensched/dependencies \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1
COPY LICENSE /opt/greensched/LICENSE
LABEL org.opencontainers.image.title="GreenSched" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
WORKDIR /opt/greensched

FROM runtime AS extender
LABEL org.opencontainers.image.description="Answers kube-scheduler: scores nodes by energy, money and carbon."
COPY --from=extender-dependencies /opt/greensched /opt/greensched
COPY --from=extender-packages /opt/greensched /opt/greensched
EXPOSE 8888
ENTRYPOINT ["python", "-m", "greensched_extender"]

FROM runtime AS operator
LABEL org.opencontainers.image.description="Holds work until power is clean or cheap, and starts it in time."
COPY --from=operator-dependencies /opt/greensched /opt/greensched
COPY --from=operator-packages /opt/greensched /opt/greensched
EXPOSE 8080 9443
# Which process is an argument: controller, webhook, releaser, emergency-release, check-install.
ENTRYPOINT ["python", "-m", "greensched_operator"]
