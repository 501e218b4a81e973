package config

import (
	"encoding/json"
	"regexp"
)

// userinfo is the user and password of a URL.
var userinfo = regexp.MustCompile(`://[^/\s",]*@`)

// String returns the configuration as JSON for logs: no secrets, and no users
// and passwords of URLs.
func (c Config) String() string {
	data, err := c.MarshalJSON()
	if err != nil {
		return "config: " + err.Error()
	}
	return string(data)
}

// GoString is String.
func (c Config) GoString() string { return c.String() }

// MarshalJSON returns what String does; it is for people, and can't be read
// back.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	data, err := json.Marshal(plain(c))
	if err != nil {
		return nil, err
	}
	return userinfo.ReplaceAll(data, []byte("://"+redacted+"@")), nil
}
