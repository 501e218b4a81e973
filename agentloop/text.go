package agentloop

import "strings"

// validPrefix cuts s without cutting a character.
func validPrefix(s string, n int) string {
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

func cutIf(message string) string {
	if message == "" {
		return ""
	}
	return cut(message)
}

// cut shortens an error text to MaxErrorText. A failed call always has one.
func cut(s string) string {
	if s == "" {
		return "the tool failed"
	}
	if len(s) <= MaxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:MaxErrorText], "")
}

// cutTo shortens a text to n bytes.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return validPrefix(s, n)
}
