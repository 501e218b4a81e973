package config

import (
	"fmt"
	"strings"
)

// join makes a dotted key path.
func join(keys ...string) string {
	return strings.TrimPrefix(strings.Join(keys, "."), ".")
}

// index is the path of a list's element.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parent drops a path's last key or index; "" has none.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// within reports whether a path is the other one or beneath it.
func within(path, ancestor string) bool {
	rest, ok := strings.CutPrefix(path, ancestor)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// isSet reports whether anyone set the key.
func (c *Config) isSet(path string) bool {
	_, ok := c.origins[path]
	return ok
}

// originOf returns the source that set the key, or the nearest key above it.
func (c *Config) originOf(path string) origin {
	for ; path != ""; path = parent(path) {
		if o, ok := c.origins[path]; ok {
			return o
		}
	}
	return origin{name: c.file}
}

func (c *Config) setOrigin(path string, o origin) {
	if c.origins == nil {
		c.origins = map[string]origin{}
	}
	c.origins[path] = o
}
