# One file, a target per image: extender, operator. Build: docker build --target extender -t NAME .
ARG PYTHON_IMAGE=python:3.12-slim

# What every image runs on: no pip, no compiler, nobody is root, nothing is written.
FROM ${PYTHON_IMAGE} AS runtime
RUN find / -xdev \( -name 'pip*' -o -name 'setuptools*' -o -name 'wheel*' -o -name ensurepip \) \
        \( -path '*/site-packages/*' -o -path '/usr/local/bin/*' -o -path '*/python3*/ensurepip' \) \
        -prune -exec rm -rf {} + \
    && mkdir -p /opt/greensched
# onnxruntime would report to its maker: a cluster's scheduler calls nobody unasked.
ENV PATH=/opt/greensched/bin:$PATH \
    ORT_DISABLE_TELEMETRY=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1
COPY LICENSE /opt/greensched/LICENSE
LABEL org.opencontainers.image.title="GreenSched" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
WORKDIR /opt/greensched

# Dependencies come before our code, so that a change of ours fetches nothing anew.
FROM ${PYTHON_IMAGE} AS extender-dependencies
COPY requirements/extender.txt /tmp/requirements.txt
RUN python -m venv --without-pip /opt/greensched \
    && python -m pip --python /opt/greensched/bin/python install \
        --no-cache-dir --only-binary :all: --require-hashes --no-compile -r /tmp/requirements.txt

FROM extender-dependencies AS extender-build
COPY core/greensched_core /tmp/packages/greensched_core
COPY policies/greensched_policies /tmp/packages/greensched_policies
COPY extender/greensched_extender /tmp/packages/greensched_extender
# unchecked-hash: the compiled files stay valid whatever times a layer gives to the sources.
RUN mv /tmp/packages/* "$(/opt/greensched/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && find /opt/greensched/bin -type f -delete \
    && /opt/greensched/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/greensched/lib \
    && PYTHONDONTWRITEBYTECODE=1 /opt/greensched/bin/python -c 'import greensched_extender, greensched_policies, greensched_core'

FROM runtime AS extender
LABEL org.opencontainers.image.description="Answers kube-scheduler: scores nodes by energy, money and carbon."
COPY --from=extender-build /opt/greensched /opt/greensched
EXPOSE 8888
ENTRYPOINT ["python", "-m", "greensched_extender"]

FROM ${PYTHON_IMAGE} AS operator-dependencies
COPY requirements/operator.txt /tmp/requirements.txt
RUN python -m venv --without-pip /opt/greensched \
    && python -m pip --python /opt/greensched/bin/python install \
        --no-cache-dir --only-binary :all: --require-hashes --no-compile -r /tmp/requirements.txt

FROM operator-dependencies AS operator-build
COPY core/greensched_core /tmp/packages/greensched_core
COPY policies/greensched_policies /tmp/packages/greensched_policies
COPY operator/greensched_operator /tmp/packages/greensched_operator
RUN mv /tmp/packages/* "$(/opt/greensched/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && find /opt/greensched/bin -type f -delete \
    && /opt/greensched/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/greensched/lib \
    && PYTHONDONTWRITEBYTECODE=1 /opt/greensched/bin/python -c 'import greensched_operator.controller_process, greensched_operator.webhook, greensched_operator.releaser'

FROM runtime AS operator
LABEL org.opencontainers.image.description="Holds work until power is clean or cheap, and starts it in time."
COPY --from=operator-build /opt/greensched /opt/greensched
EXPOSE 8080 9443
# Which process is an argument: controller, webhook, releaser, release-all.
ENTRYPOINT ["python", "-m", "greensched_operator"]
