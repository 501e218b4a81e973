package model

// Named is a [Model] that says what it is called in requests: one of few
// names, which the configuration chooses. Answers may name another one.
type Named interface{ Name() string }

// NameOf returns a model's name, or "" if it is not [Named].
func NameOf(m Model) string {
	if n, ok := m.(Named); ok {
		return n.Name()
	}
	return ""
}

// Bounded is a [Model] that bounds its answers. MaxOutputTokens is the bound,
// reasoning included; 0: there is none.
type Bounded interface{ MaxOutputTokens() int64 }

// MaxOutputTokensOf returns the bound of a model's answers, 0 if it has none or is
// not [Bounded].
func MaxOutputTokensOf(m Model) int64 {
	if b, ok := m.(Bounded); ok {
		return b.MaxOutputTokens()
	}
	return 0
}
