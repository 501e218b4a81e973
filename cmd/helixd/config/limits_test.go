package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/quota"
)

func TestTenants(t *testing.T) {
	c, err := loadText(t, "tenants: {default: {requestsPerSecond: 0.5}, red: {streams: 3}, blue: {}}\n", nil)
	require.NoError(t, err)
	q := quota.New(c.Quota(), nil)
	require.Equal(t, quota.Limits{RequestsPerSecond: 0.5}, q.Of("green"))
	require.Equal(t, quota.Limits{RequestsPerSecond: 0.5}, q.Of("default"))
	require.Equal(t, quota.Limits{Streams: 3}, q.Of("red"))
	require.Equal(t, quota.Limits{}, q.Of("blue"))
	require.Equal(t, quota.Limits{}, q.Of(""), "a caller without a tenant")
	require.Equal(t, quota.Limits{}, (*quota.Quota)(nil).Of("red"))
	for _, bad := range []string{"{red: {streams: -1}}", "{red: {requestsPerSecond: -1}}", "{\"\": {}}", "{red: {streams: 1.5}}", "{red: {other: 1}}"} {
		_, err := loadText(t, "tenants: "+bad+"\n", nil)
		require.ErrorContains(t, err, "helix.yaml:1: tenants", bad)
	}
	_, err = loadText(t, "tenants: {red: {bytes: 1MiB}}\nreadModels: {enabled: false}\n", nil)
	require.ErrorContains(t, err, "tenants.red.bytes: needs readModels.enabled")
	for _, bad := range []string{"connections", "streams"} {
		_, err := loadText(t, "limits: {"+bad+": -1}\n", nil)
		require.ErrorContains(t, err, "limits."+bad)
	}
	require.Equal(t, 5, Limits{}.MostStreams(10))
	require.Equal(t, 1, Limits{}.MostStreams(1))
	require.Equal(t, 7, Limits{Streams: 7}.MostStreams(10))
}
