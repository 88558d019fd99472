# plait in a container: docker build -t plait . && docker run --rm plait plan --model gpt2-xl --cluster 4xT4:4 --global-batch 64
FROM debian:12 AS build
WORKDIR /plait
COPY . .
RUN ./dev package

FROM debian:12-slim
COPY --from=build /plait/build/packages/plait_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/plait_*.deb \
    && rm -rf /tmp/plait_*.deb /var/lib/apt/lists/*
WORKDIR /plans
ENTRYPOINT ["plait"]
