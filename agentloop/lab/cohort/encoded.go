package cohort

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
)

// maxEncoded is how many encodings within each other are looked into.
const maxEncoded = 4

var (
	base64Run  = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}={0,2}`)
	percentRun = regexp.MustCompile(`[^\s"'<>%]*(?:%[0-9A-Fa-f]{2}[^\s"'<>%]*)+`)
)

// recode replaces in a text what encodes other text: JSON by what jsonOf returns, Base64 and
// percent-encoding by what inner returns for the text that they encode. It leaves what inner leaves.
func recode(s string, inner func(string) string, jsonOf func([]byte) ([]byte, error)) string {
	if isJSON(s) {
		if out, err := jsonOf([]byte(s)); err == nil {
			return string(out)
		}
	}
	s = base64Run.ReplaceAllStringFunc(s, func(run string) string {
		text, encoding, ok := fromBase64(run)
		if !ok {
			return run
		}
		if out := inner(text); out != text {
			return encoding.EncodeToString([]byte(out))
		}
		return run
	})
	if !strings.Contains(s, "%") {
		return s
	}
	return percentRun.ReplaceAllStringFunc(s, func(run string) string {
		text, err := url.PathUnescape(run)
		if err != nil {
			return run
		}
		if out := inner(text); out != text {
			return url.PathEscape(out)
		}
		return run
	})
}

// isJSON reports whether a text is a JSON object, array or text.
func isJSON(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && strings.ContainsRune(`{["`, rune(s[0])) && json.Valid([]byte(s))
}

// fromBase64 decodes a run, if it encodes text.
func fromBase64(run string) (text string, encoding *base64.Encoding, ok bool) {
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := encoding.DecodeString(run); err == nil {
			return string(b), encoding, utf8.Valid(b)
		}
	}
	return "", nil, false
}

// decodings returns a text and the texts that it encodes.
func decodings(s string, depth int) []string {
	all := []string{s}
	if depth == maxEncoded {
		return all
	}
	note := func(inner string) string {
		if inner != s {
			all = append(all, decodings(inner, depth+1)...)
		}
		return inner
	}
	recode(s, note, func(raw []byte) ([]byte, error) {
		_, err := rewrite(nil, raw, func(_ []string, v any) any {
			if text, ok := v.(string); ok {
				note(text)
			}
			return v
		})
		return raw, err
	})
	return append(all, html.UnescapeString(s))
}

// encodings are the forms in which a value may be within other text.
func encodings(value string) []string {
	var forms []string
	add := func(form string) {
		if form != value && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	plain, _ := eventlog.Marshal(value) // without escapes of HTML
	escaped, _ := json.Marshal(value)
	for _, form := range []string{string(plain), string(escaped), ascii(value, `\u%04x`), ascii(value, `\u%04X`)} {
		add(strings.TrimSuffix(strings.TrimPrefix(form, `"`), `"`))
	}
	for _, form := range []string{url.QueryEscape(value), url.PathEscape(value)} {
		add(form)
		add(percentLower(form))
	}
	add(html.EscapeString(value))
	add(hex.EncodeToString([]byte(value)))
	add(strings.ToUpper(hex.EncodeToString([]byte(value))))
	for shift := range 3 {
		std := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), value...))
		inside := std[(8*shift+5)/6 : 8*(shift+len(value))/6] // what depends on the value alone
		if len(inside) > 5 {
			add(inside)
			add(strings.NewReplacer("+", "-", "/", "_").Replace(inside))
		}
	}
	return forms
}

// ascii is a value in JSON of ASCII alone.
func ascii(value, escape string) string {
	plain, _ := eventlog.Marshal(value)
	var b strings.Builder
	for _, r := range string(plain) {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, escape+escape, high, low)
		default:
			fmt.Fprintf(&b, escape, r)
		}
	}
	return b.String()
}

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

func percentLower(s string) string { return percent.ReplaceAllStringFunc(s, strings.ToLower) }
