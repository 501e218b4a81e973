// The protocol's conformance suite, whole. Its own runner does not find it below node_modules.
import { runConformanceTests } from '@durable-streams/server-conformance-tests';

runConformanceTests({ baseUrl: process.env.DURABLE_URL });
