package config

import "time"

// EmbedderProvider is who computes vectors.
type EmbedderProvider string

// Providers of embedders.
const (
	EmbedderLocal  EmbedderProvider = "local"  // in this process, of words and their spelling
	EmbedderOpenAI EmbedderProvider = "openai" // the embeddings API, also of compatible servers
)

// Executors of embeddings (document 002).
const (
	ExecutorInline     = "inline"
	ExecutorBackground = "background"
)

// Memory configures how memories are found; agents say whose they have.
type Memory struct {
	Embedder Embedder `json:"embedder"`
	// Executor is inline, the default: who saves a memory waits for its vector;
	// or background: the vector comes later.
	Executor string `json:"executor"`
	// MaxConcurrency is how many vectors are computed at once in the background;
	// at least 1, default 4.
	MaxConcurrency int `json:"maxConcurrency"`
	// ProcessEvery is how often memories are looked for whose vectors could not
	// be computed; default 5m, 0: only when a command asks.
	ProcessEvery time.Duration `json:"processEvery"`
}

// Embedder is the model that computes what texts mean.
type Embedder struct {
	// Provider is local or openai. Empty: memories are found by their words
	// only.
	Provider EmbedderProvider `json:"provider"`
	Name     string           `json:"name"`   // of the model, with openai
	APIKey   Secret           `json:"apiKey"` // with openai; empty: none is sent
	// BaseURL is the API's root, which ends in /v1 with OpenAI; empty: OpenAI's.
	BaseURL string `json:"baseURL"`
	// Dimensions is how many numbers a vector has; 0: local's 256, or what the
	// model gives: set it if its server may come to give others. Other
	// dimensions are another model: all memories get new vectors.
	Dimensions int `json:"dimensions"`
}

// AgentMemory says whose memories an agent has, and what it does with them.
type AgentMemory struct {
	// Scope is whose the memories are: user, agent or session. They are found
	// in the read models.
	Scope string `json:"scope"`
	// Recall is of how many memories the agent is reminded when a turn begins, up
	// to 50; default 5, 0: none.
	Recall int  `json:"recall"`
	Save   bool `json:"save"`   // it has the tool save_memory; default true
	Search bool `json:"search"` // it has the tool search_memory; default true
}

// Defaults of memories.
const (
	DefaultRecall         = 5
	DefaultMaxConcurrency = 4
	DefaultProcessEvery   = 5 * time.Minute
)

func (m *AgentMemory) setDefaults() {
	*m = AgentMemory{Recall: DefaultRecall, Save: true, Search: true}
}
