package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// agent wraps keys of an agent that is good but for them; they begin on line 4.
func agent(keys string) string {
	return "agents:\n  a:\n    model: {provider: openai, name: m}\n" + keys
}

// tool wraps keys of an HTTP tool; they begin on line 7.
func tool(keys string) string {
	return agent("    tools:\n      t:\n        http: {url: \"http://h/\"}\n" + keys)
}

// model is an agent whose model is on line 3.
func model(keys string) string { return "agents:\n  a:\n    model: {" + keys + "}\n" }

// longName is a good name, but for a sub-agent.
var longName = strings.Repeat("n", 55)

// unknown is what is said of a key that the section T does not have.
func unknown[T any]() string {
	return "unknown key; known are " + strings.Join(keysOf(reflect.ValueOf(*new(T))), ", ")
}

var badFiles = []struct{ name, text, want string }{
	{"syntax", "listen: 'sk-secret\n", "helix.yaml:1: could not find end character of single-quoted text"},
	{"two documents", "listen: a:1\n---\nlisten: b:2\n", "helix.yaml:3: only one document is allowed"},
	{"not a mapping", "- a\n", "helix.yaml:1: must be a mapping"},
	{"unknown key", "listen: a:1\nlistenn: a:1\n", "helix.yaml:2: listenn: " + unknown[Config]()},
	{"unknown nested key", agent("    foo:\n"), "helix.yaml:4: agents.a.foo: " + unknown[Agent]()},
	{"other case", "Listen: a:1\n", "helix.yaml:1: Listen: " + unknown[Config]()},
	{"empty key", "'': 1\n", "helix.yaml:1: " + unknown[Config]()},
	{"duplicate", "nats:\n  user: a\n  user: b\n", "helix.yaml:3: nats.user: duplicate key"},
	{"duplicate in JSON", agent("    initialState:\n      x: 1\n      x: 2\n"), "helix.yaml:6: agents.a.initialState.x: duplicate key"},
	{"key no string", agent("    initialState: {1: x}\n"), "helix.yaml:4: agents.a.initialState: keys must be strings"},
	{"tag", "listen: !!str a:1\n", "helix.yaml:1: listen: YAML tags are not supported"},
	{"anchor", "listen: *nope\n", "helix.yaml:1: listen: unknown YAML anchor"},
	{"merge", "nats:\n  <<: 3\n", "helix.yaml:2: nats: only mappings can be merged"},
	{"split text", "auth:\n  tokens: [{token: x, operations: [env:X]}]\n", "helix.yaml:2: auth.tokens[0].operations[0]: put quotes around text with a colon, or a space after the colon"},
	{"split text in JSON", agent("    outputSchema: {type: object, enum: [a:1]}\n"), "helix.yaml:4: agents.a.outputSchema.enum[0]: put quotes around text with a colon, or a space after the colon"},
	{"key without space", agent("    initialState: {a:1}\n"), "helix.yaml:4: agents.a.initialState: put quotes around text with a colon, or a space after the colon"},
	{"infinity", agent("    initialState: {x: .inf}\n"), "helix.yaml:4: agents.a.initialState.x: must be a finite number"},

	{"string", "nats: {user: 7}\n", "helix.yaml:1: nats.user: must be a string"},
	{"string from list", "dataDir: [x]\n", "helix.yaml:1: dataDir: must be a string"},
	{"secret", "nats: {password: 1234}\n", "helix.yaml:1: nats.password: must be a string"},
	{"integer", "nats: {replicas: many}\n", "helix.yaml:1: nats.replicas: must be an integer"},
	{"quoted integer", "nats: {replicas: \"1\"}\n", "helix.yaml:1: nats.replicas: must be an integer"},
	{"fraction", "nats: {replicas: 1.5}\n", "helix.yaml:1: nats.replicas: must be an integer"},
	{"boolean", "auth:\n  allowUnauthenticated: yes\n", "helix.yaml:2: auth.allowUnauthenticated: must be true or false"},
	{"mapping", "nats: nats://h:1\n", "helix.yaml:1: nats: must be a mapping"},
	{"map", "agents: [a]\n", "helix.yaml:1: agents: must be a mapping"},
	{"list", "auth:\n  tokens:\n    token: x\n", "helix.yaml:2: auth.tokens: must be a list"},
	{"duration", tool("        timeout: 30\n"), "helix.yaml:7: agents.a.tools.t.timeout: must be a duration such as 30s"},
	{"number", model("provider: openai, name: m, temperature: hot"), "helix.yaml:3: agents.a.model.temperature: must be a number"},
	{"nearly a reference", "nats: {user: env:sk-secret}\n", "helix.yaml:1: nats.user: env: needs the name of an environment variable"},
	{"no variable", "nats:\n  password: env:NOPE\n", "helix.yaml:2: nats.password: environment variable NOPE is not set"},
	{"no file", "nats:\n  password: file:nope.txt\n", "helix.yaml:2: nats.password: cannot read file nope.txt: no such file or directory"},
	{"no path", "nats:\n  password: 'file:'\n", "helix.yaml:2: nats.password: file: needs a path"},
	{"reference of a wrong type", "nats: {replicas: env:WORD}\n", "helix.yaml:1: nats.replicas: must be an integer"},

	{"listen", "listen: localhost\n", "helix.yaml:1: listen: must be host:port"},
	{"listen port", "listen: localhost:http\n", "helix.yaml:1: listen: must be host:port"},
	{"dataDir", "dataDir: ''\n", "helix.yaml:1: dataDir: must not be empty"},
	{"durability", "durability: none\n", "helix.yaml:1: durability: must be fsync or interval=<duration greater than 0>"},
	{"durability outside", "nats: {url: 'nats://h:1'}\ndurability: fsync\n", "helix.yaml:2: durability: is for the embedded server: with nats.url the deployment's operator decides"},
	{"durability zero", "durability: interval=0s\n", "helix.yaml:1: durability: must be fsync or interval=<duration greater than 0>"},
	{"nats url", "nats: {url: 'http://u:pw@h'}\n", "helix.yaml:1: nats.url: must be a comma-separated list of nats://host:port"},
	{"nats listen", "nats: {listen: '4222'}\n", "helix.yaml:1: nats.listen: must be host:port"},
	{"partitions", "nats: {partitions: -1}\n", "helix.yaml:1: nats.partitions: must be from 0 to 64"},
	{"many partitions", "nats:\n  partitions: 65\n", "helix.yaml:2: nats.partitions: must be from 0 to 64"},
	{"replicas", "nats: {url: h, replicas: 2}\n", "helix.yaml:1: nats.replicas: must be 1, 3 or 5"},
	{"tls", "nats:\n  tls: {cert: c.pem}\n", "helix.yaml:2: nats.tls: cert and key need each other"},
	{"tls content", "nats:\n  tls: {ca: \"a\\nb\"}\n", "helix.yaml:2: nats.tls.ca: must be a file's path, not its content"},
	{"token", "auth:\n  tokens:\n    - name: web\n    - {token: x, sessions: ['']}\n", "helix.yaml:3: auth.tokens[0].token: must not be empty\nhelix.yaml:4: auth.tokens[1].sessions[0]: must not be empty"},
	{"no operations", "auth:\n  tokens:\n    - token: x\n      operations: []\n", "helix.yaml:4: auth.tokens[0].operations: must not be empty; leave the key out to allow everything"},
	{"null sessions", "auth:\n  tokens:\n    - token: x\n      sessions:\n", "helix.yaml:4: auth.tokens[0].sessions: has no value"},
	{"null operations", "auth:\n  tokens:\n    - {token: x, operations: ~}\n", "helix.yaml:3: auth.tokens[0].operations: has no value"},
	{"null in a list", "auth:\n  tokens:\n    - token: x\n      sessions:\n        - ~\n", "helix.yaml:5: auth.tokens[0].sessions[0]: has no value"},
	{"null text", "nats:\n  user:\n  password: x\n", "helix.yaml:2: nats.user: has no value"},
	{"null header", "agents:\n  a:\n    model: {provider: openai, name: m}\n    tools: {t: {http: {url: 'http://h', headers: {A: ~}}}}\n", "helix.yaml:4: agents.a.tools.t.http.headers.A: has no value"},
	{"null approval", tool("        requireApproval:\n"), "helix.yaml:7: agents.a.tools.t.requireApproval: has no value"},
	{"unknown operation", "auth:\n  tokens:\n    - token: x\n      operations:\n        - chat*\n        - Status\n", "helix.yaml:6: auth.tokens[0].operations[1]: matches no operation"},
	{"token with a space", "auth:\n  tokens:\n    - token: 'x '\n", "helix.yaml:3: auth.tokens[0].token: must not have spaces or control characters"},
	{"default agent", "chat: {defaultAgent: b}\n" + agent(""), "helix.yaml:1: chat.defaultAgent: must be one of the agents: a"},

	{"agent name", "agents:\n  'a b':\n    model: {provider: openai, name: m}\n", "helix.yaml:2: agents.a b: the name must match [a-zA-Z0-9_-]{1,64}"},
	{"no model", "agents:\n  a:\n", "helix.yaml:2: agents.a.model: needs a provider"},
	{"model typo", "agents:\n  a: {modell: x}\n", "helix.yaml:2: agents.a.modell: " + unknown[Agent]() + "\nhelix.yaml:2: agents.a.model: needs a provider"},
	{"no provider", model("name: m"), "helix.yaml:3: agents.a.model: needs a provider"},
	{"empty provider", model("provider: ''"), "helix.yaml:3: agents.a.model.provider: needs a provider"},
	{"provider", model("provider: acme, name: m"), "helix.yaml:3: agents.a.model.provider: must be anthropic, openai, openai-responses or scripted"},
	{"no model name", model("provider: openai"), "helix.yaml:3: agents.a.model.name: must not be empty"},
	{"base URL", model("provider: openai, name: m, baseURL: /v1"), "helix.yaml:3: agents.a.model.baseURL: must be an absolute http or https URL"},
	{"retries", model("provider: openai, name: m, maxRetries: -1"), "helix.yaml:3: agents.a.model.maxRetries: must not be negative"},
	{"output tokens", model("provider: openai, name: m, maxOutputTokens: -1"), "helix.yaml:3: agents.a.model.maxOutputTokens: must not be negative"},
	{"temperature", model("provider: openai, name: m, temperature: -1"), "helix.yaml:3: agents.a.model.temperature: must not be negative"},
	{"temperature of anthropic", model("provider: anthropic, name: m, temperature: 1.5"), "helix.yaml:3: agents.a.model.temperature: must be at most 1 with provider anthropic"},
	{"base URL of anthropic", model("provider: anthropic, name: m, baseURL: 'https://h/v1/'"), "helix.yaml:3: agents.a.model.baseURL: must not end in /v1 with provider anthropic"},
	{"effort of a script", model("provider: scripted, script: [{text: x}], reasoning: {effort: high}"), "helix.yaml:3: agents.a.model.reasoning.effort: is not for provider scripted"},
	{"summary", model("provider: openai, name: m, reasoning: {summary: long}"), "helix.yaml:3: agents.a.model.reasoning.summary: is for provider openai-responses only\nhelix.yaml:3: agents.a.model.reasoning.summary: must be auto, concise or detailed"},
	{"budget", model("provider: openai, name: m, reasoning: {budgetTokens: 1}"), "helix.yaml:3: agents.a.model.reasoning.budgetTokens: is for provider anthropic only\nhelix.yaml:3: agents.a.model.reasoning.budgetTokens: must be at least 1024"},
	{"budget beyond the answer", model("provider: anthropic, name: m, maxOutputTokens: 2000, reasoning: {budgetTokens: 2000}"), "helix.yaml:3: agents.a.model.reasoning.budgetTokens: must be less than maxOutputTokens"},
	{"top p", model("provider: openai, name: m, topP: 0"), "helix.yaml:3: agents.a.model.topP: must be greater than 0 and at most 1"},
	{"top k of OpenAI", model("provider: openai, name: m, topK: 4"), "helix.yaml:3: agents.a.model.topK: is for compatible servers with a baseURL: OpenAI has no such setting"},
	{"top k", model("provider: anthropic, name: m, topK: 0"), "helix.yaml:3: agents.a.model.topK: must be at least 1"},
	{"sampling of responses", model("provider: openai-responses, name: m, topK: 4, seed: 1, frequencyPenalty: 1, presencePenalty: 1, stopSequences: [x]"), "helix.yaml:3: agents.a.model.topK: is for provider anthropic, openai only\nhelix.yaml:3: agents.a.model.frequencyPenalty: is for provider openai only\nhelix.yaml:3: agents.a.model.presencePenalty: is for provider openai only\nhelix.yaml:3: agents.a.model.seed: is for provider openai only\nhelix.yaml:3: agents.a.model.stopSequences: is for provider anthropic, openai only"},
	{"sampling of anthropic", model("provider: anthropic, name: m, seed: 1, presencePenalty: 1, stopSequences: [' ']"), "helix.yaml:3: agents.a.model.presencePenalty: is for provider openai only\nhelix.yaml:3: agents.a.model.seed: is for provider openai only\nhelix.yaml:3: agents.a.model.stopSequences[0]: must not be empty"},
	{"penalties", model("provider: openai, name: m, frequencyPenalty: 2.5, presencePenalty: -3"), "helix.yaml:3: agents.a.model.frequencyPenalty: must be from -2 to 2\nhelix.yaml:3: agents.a.model.presencePenalty: must be from -2 to 2"},
	{"stop sequences", model("provider: openai, name: m, stopSequences: [a, b, c, d, e]"), "helix.yaml:3: agents.a.model.stopSequences: OpenAI takes at most 4"},
	{"model headers", model("provider: openai, name: m, headers: {'a b': x}"), "helix.yaml:3: agents.a.model.headers.a b: not an HTTP header's name"},
	{"provider options", model("provider: openai, name: m, providerOptions: [x]"), "helix.yaml:3: agents.a.model.providerOptions: must be a mapping"},
	{"provider options of helixd", model("provider: openai, name: m, providerOptions: {messages: []}"), "helix.yaml:3: agents.a.model.providerOptions: messages is set by helixd"},
	{"cache of OpenAI", model("provider: openai, name: m, cache: 5m"), "helix.yaml:3: agents.a.model.cache: is for provider anthropic only"},
	{"cache", model("provider: anthropic, name: m, cache: 10m"), "helix.yaml:3: agents.a.model.cache: must be 5m or 1h"},
	{"options of a script", model("provider: scripted, script: [{text: x}], topP: 1, headers: {a: b}, strictOutput: true"), "helix.yaml:3: agents.a.model.topP: is for provider anthropic, openai, openai-responses only\nhelix.yaml:3: agents.a.model.headers: is for provider anthropic, openai, openai-responses only\nhelix.yaml:3: agents.a.model.strictOutput: is for provider anthropic, openai, openai-responses only"},
	{"model idle", model("provider: openai, name: m, idleTimeout: -1s"), "helix.yaml:3: agents.a.model.idleTimeout: must not be negative"},
	{"no script", model("provider: scripted"), "helix.yaml:3: agents.a.model.script: must not be empty with provider scripted"},
	{"script of a real model", model("provider: openai, name: m, script: [{text: x}], scriptDelay: 1s"), "helix.yaml:3: agents.a.model.script: is for provider scripted only\nhelix.yaml:3: agents.a.model.scriptDelay: is for provider scripted only"},
	{"script delay", model("provider: scripted, script: [{text: x}], scriptDelay: -1s"), "helix.yaml:3: agents.a.model.scriptDelay: must not be negative"},
	{"script call", model("provider: scripted, script: [{toolCalls: [{arguments: 3}]}]"), "helix.yaml:3: agents.a.model.script[0].toolCalls[0].name: must not be empty\nhelix.yaml:3: agents.a.model.script[0].toolCalls[0].arguments: must be a mapping"},
	{"steps", agent("    maxSteps: 0\n"), "helix.yaml:4: agents.a.maxSteps: must be at least 1"},
	{"initial state", agent("    initialState: [1]\n"), "helix.yaml:4: agents.a.initialState: must be a mapping"},
	{"output schema", agent("    outputSchema: object\n"), "helix.yaml:4: agents.a.outputSchema: must be a JSON Schema, a mapping"},
	{"sub-agent", agent("    subAgents:\n      - b\n"), "helix.yaml:5: agents.a.subAgents[0]: must be one of the agents: a"},
	{"persistent agent", agent("    persistentAgents: [{agent: b, mode: x}]\n"), "helix.yaml:4: agents.a.persistentAgents[0].agent: must be one of the agents: a\nhelix.yaml:4: agents.a.persistentAgents[0].mode: must be blocking or non-blocking"},
	{"sub-agent without output", agent("    subAgents: [b]\n  b:\n    model: {provider: openai, name: m}\n"), "helix.yaml:4: agents.a.subAgents[0]: agent b needs an outputSchema: it is what the call returns"},
	{"sub-agent twice", agent("    outputSchema: {type: object}\n    subAgents: [a, a]\n    remoteAgents: {a: {url: 'http://h', agentType: x}}\n"), "helix.yaml:5: agents.a.subAgents[1]: is given twice\nhelix.yaml:6: agents.a.remoteAgents.a: is one of subAgents, too"},
	{"sub-agent name", "agents:\n  " + longName + ":\n    model: {provider: openai, name: m}\n    outputSchema: {type: object}\n    subAgents: [" + longName + "]\n", "helix.yaml:5: agents." + longName + ".subAgents[0]: the name of a sub-agent has at most 54 characters"},
	{"persistent agent twice", agent("    persistentAgents:\n      - {agent: a}\n      - {agent: a}\n"), "helix.yaml:6: agents.a.persistentAgents[1].agent: is given twice"},
	{"remote agent of nothing", agent("    remoteAgents:\n      b:\n"), "helix.yaml:5: agents.a.remoteAgents.b.url: must be an absolute http or https URL\nhelix.yaml:5: agents.a.remoteAgents.b.agentType: must not be empty"},
	{"remote agent", agent("    remoteAgents:\n      'b c':\n        url: /x\n        agentType: b\n        timeout: 0s\n        headers: {'a b': \"x\\ny\"}\n        inputSchema: {}\n        outputSchema: 7\n"), "helix.yaml:5: agents.a.remoteAgents.b c: the name must match [a-zA-Z0-9_-]{1,64}\nhelix.yaml:6: agents.a.remoteAgents.b c.url: must be an absolute http or https URL\nhelix.yaml:8: agents.a.remoteAgents.b c.timeout: must be greater than 0\nhelix.yaml:9: agents.a.remoteAgents.b c.headers.a b: not an HTTP header's name\nhelix.yaml:9: agents.a.remoteAgents.b c.headers.a b: must not contain control characters\nhelix.yaml:10: agents.a.remoteAgents.b c.inputSchema: must have type: object\nhelix.yaml:11: agents.a.remoteAgents.b c.outputSchema: must be a JSON Schema, a mapping"},
	{"sub-agent typo", agent("    outputSchema: {type: object}\n    subAgents:\n      - {agnt: a}\n"), "helix.yaml:6: agents.a.subAgents[0].agnt: unknown key; known are agent, description, timeout"},
	{"sub-agent number", agent("    subAgents: [7]\n"), "helix.yaml:4: agents.a.subAgents[0]: must be a mapping"},
	{"sub-agent timeout", agent("    outputSchema: {type: object}\n    subAgents: [{agent: a, timeout: -1s}]\n"), "helix.yaml:5: agents.a.subAgents[0].timeout: must not be negative; 0s is none"},
	{"remote retries", agent("    remoteAgents:\n      b: {url: 'http://h', agentType: b, maxRetries: -1, retryBaseDelay: 0s, streamRetries: 51, streamRetryBase: 0s, idleTimeout: 0s, headers: {A: x}, headerFiles: {A: f, B: ''}}\n"), "helix.yaml:5: agents.a.remoteAgents.b.headerFiles.A: is one of headers, too\nhelix.yaml:5: agents.a.remoteAgents.b.headerFiles.B: must be a file's path, not its content\nhelix.yaml:5: agents.a.remoteAgents.b.maxRetries: must not be negative\nhelix.yaml:5: agents.a.remoteAgents.b.retryBaseDelay: must be greater than 0\nhelix.yaml:5: agents.a.remoteAgents.b.streamRetries: must be from 0 to 50\nhelix.yaml:5: agents.a.remoteAgents.b.streamRetryBase: must be greater than 0\nhelix.yaml:5: agents.a.remoteAgents.b.idleTimeout: must be greater than 0"},
	{"approvals", agent("    requireApproval:\n      '[': true\n      web_*: false\n      x: {when: 3}\n      z: yes\n"), "helix.yaml:5: agents.a.requireApproval.[: must be a tool's name, or a pattern such as files_*\nhelix.yaml:6: agents.a.requireApproval.web_*: must be true or {when: <JSON Schema>}\nhelix.yaml:7: agents.a.requireApproval.x.when: must be a JSON Schema, a mapping\nhelix.yaml:8: agents.a.requireApproval.z: must be true, false or {when: <JSON Schema>}"},
	{"chat", "chat:\n  startMetadata: [1]\n  finishMetadata: x\n  messageId: msg\n  hideChunks: [text_delta, nope]\n", "helix.yaml:2: chat.startMetadata: must be a mapping\nhelix.yaml:3: chat.finishMetadata: must be a mapping\nhelix.yaml:4: chat.messageId: must contain {index}, or messages would share an id\nhelix.yaml:5: chat.hideChunks[1]: must be a type of chunks"},
	{"server", "serviceName: ''\ninterruptObservationDeadline: 0s\nheartbeat: 0s\nmodelRetryDelay: 0s\nsubmitToolResultSchema: {type: 7}\n", "helix.yaml:1: serviceName: must not be empty\nhelix.yaml:2: interruptObservationDeadline: must be greater than 0\nhelix.yaml:3: heartbeat: must be greater than 0\nhelix.yaml:4: modelRetryDelay: must be greater than 0\nhelix.yaml:5: submitToolResultSchema: must be a JSON Schema: invalid value for \"type\": \"7\""},
	{"input schema", agent("    inputSchema: {type: string}\n"), "helix.yaml:4: agents.a.inputSchema: must have type: object"},
	{"broken schema", agent("    inputSchema: {type: object, $ref: '#/nowhere'}\n"), "helix.yaml:4: agents.a.inputSchema: must be a JSON Schema: JSON Pointer \"/nowhere\": no schema field \"nowhere\""},

	{"tool name", agent("    tools: {a.b: {http: {url: 'http://h'}}}\n"), "helix.yaml:4: agents.a.tools.a.b: the name must match [a-zA-Z0-9_-]{1,64}"},
	{"reserved tool", agent("    tools: {__finish__: {http: {url: 'http://h'}}}\n"), "helix.yaml:4: agents.a.tools.__finish__: names that begin with __, subagent__ or companion__ are reserved"},
	{"tool of nothing", agent("    tools: {t: {description: x}}\n"), "helix.yaml:4: agents.a.tools.t: needs either http or client"},
	{"tool typo", agent("    tools: {t: {htp: x}}\n"), "helix.yaml:4: agents.a.tools.t.htp: " + unknown[Tool]()},
	{"http and client", tool("        client: true\n"), "helix.yaml:5: agents.a.tools.t: can't have both http and client"},
	{"tool url", agent("    tools:\n      t:\n        http: {url: 'ftp://h'}\n"), "helix.yaml:6: agents.a.tools.t.http.url: must be an absolute http or https URL"},
	{"header name", agent("    tools:\n      t:\n        http: {url: 'http://h', headers: {'a b': x}}\n"), "helix.yaml:6: agents.a.tools.t.http.headers.a b: not an HTTP header's name"},
	{"header value", agent("    tools:\n      t:\n        http: {url: 'http://h', headers: {A: \"x\\ny\"}}\n"), "helix.yaml:6: agents.a.tools.t.http.headers.A: must not contain control characters"},
	{"timeout", tool("        timeout: -1ms\n"), "helix.yaml:7: agents.a.tools.t.timeout: must not be negative; 0s is none"},
	{"client and finishWith", agent("    tools:\n      t:\n        client: true\n        finishWith: true\n"), "helix.yaml:7: agents.a.tools.t.finishWith: can't be combined with client"},
	{"client and approval", agent("    tools:\n      t:\n        client: true\n        requireApproval: true\n"), "helix.yaml:7: agents.a.tools.t.requireApproval: can't be combined with client"},
	{"finishWith and approval", tool("        finishWith: true\n        requireApproval: {when: {type: object}}\n"), "helix.yaml:8: agents.a.tools.t.requireApproval: can't be combined with finishWith"},
	{"approval", tool("        requireApproval: {if: {}}\n"), "helix.yaml:7: agents.a.tools.t.requireApproval: must be true, false or {when: <JSON Schema>}"},
	{"approval schema", tool("        requireApproval: {when: [x]}\n"), "helix.yaml:7: agents.a.tools.t.requireApproval.when: must be a JSON Schema, a mapping"},
	{"output of no client", tool("        outputSchema: {type: object}\n"), "helix.yaml:7: agents.a.tools.t.outputSchema: is for client tools: it is what a client's result must fit"},
	{"client timeout", agent("    tools:\n      t:\n        client: true\n        timeout: -1s\n"), "helix.yaml:7: agents.a.tools.t.timeout: must not be negative; 0s is none"},

	{"all at once, in order", agent("    maxSteps: 0\nlisten: x\nfoo: 1\n"), "helix.yaml:4: agents.a.maxSteps: must be at least 1\nhelix.yaml:5: listen: must be host:port\nhelix.yaml:6: foo: " + unknown[Config]()},
	{"no follow-ups", agent("    tools: {t: {http: {url: env:NOPE}}}\n"), "helix.yaml:4: agents.a.tools.t.http.url: environment variable NOPE is not set"},
}

func TestBadFiles(t *testing.T) {
	for _, tt := range badFiles {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadText(t, tt.text, env{"WORD": "sk-secret"})
			assert.EqualError(t, err, tt.want)
			assert.Nil(t, c)
		})
	}
}
