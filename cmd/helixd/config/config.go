package config

import (
	"slices"
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
	files   []string          // that Load has read
	origins map[string]origin // who set a key, by its dotted path
}

// SecretFiles returns the files that the configuration was read from, those of
// its file: references, and those of credentials and private keys that it names.
// Each is absolute or relative to the working directory.
func (c *Config) SecretFiles() []string {
	files := slices.Clone(c.files)
	for _, name := range []string{c.NATS.TLS.Key, c.NATS.WebSocket.Key, c.NATS.Cluster.TLS.Key} {
		if name != "" {
			files = append(files, name)
		}
	}
	if name := c.NATS.Credentials.Reveal(); name != "" && !c.NATS.InlineCredentials() {
		files = append(files, name)
	}
	return files
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
