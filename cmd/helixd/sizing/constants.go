package sizing

// Constant is a measured figure.
type Constant struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	What   string  `json:"what"`
	Origin string  `json:"origin"` // the command that measures it
}

const (
	measured = "make size"
	stored   = "go test -run '^$' -bench Stored -benchtime 1x ./eventlog/jetstream"
)

// The constants are those of mode fsync, rounded up.
var (
	logRecord     = Constant{"logRecord", 233, "B", "a record in the log, with tool calls", stored}
	clusterRecord = Constant{"clusterRecord", 110, "B", "… more on a cluster, where the log has the chunk's whole JSON", stored}
	segmentRecord = Constant{"segmentRecord", 15.7, "B", "a record in sealed segments", stored}
	modelRecord   = Constant{"modelRecord", 22, "B", "a record in the read models' file, with the index of its words", measured}
	otherRecords  = Constant{"otherRecords", 15, "records", "a session's records besides its tokens: a run's beginning, claim, steps, tool calls and end", measured}

	nodeMemory     = Constant{"nodeMemory", 65, "MiB", "a node without load (RSS)", measured}
	cacheMemory    = Constant{"cacheMemory", 192, "MiB", "caches of states and timelines, at most", "docs/reference/limits.md"}
	runMemory      = Constant{"runMemory", 0.45, "MiB", "a run that streams (RSS)", measured}
	followerMemory = Constant{"followerMemory", 0.15, "MiB", "a client that follows a session (RSS)", measured}
	sessionMemory  = Constant{"sessionMemory", 155, "B", "a session that the log keeps", "cd integration/rivals && go run . -only restart"}

	nodeCPU     = Constant{"nodeCPU", 0.01, "cores", "a node without load", measured}
	tokenCPU    = Constant{"tokenCPU", 190, "µs", "a token of a run: the model's stream, the append, the read models", measured}
	deliveryCPU = Constant{"deliveryCPU", 50, "µs", "a token that is sent to a client", measured}
	replicaCPU  = Constant{"replicaCPU", 85, "µs", "a token on another node: its replica and its read models", "go test -run '^$' -bench 'AppendCost|Projection' ./eventlog/jetstream ./projector/sqlite"}
)

// Constants are all figures that the estimate is made of.
func Constants() []Constant {
	return []Constant{
		logRecord, clusterRecord, segmentRecord, modelRecord, otherRecords,
		nodeMemory, cacheMemory, runMemory, followerMemory, sessionMemory,
		nodeCPU, tokenCPU, deliveryCPU, replicaCPU,
	}
}
