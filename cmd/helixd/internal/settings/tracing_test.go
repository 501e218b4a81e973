package settings

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
)

func TestCollector(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://c":                   "",
		"https://me:secret@c/":        "Basic bWU6c2VjcmV0",
		"https://token@c":             "Basic dG9rZW46",
		"https://token:@c?project=x#": "Basic dG9rZW46", // the exporter sends no query
	} {
		url, headers, err := Collector(config.Tracing{Endpoint: endpoint})
		require.NoError(t, err)
		require.Equal(t, "https://c/v1/traces", url)
		require.Equal(t, want, headers["Authorization"], endpoint)
	}
	_, headers, err := Collector(config.Tracing{Endpoint: "https://token@c", Headers: map[string]config.Secret{"authorization": config.NewSecret("Bearer x")}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Authorization": "Bearer x"}, headers, "what is configured comes first")
}
