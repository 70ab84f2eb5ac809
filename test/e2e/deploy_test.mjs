// What deploy/ and scripts/manual have for those who run the server, held against the server.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, post } from "./support/client.mjs";
import { braid, braidBinary, freePort, run, serve, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const deploy = join(sourceFolder, "deploy");
const read = (...names) => readFileSync(join(deploy, ...names), "utf8");
const board = JSON.parse(read("grafana", "braid.json"));
const expressions = board.panels.flatMap((panel) => panel.targets.map((target) => target.expr));
const alerts = read("prometheus", "alerts.yml");

const names_in = (text) => new Set([...text.matchAll(/\b(?:braid|process)_[a-z_]+/g)].map(([name]) => name));

test("every name of the board and of the alerts is one of /metrics", async (t) => {
  const server = await serve(t, ["--kv-memory", "64M", "--kv-disk", temporaryFolder(t)]);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const known = names_in(metrics.replace(/^#.*$/gm, ""));
  for (const name of names_in(expressions.join("\n") + alerts.replace(/^ +(summary|description):.*$/gm, "")))
    assert.ok(known.has(name), `${name} is no figure of the server`);
});

test("panels of the board lie beside each other", () => {
  const places = board.panels.map(({ gridPos: { x, y } }) => `${x},${y}`);
  assert.equal(new Set(places).size, places.length);
  assert.equal(new Set(board.panels.map(({ id }) => id)).size, places.length);
});

test("promtool takes the alerts, their tests, the board's expressions and the server's own text", { skip: !process.env.BRAID_PROMTOOL }, async (t) => {
  const promtool = async (args, options, codes = [0]) => {
    const { code, stdout, stderr } = await run(t, process.env.BRAID_PROMTOOL, args, options);
    assert.ok(codes.includes(code), stdout + stderr);
  };
  await promtool(["check", "rules", join(deploy, "prometheus/alerts.yml")]);
  await promtool(["test", "rules", join(deploy, "prometheus/alerts_test.yml")]);
  await promtool(["check", "config", join(deploy, "prometheus/prometheus.yml")]);
  const rules = { groups: [{ name: "board", rules: expressions.map((expr, i) => ({
    record: `panel:${i}`, expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*") })) }] };
  const file = join(temporaryFolder(t), "board.yml");
  writeFileSync(file, JSON.stringify(rules));
  await promtool(["check", "rules", file]);
  const server = await serve(t, ["--kv-memory", "64M"]);
  // 3: it would have named some of them otherwise (milliseconds, which clients and boards know by now).
  await promtool(["check", "metrics"], { input: await (await fetch(`${server.url}/metrics`)).text() }, [0, 3]);
});

test("bash completes commands, options and names of models", async (t) => {
  const { stdout: definition } = await run(t, braidBinary, ["completion", "bash"]);
  const complete = async (...words) => {
    const script = `${definition}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _braid; echo "\${COMPREPLY[@]}"`;
    return (await run(t, "bash", ["-c", script, "bash", "braid", ...words])).stdout.trim().split(" ");
  };
  assert.deepEqual(await complete("qu"), ["quantize"]);
  assert.deepEqual(await complete("serve", "--max-ba"), ["--max-batch", "--max-batch-tokens"]);
});

test("the manual has every option that --help tells of, and nothing that is no roff", async (t) => {
  const file = join(temporaryFolder(t), "braid.1");
  const made = await run(t, join(sourceFolder, "scripts/manual"), [braidBinary, file]);
  assert.equal(made.code, 0, made.stderr);
  const page = readFileSync(file, "utf8");
  const help = (await run(t, braidBinary, ["serve", "--help"])).stdout;
  const options = [...help.matchAll(/^ *(--[a-z-]+)/gm)].map(([, name]) => name.replaceAll("-", "\\-"));
  assert.ok(options.length > 50);
  for (const option of options) assert.ok(page.includes(option), option);
  assert.doesNotMatch(page, /^['.](?!TH|SH|SS|nf|fi|B |I |TP|TQ)/m);
});

test("the service may do little: systemd-analyze gives it at most 2.5 of 10", { skip: !process.env.BRAID_SYSTEMD_ANALYZE }, async (t) => {
  const { code, stdout, stderr } = await run(t, process.env.BRAID_SYSTEMD_ANALYZE,
    ["security", "--no-pager", "--offline=true", "--threshold=25", join(deploy, "systemd/braid.service")]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /Overall exposure level for braid.service: [012]\.\d/);
});

test("what ends a server has the time that the server takes for it", () => {
  const seconds = (text, pattern) => Number(text.match(pattern)[1]);
  const pods = read("kubernetes", "braid.yaml");
  const drain = seconds(pods, /"--drain-delay", "(\d+)s"/) + seconds(pods, /"--drain-timeout", "(\d+)s"/);
  assert.ok(seconds(pods, /terminationGracePeriodSeconds: (\d+)/) >= drain + 5);
  const shipped = seconds(read("braid.yaml"), /^drain-timeout: (\d+)s/m);
  assert.ok(seconds(read("systemd", "braid.service"), /^TimeoutStopSec=(\d+)/m) >= shipped + 5);
  assert.ok(seconds(read("openrc", "braid"), /^retry="TERM\/(\d+)/m) >= shipped + 5);
  assert.ok(10 > seconds(read("docker", "Dockerfile"), /"--drain-timeout", "(\d+)s"/), "Docker kills after 10 s");
});

const started_from = { docker: "Dockerfile", kubernetes: "braid.yaml", systemd: "braid.service", openrc: "braid", launchd: "local.braid.plist", logrotate: "braid" };

test("options and routes that deploy/ names are those of the server", async (t) => {
  const help = (await run(t, braidBinary, ["serve", "--help"])).stdout;
  const known = new Set(help.match(/--[a-z][a-z-]+/g));
  for (const [folder, name] of Object.entries(started_from)) {
    const lines = read(folder, name).split("\n").filter((line) => /\bbraid\b|args|ENTRYPOINT|--log-file/.test(line) && !/apt-get|useradd|docker |cmake/.test(line));
    for (const [option] of lines.join("\n").matchAll(/(?<![\w-])--[a-z][a-z-]+/g)) assert.ok(known.has(option), `${folder}: ${option}`);
  }
  const server = await serve(t, ["--kv-memory", "64M"]);
  const routes = new Set(["kubernetes/braid.yaml", "docker/Dockerfile", "haproxy/braid.cfg", "caddy/Caddyfile", "envoy/envoy.yaml", "prometheus/prometheus.yml"]
    .flatMap((file) => [...read(file).matchAll(/\/(readyz|livez|metrics|health)\b/g)].map(([route]) => route)));
  assert.ok(routes.has("/readyz") && routes.has("/livez"));
  for (const route of routes) assert.equal((await fetch(server.url + route)).status, 200, route);
});

test("the image is built in stages, runs as nobody's root, and its commands are lists", () => {
  const lines = read("docker", "Dockerfile").replaceAll("\\\n", " ").split("\n").filter((line) => line && !line.startsWith("#"));
  const stages = new Set();
  for (const line of lines) {
    const [, instruction, rest] = line.match(/^([A-Z]+) (.*)$/) ?? assert.fail(line);
    assert.ok(["FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT", "HEALTHCHECK"].includes(instruction), line);
    if (instruction === "FROM") stages.add(rest.match(/ AS (\w+)$/)?.[1]);
    const from = rest.match(/^--from=(\w+)/)?.[1];
    if (from) assert.ok(stages.has(from), line);
    const command = instruction === "ENTRYPOINT" ? rest : instruction === "HEALTHCHECK" ? rest.match(/CMD (.*)$/)[1] : "[\"none\"]";
    assert.ok(JSON.parse(command).every((word) => typeof word === "string"), line);
  }
  assert.equal(stages.size, 2);
  assert.deepEqual(readFileSync(join(sourceFolder, ".dockerignore"), "utf8").trim().split("\n"), ["/build", ".git", "**/node_modules"]);  // gigabytes
  assert.match(lines.findLast((line) => line.startsWith("USER")), /^USER [1-9]\d+:[1-9]\d+$/);
  assert.ok(lines.findIndex((line) => line.startsWith("USER")) < lines.findIndex((line) => line.startsWith("ENTRYPOINT")));
});

test("what belongs together in the Kubernetes manifests has the same name", () => {
  const parts = Object.fromEntries(read("kubernetes", "braid.yaml").split(/^---$/m).map((text) => [text.match(/^kind: (\w+)/m)[1], text]));
  assert.deepEqual(Object.keys(parts), ["Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler"]);
  const labels = parts.Deployment.match(/template:\n +metadata:\n +labels: (\{.*\})/)[1];
  for (const kind of ["Deployment", "PodDisruptionBudget"]) assert.ok(parts[kind].includes(`matchLabels: ${labels}`), kind);
  assert.ok(parts.Service.includes(`selector: ${labels}`));
  assert.match(parts.HorizontalPodAutoscaler, /scaleTargetRef: \{ apiVersion: apps\/v1, kind: Deployment, name: braid \}/);
  assert.match(parts.Deployment, /\n {6}enableServiceLinks: false\n/);  // a Service called braid would set BRAID_PORT
  for (const port of parts.Deployment.matchAll(/port: (\w+)/g)) assert.equal(port[1], "http");
  assert.match(parts.Service, /targetPort: http/);
  assert.ok(parts.Deployment.includes(`the Secret \`${parts.Deployment.match(/secretKeyRef: \{ name: (\w+)/)[1]}\``));
  assert.ok(parts.Deployment.includes(`the PersistentVolumeClaim \`${parts.Deployment.match(/claimName: (\w+)/)[1]}\``));
  const mounts = [...parts.Deployment.matchAll(/\{ name: (\w+), mountPath/g)].map(([, name]) => name);
  for (const name of mounts) assert.match(parts.Deployment, new RegExp(`volumes:[^]*- name: ${name}\n`));
});

// The documents of a manifest, as the distribution's Python reads them.
const documents = async (t, file) => {
  const program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
  const { code, stdout, stderr } = await run(t, "/usr/bin/python3", ["-c", program, join(deploy, "kubernetes", file)]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
};

// Templates of pods, with the name of what has them.
const templates_of = (all) => all.flatMap(({ kind, metadata, spec = {} }) => kind === "MPIJob"
  ? Object.entries(spec.mpiReplicaSpecs).map(([role, { template }]) => ({ name: `${metadata.name} ${role}`, template }))
  : spec.template ? [{ name: metadata.name, template: spec.template, volumeClaimTemplates: spec.volumeClaimTemplates }] : []);
const fits = (selector, labels = {}) => Object.entries(selector).every(([key, value]) => labels[key] === value);

test("manifests name what there is: labels, ports, volumes and options", async (t) => {
  const help = (await run(t, braidBinary, ["serve", "--help"])).stdout;
  const known = new Set(help.match(/--[a-z][a-z-]+/g));
  for (const file of ["braid.yaml", "replicas.yaml", "mpijob.yaml"]) {
    const all = await documents(t, file);
    const templates = templates_of(all);
    for (const { kind, metadata, spec = {} } of all) {
      const name = `${file}: ${kind} ${metadata.name}`;
      const selector = kind === "Service" ? spec.selector : spec.selector?.matchLabels;
      const chosen = selector && templates.filter(({ template }) => fits(selector, template.metadata?.labels));
      if (selector) assert.equal(chosen.length, 1, name);
      if (spec.template) assert.ok(fits(selector, spec.template.metadata.labels), name);
      if (kind === "Service")
        for (const { targetPort } of spec.ports) assert.ok(chosen[0].template.spec.containers.some(({ ports }) => ports.some((port) => port.name === targetPort)), name);
      if (kind === "StatefulSet") assert.ok(all.some((other) => other.kind === "Service" && other.metadata.name === spec.serviceName), name);
      if (kind === "HorizontalPodAutoscaler") assert.ok(all.some((other) => other.kind === spec.scaleTargetRef.kind && other.metadata.name === spec.scaleTargetRef.name), name);
    }
    for (const { name, template: { spec }, volumeClaimTemplates } of templates) {
      const volumes = new Set([...(spec.volumes ?? []).map((volume) => volume.name), ...(volumeClaimTemplates ?? []).map(({ metadata }) => metadata.name)]);
      for (const container of spec.containers) {
        const ports = new Set((container.ports ?? []).map((port) => port.name));
        for (const mount of container.volumeMounts ?? []) assert.ok(volumes.has(mount.name), `${file}: ${name}: volume ${mount.name}`);
        for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"].map((kind) => container[kind]).filter(Boolean))
          assert.ok(ports.has((probe.httpGet ?? probe.tcpSocket).port), `${file}: ${name}`);
        if (container.name !== "braid") continue;
        assert.equal(spec.enableServiceLinks, false, `${file}: ${name}`);  // a Service called braid would set BRAID_PORT
        const args = container.args;
        for (const option of args.filter((arg) => arg.startsWith("--"))) assert.ok(known.has(option), `${file}: ${option}`);
        const seconds = (option) => Number(args[args.indexOf(option) + 1].replace(/s$/, ""));
        assert.ok(spec.terminationGracePeriodSeconds >= seconds("--drain-delay") + seconds("--drain-timeout") + 5, `${file}: ${name}`);
      }
    }
  }
});

test("replicas find each other by their headless service, ready or not", async (t) => {
  const all = await documents(t, "replicas.yaml");
  const set = all.find(({ kind }) => kind === "StatefulSet");
  const service = all.find(({ kind, metadata }) => kind === "Service" && metadata.name === set.spec.serviceName);
  assert.equal(service.spec.clusterIP, "None");
  assert.equal(service.spec.publishNotReadyAddresses, true);
  const [{ args, ports }] = set.spec.template.spec.containers;
  assert.equal(args[args.indexOf("--peers") + 1], `${service.metadata.name}:${ports[0].containerPort}`);
  const [{ volumeMounts }] = set.spec.template.spec.containers;
  assert.deepEqual(set.spec.volumeClaimTemplates.map(({ metadata }) => volumeMounts.find(({ name }) => name === metadata.name).mountPath), [args[args.indexOf("--peer-state") + 1]]);
  const redis = all.find(({ kind, metadata }) => kind === "Service" && args.includes(`redis://${metadata.name}`));
  const policy = all.find(({ kind }) => kind === "NetworkPolicy");
  assert.deepEqual(policy.spec.podSelector.matchLabels, redis.spec.selector);
  assert.deepEqual(policy.spec.ingress[0].from[0].podSelector.matchLabels, set.spec.template.metadata.labels);
});

test("nginx's file in the manifest is the one that stands beside it, with a server for each replica that is looked up again", async (t) => {
  const all = await documents(t, "replicas.yaml");
  const set = all.find(({ kind }) => kind === "StatefulSet");
  const [{ ports }] = set.spec.template.spec.containers;
  const names = Array.from({ length: set.spec.replicas }, (_, i) => `${set.metadata.name}-${i}.${set.spec.serviceName}.default.svc.cluster.local:${ports[0].containerPort}`);
  const expected = read("nginx", "braid-upstreams.conf")
    .replace(/^[^]*?\n\n/, "resolver kube-dns.kube-system.svc.cluster.local valid=5s;\n\n")
    .replace(/^ *server 127\.0\.0\.1:8002 .*\n/gm, "")
    .replace(/^( *server )127\.0\.0\.1:8001(.*);$/gm, (_, before, after) => names.map((name) => `${before}${name}${after} resolve;`).join("\n"))
    .replace("listen 443 ssl http2;", "listen 8080;").replace(/^ *ssl_certificate.*\n/gm, "");
  const { metadata, data } = all.find(({ kind }) => kind === "ConfigMap");
  assert.equal(data["braid.conf"].trim(), expected.trim());
  const nginx = all.find((other) => other.kind === "Deployment" && other.metadata.name === "braid-nginx").spec.template.spec;
  assert.equal(nginx.volumes[0].configMap.name, metadata.name);
  assert.equal(nginx.containers[0].ports[0].containerPort, 8080);
});

test("the MPI job has a worker for each rank, on a machine of its own", async (t) => {
  const [{ spec }] = await documents(t, "mpijob.yaml");
  const { Launcher, Worker } = spec.mpiReplicaSpecs;
  const [{ args, env }] = Launcher.template.spec.containers;
  assert.equal(Number(args[args.indexOf("--ranks") + 1]), Worker.replicas * spec.slotsPerWorker);
  assert.equal(args[args.indexOf("--hostfile") + 1], "/etc/mpi/hostfile");
  const address = args[args.indexOf("--ranks-listen") + 1].match(/^\$\((\w+)\):\d+$/)[1];
  assert.ok(env.some(({ name, valueFrom }) => name === address && valueFrom.fieldRef.fieldPath === "status.podIP"));
  assert.equal(Launcher.replicas, 1);
  assert.ok(Worker.template.spec.affinity.podAntiAffinity);
  const models = (role) => role.template.spec.containers[0].volumeMounts.find(({ name }) => name === "models").mountPath;
  assert.equal(models(Launcher), models(Worker), "the model has the same path on all");
});

// A collector of OpenTelemetry that answers with `status`, or never.
async function collector(t, status = 200) {
  const bodies = [];
  const server = http.createServer((request, response) => {
    let text = "";
    request.on("data", (data) => { text += data; });
    request.on("end", () => {
      bodies.push({ url: request.url, type: request.headers["content-type"], body: JSON.parse(text) });
      if (status !== null) response.writeHead(status, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  const spans = () => bodies.flatMap(({ body }) => body.resourceSpans[0].scopeSpans[0].spans);
  return { url: `http://127.0.0.1:${server.address().port}`, bodies, spans };
}

const attribute = (span, name) => Object.values(span.attributes.find(({ key }) => key === name)?.value ?? { none: undefined })[0];

test("a collector gets a span for each generation and for its phases", async (t) => {
  const { url, bodies, spans } = await collector(t);
  const server = await serve(t, ["--kv-memory", "64M", "--otlp-endpoint", url]);
  const [trace, parent] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
  const complete = (headers, fields = {}) => post(`${server.url}/v1/completions`, { prompt: "Once upon a time", max_tokens: 8, ignore_eos: true, ...fields },
    { headers: { "content-type": "application/json", ...headers } });
  assert.equal((await complete({ traceparent: `00-${trace}-${parent}-01` })).status, 200);
  assert.equal((await complete({ traceparent: `00-${trace}-${parent}-00` })).status, 200);  // its caller does not sample it
  assert.equal((await complete({}, { max_tokens: -1 })).status, 400);
  await (await complete({}, { stream: true })).text();
  await fetch(`${server.url}/metrics`);
  server.child.kill("SIGTERM");  // sends what waits
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  for (const { url: path, type } of bodies) assert.deepEqual([path, type], ["/v1/traces", "application/json"]);
  const requests = spans().filter(({ kind }) => kind === 2);
  assert.deepEqual(requests.map((span) => attribute(span, "http.response.status_code")), ["200", "400", "200"]);
  const [first] = requests;
  assert.equal(first.traceId, trace);
  assert.equal(first.parentSpanId, parent);
  assert.equal(attribute(first, "gen_ai.usage.output_tokens"), "8");
  for (const [request, names] of [[first, ["tokenise", "queue", "prefill", "decode", "write"]], [requests[1], ["tokenise"]]]) {
    const phases = spans().filter(({ parentSpanId }) => parentSpanId === request.spanId);
    assert.deepEqual(phases.map(({ name }) => name), names);
    let at = BigInt(request.startTimeUnixNano);
    for (const { traceId, startTimeUnixNano, endTimeUnixNano } of phases) {
      assert.equal(traceId, request.traceId);
      assert.ok(BigInt(startTimeUnixNano) >= at && BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano));
      at = BigInt(endTimeUnixNano);
    }
    assert.equal(at, BigInt(request.endTimeUnixNano));
  }
  assert.notEqual(requests[1].traceId, requests[2].traceId);
});

test("without --otlp-endpoint nobody is told, and one that does not take spans holds nobody up", async (t) => {
  const silent = await collector(t, null);
  const failing = await collector(t, 503);
  for (const [args, log] of [[["--otlp-endpoint", silent.url], /traces are lost: .*Timeout|Operation too slow/], [["--otlp-endpoint", failing.url], /traces are lost: .* status 503/],
    [["--otlp-endpoint", `http://127.0.0.1:${await freePort()}`], /traces are lost: .*[cC]onnect/], [[], null]]) {
    const server = await serve(t, ["--kv-memory", "64M", ...args]);
    for (let i = 0; i < 3; ++i)
      assert.equal((await post(`${server.url}/v1/completions`, { prompt: "Once", max_tokens: 4 })).status, 200);
    if (log) await eventually("the log says so", () => log.test(server.errors));
    assert.equal((await post(`${server.url}/v1/completions`, { prompt: "Once", max_tokens: 4 })).status, 200);
    server.child.kill("SIGTERM");
    assert.deepEqual(await server.exited, { code: 0, signal: null });
    assert.equal(server.errors.match(/traces are lost/g)?.length ?? 0, log ? 1 : 0, server.errors);
  }
  const refused = await braid(t, ["serve", "--otlp-endpoint", "127.0.0.1:4318"]);
  assert.match(refused.stderr, /is no URL such as/);
});
