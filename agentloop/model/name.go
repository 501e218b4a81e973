package model

// Named is a [Model] that tells what it is called in requests: one of few
// names, which the configuration chooses. Answers may name another one.
type Named interface{ Name() string }

// NameOf returns a model's name, or "" if it is not [Named].
func NameOf(m Model) string {
	if n, ok := m.(Named); ok {
		return n.Name()
	}
	return ""
}
