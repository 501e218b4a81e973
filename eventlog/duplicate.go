package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// duplicate returns the path of the first name that an object within raw,
// which is valid JSON, has twice, or "".
func duplicate(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return duplicateIn(d, "")
}

func duplicateIn(d *json.Decoder, path string) string {
	t, _ := d.Token()
	switch t {
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			t, _ := d.Token()
			name, _ := t.(string)
			at := name
			if path != "" {
				at = path + "." + name
			}
			if seen[name] {
				return at
			}
			seen[name] = true
			if found := duplicateIn(d, at); found != "" {
				return found
			}
		}
		_, _ = d.Token()
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			if found := duplicateIn(d, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
		_, _ = d.Token()
	}
	return ""
}
