package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/httpapi"
)

// Config is a whole helix.yaml. Build one with [Load] or [Default]; after
// changing it, [Config.Validate] looks at it again.
type Config struct {
	// Listen is the HTTP address, "host:port".
	Listen string `json:"listen"`
	// Hosts are the names under which clients reach the HTTP server: host names in
	// lower case without a port, *.example for all names below example, or "*" for any
	// name, which needs auth. Requests with another name in Host are refused;
	// addresses, localhost and the name in listen are always accepted. Default none.
	Hosts []string `json:"hosts"`
	// Public are routes that answer without a token: any of /readyz (all of its
	// fields), /metrics and /openapi.json; default none. /healthz, the debugger's page
	// and the field ready of /readyz never need a token.
	Public []string `json:"public"`
	// DataDir is the embedded server's folder, relative to the working
	// directory.
	DataDir string `json:"dataDir"`
	// Durability is the durability of the embedded server: "fsync" or
	// "interval=<duration>"; default fsync. It must not be set together with nats.url.
	Durability string `json:"durability"`
	// DrainTimeout is how long a daemon that stops waits for its runs to finish, or to
	// reach a step where another node can continue them; default 10s.
	DrainTimeout time.Duration `json:"drainTimeout"`
	// ServiceName is the name of the daemon in its first log lines and in traces;
	// default helixd.
	ServiceName string `json:"serviceName"`
	// InterruptObservationDeadline is how long /interrupt and /abort wait for the run
	// to stop, greater than 0; default 5s. After that they answer 504, and the run
	// stops as soon as it can.
	InterruptObservationDeadline time.Duration `json:"interruptObservationDeadline"`
	// VerboseValidationErrors adds the reason to the answer when a submitted tool
	// result is refused; default false.
	VerboseValidationErrors bool `json:"verboseValidationErrors"`
	// SubmitToolResultSchema is a JSON Schema that the body of every submission must
	// match, in addition to helixd's own limits; nil: only those.
	SubmitToolResultSchema json.RawMessage `json:"submitToolResultSchema"`
	// ModelRetryDelay is the pause before a failed model call is repeated, which
	// doubles each time; greater than 0, default 1s. If the provider asks for a longer
	// one with Retry-After, up to 2m, that counts.
	ModelRetryDelay time.Duration `json:"modelRetryDelay"`
	// Heartbeat is the silence after which an event stream sends a comment, greater
	// than 0; default 15s. It keeps proxies from closing silent connections.
	Heartbeat time.Duration `json:"heartbeat"`

	NATS NATS      `json:"nats"`
	TLS  ServerTLS `json:"tls"`
	Auth Auth      `json:"auth"`
	CORS CORS      `json:"cors"`
	Chat Chat      `json:"chat"`
	// Protocols are those of others that the server speaks beside its own.
	Protocols Protocols `json:"protocols"`
	// Agents are by name, [a-zA-Z0-9_-]{1,64}.
	Agents map[string]Agent `json:"agents"`
	Memory Memory           `json:"memory"`

	Log        Log        `json:"log"`
	ReadModels ReadModels `json:"readModels"`
	// Prices are by the model's name, as agents have it.
	Prices    map[string]Price `json:"prices"`
	Metrics   Metrics          `json:"metrics"`
	Tracing   Tracing          `json:"tracing"`
	Debug     Debug            `json:"debug"`
	Retention Retention        `json:"retention"`
	Sessions  Sessions         `json:"sessions"`
	Disk      Disk             `json:"disk"`
	Limits    Limits           `json:"limits"`
	// Tenants are the limits of tenants, by name; those of "default" are for every
	// tenant that has none by its name.
	Tenants map[string]Tenant `json:"tenants"`

	Workspaces Workspaces `json:"workspaces"`

	file    string            // as given to Load; empty: none
	files   []string          // that Load has read
	origins map[string]origin // who set a key, by its dotted path
}

// SecretFiles returns the files that the configuration was read from, those of
// its file: references, and those of credentials, private keys and headers that it names.
// Each is absolute or relative to the working directory.
func (c *Config) SecretFiles() []string {
	files := slices.Clone(c.files)
	for _, name := range []string{c.TLS.Key, c.NATS.TLS.Key, c.NATS.WebSocket.Key, c.NATS.Cluster.TLS.Key} {
		if name != "" {
			files = append(files, name)
		}
	}
	for _, a := range c.Agents {
		for _, r := range a.RemoteAgents {
			files = slices.AppendSeq(files, maps.Values(r.HeaderFiles))
		}
	}
	if name := c.NATS.Credentials.Reveal(); name != "" && !c.NATS.InlineCredentials() {
		files = append(files, name)
	}
	return files
}

// Chat configures the chat routes.
type Chat struct {
	// DefaultAgent is the agent that answers a request without an agent; empty: the
	// only agent.
	DefaultAgent  string `json:"defaultAgent"`
	AutoResume    bool   `json:"autoResume"`    // resume the run when the last pending call is answered; default true
	ContentReplay bool   `json:"contentReplay"` // replay an unfinished answer on reconnect; false: it is part of the snapshot; default true
	StrictParts   bool   `json:"strictParts"`   // send only parts that AI SDK clients accept; default true
	// StartMetadata is the messageMetadata of the start of every stream, a
	// mapping; nil: none.
	StartMetadata json.RawMessage `json:"startMetadata"`
	// FinishMetadata is the messageMetadata of the end of every stream, a
	// mapping; nil: none.
	FinishMetadata json.RawMessage `json:"finishMetadata"`
	// MessageID is the form of the ids of messages, in streams and in histories: a
	// text with {index}, the message's number from 0, and optionally {role}; default
	// msg-{index}.
	MessageID string `json:"messageId"`
	// HideChunks are types of chunks, such as thinking, that chat streams leave
	// out; default none. Snapshots and histories still have them.
	HideChunks []string `json:"hideChunks"`
	// ExposeCheckpoints sends checkpoint_created, step_committed and
	// step_discarded as data parts; default false.
	ExposeCheckpoints bool `json:"exposeCheckpoints"`
	// ResyncOnResume begins the answer to X-Resume-From-Sequence with a
	// stream_resync; default true.
	ResyncOnResume bool `json:"resyncOnResume"`
}

// Protocols switches the protocols of others.
type Protocols struct {
	DurableStreams DurableStreamsProtocol `json:"durableStreams"`
	Responses      ResponsesProtocol      `json:"responses"`
	AGUI           AGUIProtocol           `json:"agui"`
}

// DurableStreamsProtocol is the Durable Streams protocol, at /v1/stream/.
type DurableStreamsProtocol struct {
	// Enabled serves the protocol; default false, in helixd dev true.
	Enabled bool `json:"enabled"`
}

// ResponsesProtocol is the OpenAI Responses and Conversations APIs, at /v1/responses and
// /v1/conversations.
type ResponsesProtocol struct {
	// Enabled serves the protocol; default false, in helixd dev true.
	Enabled bool `json:"enabled"`
	// DefaultAgent is the agent that answers a request without a model; empty: the
	// only agent.
	DefaultAgent string `json:"defaultAgent"`
}

// AGUIProtocol is AG-UI, the Agent User Interaction Protocol, at /ag-ui/{agent}.
type AGUIProtocol struct {
	// Enabled serves the protocol; default false, in helixd dev true.
	Enabled bool `json:"enabled"`
}

// EnableProtocols serves the protocols about which nothing is configured.
func (c *Config) EnableProtocols() {
	if !c.isSet("protocols.durableStreams.enabled") {
		c.Protocols.DurableStreams.Enabled = true
	}
	if !c.isSet("protocols.responses.enabled") {
		c.Protocols.Responses.Enabled = true
	}
	if !c.isSet("protocols.agui.enabled") {
		c.Protocols.AGUI.Enabled = true
	}
}

// The placeholders in Chat.MessageID.
const (
	messageIndex = "{index}"
	messageRole  = "{role}"
)

// MessageName is what a message is called.
func (c Chat) MessageName(index int, role string) string {
	return strings.NewReplacer(messageIndex, strconv.Itoa(index), messageRole, role).Replace(c.MessageID)
}

// ServerTLS has the HTTP server use TLS 1.2 or later. All are PEM files, relative
// to the working directory, and read again when they change.
type ServerTLS struct {
	// Cert is the server's certificate, followed by intermediate certificates; empty,
	// the default: plain HTTP.
	Cert string `json:"cert"`
	Key  string `json:"key"` // the private key of tls.cert
	// ClientCA is the file with the authorities of client certificates. If it is set,
	// every request except GET /healthz needs such a certificate, in addition to its
	// token; default none.
	ClientCA string `json:"clientCA"`
	// Proxy is true if a proxy in front of the daemon terminates TLS: then the daemon
	// and helixd doctor accept plain HTTP on an address that is not a loopback
	// address. Default false.
	Proxy bool `json:"proxy"`
}

// CORS configures browsers' access from other origins.
type CORS struct {
	Origins []string `json:"origins"` // the origins of web pages that may use the server; default none
}

// Defaults that are not zero.
const (
	DefaultListen        = "127.0.0.1:8080"
	defaultDataDir       = "./helix-data"
	defaultDrainTimeout  = 10 * time.Second
	defaultServiceName   = "helixd"
	defaultMessageID     = "msg-" + messageIndex
	DefaultMaxSteps      = 10
	DefaultMaxRetries    = 3
	defaultHTTPTimeout   = 30 * time.Second // of an HTTP tool
	defaultRemoteTimeout = 5 * time.Minute  // of a remote agent
)

// Default returns the configuration of an empty file.
func Default() *Config {
	c := &Config{
		Listen:     DefaultListen,
		DataDir:    defaultDataDir,
		Durability: durabilityFsync, DrainTimeout: defaultDrainTimeout, ServiceName: defaultServiceName,
		InterruptObservationDeadline: httpapi.DefaultInterruptDeadline, Heartbeat: httpapi.DefaultHeartbeat,
		ModelRetryDelay: agentloop.DefaultRetryDelay,
		NATS: NATS{
			Replicas: 1,
			Cluster:  Cluster{Name: "helix"}, Subscribers: Subscribers{TTL: subscriber.DefaultTTL},
		},
		Auth:   Auth{JWT: JWT{SessionsClaim: "helix_sessions", OperationsClaim: "helix_operations"}},
		Chat:   Chat{AutoResume: true, ContentReplay: true, StrictParts: true, MessageID: defaultMessageID, ResyncOnResume: true},
		Memory: Memory{Executor: ExecutorInline, MaxConcurrency: defaultMaxConcurrency, ProcessEvery: defaultProcessEvery},
	}
	c.setOperationDefaults()
	c.setWorkspaceDefaults()
	return c
}
