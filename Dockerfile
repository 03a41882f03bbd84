# Millrace on the official Node image: embedded by default, or with Kafka and Postgres by URL.
FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /millrace
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production MILLRACE_HOST=0.0.0.0 MILLRACE_DATA_DIR=/data
WORKDIR /millrace
COPY --from=packages /millrace/node_modules ./node_modules
COPY package.json LICENSE ./
COPY migrations ./migrations
COPY schemas ./schemas
COPY dashboard ./dashboard
COPY src ./src
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:'+(process.env.MILLRACE_ADMIN_PORT||8081)+'/healthz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
# As npm start does.
ENTRYPOINT ["node", "--max-semi-space-size=32", "src/main.ts"]
CMD ["serve"]
