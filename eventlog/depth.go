package eventlog

import "fmt"

// MaxDepth is how deeply the JSON of a record may be nested. Go's decoder
// ends at 10,000, and a state holds what records hold, some levels deeper.
const MaxDepth = 500

// checkDepth refuses JSON, which is valid, that is nested too deeply.
func checkDepth(typ string, raw []byte) error {
	if Depth(raw) > MaxDepth {
		return &ValidationError{Type: typ, Reason: fmt.Sprintf("must not be nested more than %d deep", MaxDepth)}
	}
	return nil
}

// Depth returns how deeply JSON, which is valid, is nested.
func Depth(raw []byte) int {
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
