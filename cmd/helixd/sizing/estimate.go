package sizing

import (
	"errors"
	"math"
)

// Load is what a deployment has to carry.
type Load struct {
	Sessions  float64 `json:"sessions"`  // a day
	Tokens    float64 `json:"tokens"`    // that the models of a session emit
	Rate      float64 `json:"rate"`      // tokens a second of a run
	Peak      float64 `json:"peak"`      // how many times the day's mean the busiest minutes are
	Followers float64 `json:"followers"` // clients of a run
	Idle      float64 `json:"idle"`      // clients of sessions that do nothing
	Days      float64 `json:"days"`      // that records are kept
	LogDays   float64 `json:"logDays"`   // that they stay in the log too
	Nodes     float64 `json:"nodes"`
	Replicas  float64 `json:"replicas"`
}

// Node is what each node needs.
type Node struct {
	Disk   float64 `json:"disk"`   // bytes
	Memory float64 `json:"memory"` // bytes
	Cores  float64 `json:"cores"`
}

// Estimate is what a load means.
type Estimate struct {
	Load
	Records         float64    `json:"records"`    // a day
	Runs            float64    `json:"runs"`       // at once, at the peak
	TokensPerSecond float64    `json:"tokensPerS"` // at the peak
	Clients         float64    `json:"clients"`    // at once, at the peak
	Log             float64    `json:"logBytes"`
	Segments        float64    `json:"segmentBytes"`
	ReadModels      float64    `json:"readModelBytes"` // on each node
	Node            Node       `json:"node"`
	Limits          []string   `json:"limits,omitempty"` // that the load reaches
	Constants       []Constant `json:"constants"`
}

// Room that is left beside what is used.
const (
	minFree     = 1 << 30 // disk.minFree's default
	diskSlack   = 1.25    // blocks that are not yet removed, and rewrites
	memorySlack = 1.3     // garbage between two collections
	busy        = 0.5     // of the cores, so that latencies stay those that were measured
)

// Bounds that an estimate says something about.
const (
	maxConnections = 32768 // of a node, as limits.connections
	maxAppends     = 25000 // a second and partition, in mode fsync
)

// Of returns what a load needs, or why that can't be said.
func Of(l Load) (Estimate, error) {
	for _, v := range []float64{l.Sessions, l.Tokens, l.Rate, l.Peak, l.Followers, l.Idle, l.Days, l.LogDays, l.Nodes, l.Replicas} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return Estimate{}, errors.New("no number may be negative")
		}
	}
	switch {
	case l.Rate == 0:
		return Estimate{}, errors.New("the rate must be greater than 0")
	case l.Peak < 1:
		return Estimate{}, errors.New("the peak must be at least 1: the busiest minutes have at least the mean")
	case l.Nodes < 1, l.Nodes != math.Trunc(l.Nodes):
		return Estimate{}, errors.New("there must be at least one node")
	case l.Replicas != 1 && l.Replicas != 3 && l.Replicas != 5, l.Replicas > l.Nodes:
		return Estimate{}, errors.New("replicas must be 1, 3 or 5, and not more than the nodes")
	case l.LogDays > l.Days:
		return Estimate{}, errors.New("the log can't keep records longer than the segments")
	}
	e := Estimate{Load: l, Constants: Constants()}
	e.Records = l.Sessions * (l.Tokens + otherRecords.Value)
	perLogRecord := logRecord.Value
	if l.Nodes > 1 {
		perLogRecord += clusterRecord.Value
	}
	e.Log = e.Records * l.LogDays * perLogRecord
	e.Segments = e.Records * l.Days * segmentRecord.Value
	e.ReadModels = e.Records * l.Days * modelRecord.Value
	e.Runs = l.Sessions * l.Tokens / l.Rate / 86400 * l.Peak
	e.TokensPerSecond = e.Runs * l.Rate
	e.Clients = e.Runs*l.Followers + l.Idle

	const mib = 1 << 20
	share := l.Replicas / l.Nodes // of the log, on each node
	e.Node.Disk = (e.Log+e.Segments)*share*diskSlack + e.ReadModels + minFree
	e.Node.Memory = (nodeMemory.Value+cacheMemory.Value)*mib +
		((e.Runs*runMemory.Value+e.Clients*followerMemory.Value)*mib/l.Nodes+l.Sessions*l.Days*sessionMemory.Value*share)*memorySlack
	work := e.TokensPerSecond * (tokenCPU.Value + l.Followers*deliveryCPU.Value + (l.Nodes-1)*replicaCPU.Value) / 1e6 // cores
	e.Node.Cores = nodeCPU.Value + work/l.Nodes/busy
	if e.Clients/l.Nodes > maxConnections {
		e.Limits = append(e.Limits, "more than 32768 clients a node: add nodes, or raise limits.connections and the limit of open files")
	}
	if e.TokensPerSecond > maxAppends {
		e.Limits = append(e.Limits, "more than 25000 tokens a second: raise nats.partitions, so that appends do not wait for one another")
	}
	return e, nil
}
