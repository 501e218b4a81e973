package quota

import (
	"context"
	"sync"
)

// Memory implements [Days] in this process: limits begin from 0 when it restarts, and
// other nodes do not know them. It keeps all days.
type Memory struct {
	mu   sync.Mutex
	days map[string]saved
}

type saved struct {
	value    []byte
	revision uint64
}

// Load implements [Days].
func (m *Memory) Load(_ context.Context, key string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.days[key]
	return s.value, s.revision, nil
}

// Save implements [Days].
func (m *Memory) Save(_ context.Context, key string, value []byte, revision uint64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.days[key].revision != revision {
		return false, nil
	}
	if m.days == nil {
		m.days = map[string]saved{}
	}
	m.days[key] = saved{value, revision + 1}
	return true, nil
}
