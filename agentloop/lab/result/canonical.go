package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// Canonical returns JSON in the one form that equal values share: no space, members ordered by
// name, numbers as written. What is no JSON becomes a JSON string of its bytes.
func Canonical(value []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		v = string(value)
	}
	out, err := eventlog.Marshal(v)
	if err != nil {
		panic(err) // the value was decoded from JSON
	}
	return out
}

// HashOf is the hash of canonical JSON: hex SHA-256.
func HashOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// NewDecision makes a decision whose content is any JSON.
func NewDecision(kind Kind, agent, name string, content []byte) Decision {
	c := Canonical(content)
	return Decision{Agent: agent, Kind: kind, Name: name, Hash: HashOf(c), Content: c}
}

// Prefix returns the hash of the first n decisions: of their kinds, agents, names and hashes.
func Prefix(decisions []Decision, n int) string {
	h := sha256.New()
	for _, d := range decisions[:n] {
		for _, part := range []string{string(d.Kind), d.Agent, d.Name, d.Hash} {
			h.Write([]byte(part))
			h.Write([]byte{0})
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Common returns how many decisions at the start of two lanes are the same.
func Common(a, b []Decision) int {
	n := 0
	for n < len(a) && n < len(b) && a[n].Same(b[n]) {
		n++
	}
	return n
}
