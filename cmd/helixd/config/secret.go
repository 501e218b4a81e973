package config

import (
	"encoding"
	"fmt"
)

const redacted = "[redacted]"

// Secret is a string that does not print: every verb of fmt, JSON and text
// encoding give "[redacted]", empty or not. Compare secrets by what they
// Reveal. The zero value is empty.
type Secret struct {
	// A pointer, since fmt prints unexported fields of other structs without
	// asking their methods.
	value *string
}

var (
	_ fmt.Formatter          = Secret{}
	_ encoding.TextMarshaler = Secret{} // for JSON and slog, too
)

// NewSecret returns a secret of the value.
func NewSecret(value string) Secret { return Secret{&value} }

// Reveal returns the value.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether the value is empty.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Format writes "[redacted]" for all verbs.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText returns "[redacted]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Revealed returns the values of secrets.
func Revealed(secrets map[string]Secret) map[string]string {
	out := make(map[string]string, len(secrets))
	for name, s := range secrets {
		out[name] = s.Reveal()
	}
	return out
}
