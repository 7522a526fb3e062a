# attnbench on a CPU, in some 2 GB; results appear in ./results:
#   docker build -t attnbench .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/results:/work/results" attnbench run quickstart
FROM python:3.13-slim AS wheel
COPY . /source
RUN pip install --no-cache-dir hatchling && cd /source && python -m hatchling build -t wheel -d /wheel

FROM python:3.13-slim
# the backends flex and compiled need a C++ compiler
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY --from=wheel /wheel /wheel
COPY constraints.txt /wheel/
RUN pip install --no-cache-dir uv \
    && uv pip install --system --no-cache --torch-backend cpu -c /wheel/constraints.txt /wheel/*.whl
# any user may run it
ENV HOME=/tmp
RUN mkdir -m 777 /work
WORKDIR /work
ENTRYPOINT ["attnbench"]
CMD ["--help"]
