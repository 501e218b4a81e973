package config

import "time"

// EmbedderProvider is the service that computes vectors.
type EmbedderProvider string

// Providers of embedders.
const (
	EmbedderLocal  EmbedderProvider = "local"  // in this process, of words and their spelling
	EmbedderOpenAI EmbedderProvider = "openai" // the embeddings API, also of compatible servers
)

// Executors of embeddings.
const (
	ExecutorInline     = "inline"
	ExecutorBackground = "background"
)

// Memory configures how memories are found; agents say whose they have.
type Memory struct {
	Embedder Embedder `json:"embedder"`
	// Executor is inline, the default: a save waits for the vector; or background: the
	// vector is computed later.
	Executor string `json:"executor"`
	// MaxConcurrency is how many vectors are computed at once in the background;
	// at least 1, default 4.
	MaxConcurrency int `json:"maxConcurrency"`
	// ProcessEvery is how often missing vectors are computed again; default 5m, 0:
	// only by a command.
	ProcessEvery time.Duration `json:"processEvery"`
}

// Embedder is the model that computes what texts mean.
type Embedder struct {
	// Provider is local or openai. Empty: memories are found by their words
	// only.
	Provider EmbedderProvider `json:"provider"`
	Name     string           `json:"name"`   // the model's name, with openai
	APIKey   Secret           `json:"apiKey"` // the provider's key, with openai; empty: none is sent
	// BaseURL is the API's root, which ends in /v1 with OpenAI; empty: OpenAI's.
	BaseURL string `json:"baseURL"`
	// Dimensions is the length of a vector; 0: 256 with local, else the model's own.
	// Set it if the server's dimensions may change. If you change it, all memories
	// receive new vectors.
	Dimensions int `json:"dimensions"`
}

// AgentMemory says whose memories an agent has, and what it does with them.
type AgentMemory struct {
	// Scope is whose memories the agent has: user, agent or session. Searches need the
	// read models.
	Scope string `json:"scope"`
	// Recall is how many memories the agent recalls at the beginning of a turn, up to
	// 50; default 5, 0: none.
	Recall int  `json:"recall"`
	Save   bool `json:"save"`   // the agent has the tool save_memory; default true
	Search bool `json:"search"` // the agent has the tool search_memory; default true
}

// Defaults of memories.
const (
	defaultRecall         = 5
	defaultMaxConcurrency = 4
	defaultProcessEvery   = 5 * time.Minute
)

func (m *AgentMemory) setDefaults() {
	*m = AgentMemory{Recall: defaultRecall, Save: true, Search: true}
}
