package config

import (
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

// Config is a whole helix.yaml. Build one with [Load] or [Default]; after
// changing it, [Config.Validate] looks at it again.
type Config struct {
	// Listen is the HTTP address, "host:port".
	Listen string `json:"listen"`
	// DataDir is the embedded server's folder, relative to the working
	// directory.
	DataDir string `json:"dataDir"`
	// Durability is "fsync" or "interval=<duration>"; see SyncInterval. It is
	// the embedded server's: with NATS.URL it must not be set.
	Durability string `json:"durability"`
	// DrainTimeout is how long a daemon that is told to stop lets its runs come
	// to an end, or to where another node can go on with them; default 10s.
	DrainTimeout time.Duration `json:"drainTimeout"`

	NATS NATS `json:"nats"`
	Auth Auth `json:"auth"`
	CORS CORS `json:"cors"`
	Chat Chat `json:"chat"`
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

	Workspaces Workspaces `json:"workspaces"`

	file    string            // as given to Load; empty: none
	origins map[string]origin // who set a key, by its dotted path
}

// Chat configures the chat routes.
type Chat struct {
	// DefaultAgent is who answers when a request names no agent; empty: the
	// only agent.
	DefaultAgent  string `json:"defaultAgent"`
	AutoResume    bool   `json:"autoResume"`    // default true
	ContentReplay bool   `json:"contentReplay"` // default true
	StrictParts   bool   `json:"strictParts"`   // default true
}

// CORS configures browsers' access from other origins.
type CORS struct {
	Origins []string `json:"origins"` // default none
}

// Defaults that are not zero.
const (
	DefaultListen        = "127.0.0.1:8080"
	DefaultDataDir       = "./helix-data"
	DefaultDrainTimeout  = 10 * time.Second
	DefaultMaxSteps      = 10
	DefaultMaxRetries    = 3
	DefaultHTTPTimeout   = 30 * time.Second // of an HTTP tool
	DefaultClientTimeout = 10 * time.Minute // of a client tool
	DefaultRemoteTimeout = 5 * time.Minute  // of a remote agent
)

// Default returns the configuration of an empty file.
func Default() *Config {
	c := &Config{
		Listen:     DefaultListen,
		DataDir:    DefaultDataDir,
		Durability: durabilityFsync, DrainTimeout: DefaultDrainTimeout,
		NATS: NATS{
			Replicas: 1,
			Cluster:  Cluster{Name: "helix"}, Subscribers: Subscribers{TTL: subscriber.DefaultTTL},
		},
		Auth:   Auth{JWT: JWT{SessionsClaim: "helix_sessions", OperationsClaim: "helix_operations"}},
		Chat:   Chat{AutoResume: true, ContentReplay: true, StrictParts: true},
		Memory: Memory{Executor: ExecutorInline, MaxConcurrency: DefaultMaxConcurrency, ProcessEvery: DefaultProcessEvery},
	}
	c.setOperationDefaults()
	c.setWorkspaceDefaults()
	return c
}
