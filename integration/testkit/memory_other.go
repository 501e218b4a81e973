//go:build !linux

package testkit

import "testing"

// InMemory has the temporary folders of a package's tests in memory, on Linux only.
func InMemory(m *testing.M) *testing.M { return m }
